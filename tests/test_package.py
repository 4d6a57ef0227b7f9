from __future__ import annotations

import subprocess
import sys

import pytest

import drkm


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_is_quick_and_does_not_import_scikit_learn():
    paths = [path for path in sys.path if path]
    code = f"""
import sys, time, torch
sys.path[:0] = {paths!r}
start = time.perf_counter()
import drkm
print(time.perf_counter() - start, "sklearn" in sys.modules, "scipy.optimize" in sys.modules)
"""
    answers = [python(code).split() for _ in range(3)]
    assert min(float(seconds) for seconds, *_ in answers) < 0.3
    assert all(loaded == "False" for _, *rest in answers for loaded in rest)


def test_the_public_surface_is_there():
    for name in ("ConstrDRKM", "load", "kernels", "gram", "solvers", "metrics", "datasets", "baselines"):
        assert getattr(drkm, name) is not None
        assert name in dir(drkm)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        drkm.nothing  # noqa: B018
