"""KernelPCA: scikit-learn's own tests and checks, and what is ours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

from drkm import KernelPCA
from drkm.gram import Nystroem
from drkm.kernels import RBF, Matern

#: run in a process of its own: scikit-learn's tests take their class from its package
RUN = """
import sys
import pytest
import sklearn.decomposition
from drkm import KernelPCA

sklearn.decomposition.KernelPCA = KernelPCA
class Seen:
    def pytest_collection_modifyitems(self, items):
        assert items
        for item in items:
            assert item.module.KernelPCA is KernelPCA
        print(f"{len(items)} cases of drkm")
sys.exit(pytest.main(sys.argv[1:], plugins=[Seen()]))
"""


def test_all_tests_of_scikit_learn_pass(tmp_path):
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    theirs = Path(sklearn.decomposition.__file__).parent / "tests" / "test_kernel_pca.py"
    command = [sys.executable, "-c", RUN, str(theirs), *options]
    seeds = {**os.environ, "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": "0-1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=seeds)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "cases of drkm" in done.stdout
    assert "skipped" not in done.stdout


@parametrize_with_checks([KernelPCA(), KernelPCA(n_components=2, kernel="rbf"), KernelPCA(1, kernel="sigmoid")])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
