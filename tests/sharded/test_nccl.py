"""Processes on GPUs, which exchange sums and blocks by NCCL: they agree with one process.

On a machine with fewer GPUs than processes, several processes share one.
"""

from __future__ import annotations

import numpy as np
import pytest

from sharded.test_torchrun import INNER, assert_same, results, torchrun
from sharded.worker import estimator, learned, samples, share

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

GPU = {"device": "cuda", "dtype": "float64"}
SINGLE = {"device": "cuda", "dtype": "float32", "n_components": [5], "center": True, "tol": 1e-5}


@pytest.fixture(scope="module", params=[2, 3])
def shared(request, tmp_path_factory):
    """The number of processes, and the folder of their results."""
    folder = tmp_path_factory.mktemp("gpus")
    fits = [GPU, {"exact": True, **GPU}, {"exact": True, **SINGLE}]
    done = torchrun(request.param, folder, backend="nccl", fits=fits)
    assert done.returncode == 0, done.stderr
    return request.param, folder


@pytest.mark.parametrize(("number", "gram"), [(0, INNER), (1, "dense")])
def test_two_layers_are_those_of_one_process(shared, number, gram):
    processes, folder = shared
    assert_same(folder, number, processes, GPU, gram)


def test_k_1_is_recomputed_on_tensor_cores_to_the_accuracy_of_float32(shared):
    processes, folder = shared
    X = samples()
    expected = learned(estimator("dense", SINGLE | {"device": "cpu", "dtype": "float64"}).fit(X), X[:20] + 0.01)
    for rank, result in enumerate(results(folder, 2, processes)):
        assert result["recomputed"]
        codes = expected["codes"][share(len(X), rank, processes)]
        np.testing.assert_allclose(result["eigenvalues"], expected["eigenvalues"], rtol=1e-5)
        np.testing.assert_allclose(np.abs(result["codes"]), np.abs(codes), atol=1e-4)


@pytest.mark.parametrize("exact", [False, True])
def test_a_killed_process_ends_the_others_with_one_sentence_and_a_checkpoint_resumes(tmp_path, exact):
    path = tmp_path / "state"
    options = {"backend": "nccl", "exact": exact, "checkpoint": str(path), **GPU}
    lost = torchrun(2, tmp_path, kill=[1, 8 if exact else 25], **options)
    assert lost.returncode != 0
    sentence = "gram: process 0 of 2 cannot go on, because another process of the group was lost"
    said = [line for line in lost.stderr.splitlines() if sentence in line]
    assert len(said) == 1, lost.stderr
    assert f"the last checkpoint is {path}, fit again to go on from it" in said[0]
    assert not list(tmp_path.glob("*.npz"))
    assert len(list(tmp_path.glob("state.*-of-*"))) == 4
    again = torchrun(2, tmp_path, **options)
    assert again.returncode == 0, again.stderr
    assert_same(tmp_path, 0, 2, GPU, "dense" if exact else INNER)
