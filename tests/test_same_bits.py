"""Results that are guaranteed to the last bit, on one machine, with one version and number of threads.

See docs/reproducibility.md. Nothing here has a tolerance. Differences between machines are tested elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM, KernelPCA, load
from drkm.files.rows import Rows
from drkm.inputs.samples import as_row
from drkm.kernels import RBF
from drkm.machine.layout import ALIGNMENT, aligned, copied
from drkm.training.checkpoint import Checkpoint
from drkm.training.parameters import array
from few_digits import NEW, X

DTYPES = ["float64", "float32"]
#: a model with an active deep layer, so that every rounding error grows on the way to the optimum
ALIVE = {"n_components": (6, 3), "kernel": [RBF(2.0), RBF(0.02)], "eta": 1.0, "max_iter": 30}


def fit(samples: object = X, **options: object) -> ConstrDRKM:
    # Bits are equal from the first steps on; other tests check convergence.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return ConstrDRKM(**{**ALIVE, **options}).fit(samples)


def moved(values: np.ndarray, elements: int, order: str) -> np.ndarray:
    """Return the same numbers at this offset, in elements, from the start of a cache line, in C or Fortran order."""
    room = np.empty(values.size + 2 * ALIGNMENT, dtype=values.dtype)
    begin = (-room.ctypes.data % ALIGNMENT) // values.itemsize + elements
    out = room[begin : begin + values.size].reshape(values.shape, order=order)
    out[...] = values
    assert out.ctypes.data % ALIGNMENT == elements * values.itemsize % ALIGNMENT
    return out


def layouts(values: np.ndarray) -> Iterator[tuple[str, object]]:
    """Yield every way to store the same numbers."""
    for order in "CF":
        for elements in range(8):
            yield f"array {order}+{elements}", moved(values, elements, order)
            yield f"tensor {order}+{elements}", torch.from_numpy(moved(values, elements, order))
    yield "frame", pd.DataFrame(values)
    yield "frame of columns", pd.DataFrame(dict(enumerate(values.T)))
    yield "every second row and column", np.repeat(np.repeat(values, 2, axis=0), 2, axis=1)[::2, ::2]
    yield "backwards", values[::-1, ::-1].copy()[::-1, ::-1]
    yield "read only", np.frombuffer(values.tobytes(), dtype=values.dtype).reshape(values.shape)


def results(model: ConstrDRKM) -> list[np.ndarray]:
    """Return everything that a model computes from given data."""
    codes = model.transform(NEW)
    points = [model.inverse_transform(codes), model.denoise(NEW), model.traverse(1, 0, [-0.1, 0.1])]
    return [model.codes_, np.array(model.objective_), codes, *points, model.sample(5, random_state=0)]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray], what: str = "") -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=what)


@pytest.fixture(scope="module", params=DTYPES)
def model(request: pytest.FixtureRequest) -> ConstrDRKM:
    return fit(dtype=request.param)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", ["lbfgs", "trust-region", "projected-gradient", "augmented-lagrangian"])
def test_a_second_fit_gives_the_same_bits(dtype, solver):
    options = {"dtype": dtype, "solver": solver}
    assert_same(results(fit(**options)), results(fit(**options)))


@pytest.mark.parametrize("values", [X, X.astype(np.float32)], ids=["float64", "float32"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_in_any_layout_give_the_same_fit(values, dtype):
    expected = fit(values, dtype=dtype).codes_
    for name, samples in layouts(values):
        assert_same([fit(samples, dtype=dtype).codes_], [expected], name)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "polynomial", "laplacian", "cosine"])
def test_kernel_pca_of_samples_in_any_layout_is_the_same(kernel, center):
    options = {"n_components": 4, "kernel": kernel, "center": center}
    expected = fit(**options)
    for name, samples in layouts(X):
        found = fit(samples, **options)
        assert_same([found.codes_, found.eigenvalues_[0]], [expected.codes_, expected.eigenvalues_[0]], name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "cosine"])
def test_codes_of_few_points_are_the_same_for_arrays_frames_and_tensors(kernel, dtype):
    model = KernelPCA(4, kernel=kernel, gamma=0.02).fit(X.astype(dtype))
    expected = model.transform(NEW.astype(dtype))
    for name, given in layouts(NEW.astype(dtype)):
        assert_same([model.transform(given)], [expected], name)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "cosine"])
def test_a_fit_of_kernel_pca_by_numpy_is_the_same_wherever_samples_begin(kernel):
    options = {"n_components": 4, "kernel": kernel, "gamma": 0.02, "random_state": 0}
    expected = KernelPCA(**options).fit(X)
    codes = expected.transform(NEW)
    for name, samples in layouts(X):
        found = KernelPCA(**options).fit(samples)
        assert_same([found.eigenvectors_, found.transform(NEW)], [expected.eigenvectors_, codes], name)


CALLS: dict[str, Callable[[ConstrDRKM, object], object]] = {
    "transform": lambda model, given: model.transform(given),
    "denoise": lambda model, given: model.denoise(given),
    "denoise from a start": lambda model, given: model.reconstruct(NEW, start=given).points,
    "score": lambda model, given: model.score(given),
    "traverse": lambda model, given: model.traverse(1, 0, [-0.1, 0.1], base=as_row(given)[:1]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_points_in_any_layout_give_the_same_bits(model, call):
    expected = call(model, NEW)
    for name, given in layouts(NEW):
        # `traverse` takes one row of a data frame.
        given = given.iloc[:1] if call is CALLS["traverse"] and isinstance(given, pd.DataFrame) else given
        assert_same([call(model, given)], [expected], name)


def test_codes_in_any_layout_give_the_same_bits(model):
    codes = np.asarray(model.transform(NEW), dtype=np.float64)
    points = model.inverse_transform(codes)
    begun = fit(init=model.codes_.astype(np.float64)).codes_
    for name, given in layouts(codes):
        assert_same([model.inverse_transform(given)], [points], name)
    for name, given in layouts(model.codes_.astype(np.float64)):
        assert_same([fit(init=given).codes_], [begun], name)


def test_files_give_the_same_bits(model, tmp_path):
    path = tmp_path / "fortran.npy"
    np.save(path, np.asfortranarray(NEW))
    assert_same([model.transform(path), model.denoise(path)], [model.transform(NEW), model.denoise(NEW)])


def test_a_loaded_model_gives_the_same_bits(model, tmp_path):
    expected = results(model)
    # The length of the header shifts the tensors in the file.
    for digits in range(8):
        path = tmp_path / f"{digits}.safetensors"
        model.set_params(tol=float(f"1.{'3' * digits}e-6")).save(path)
        assert_same(results(load(path)), expected, f"{digits} digits more")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", ["lbfgs", "trust-region", "projected-gradient", "augmented-lagrangian"])
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_resumed_fit_gives_the_same_bits(dtype, solver, stop, tmp_path):
    options = {"dtype": dtype, "solver": solver}
    kept = Checkpoint(tmp_path / "checkpoint", every=0)

    def interrupt(entry: dict[str, float]) -> None:
        if entry["iteration"] == stop:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fit(checkpoint=kept, callbacks=interrupt, **options)
    assert_same(results(fit(checkpoint=kept, **options)), results(fit(**options)))


def test_another_process_gives_the_same_bits(model, tmp_path):
    script = """
    import sys
    import numpy as np, torch
    torch.set_num_threads(int(sys.argv[3]))
    from test_same_bits import fit, results
    np.savez(sys.argv[1], *results(fit(dtype=sys.argv[2])))
    """
    path, folder, threads = tmp_path / "results.npz", Path(__file__).parent, str(torch.get_num_threads())
    command = [sys.executable, "-c", textwrap.dedent(script), str(path), str(model.codes_.dtype), threads]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])})
    with np.load(path) as found:
        assert_same(list(found.values()), results(model))


def test_whatever_comes_in_is_in_our_layout():
    for name, given in layouts(X):
        ours = [array("Z", given)]
        if isinstance(given, torch.Tensor):
            ours.append(aligned(given))
        if isinstance(given, np.ndarray):
            ours += [copied(given), Rows(given)[1:7], Rows(given)[torch.tensor([5, 2, 2])]]
        assert all(part.is_contiguous() and part.data_ptr() % ALIGNMENT == 0 for part in ours), name


def test_what_is_in_our_layout_is_not_copied():
    ours = torch.zeros(3, 4)
    assert aligned(ours) is ours
