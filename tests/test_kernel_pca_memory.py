"""What a fit of KernelPCA is charged for, and what it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drkm import KernelPCA, gram, kernels
from drkm.gram import NotEnoughMemory, Strategy

#: prints the peak of the resident memory of a fit above its value after a smaller fit, and the bytes that were charged
#: for it: by torch the exact account, with numpy alone an upper bound
MEASURED = """
import ctypes, gc, json, sys
from pathlib import Path
import numpy as np
from drkm import KernelPCA
from drkm.kernel_pca import by_numpy

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

charged = []
n, d, by_torch, options = *map(int, sys.argv[1:4]), json.loads(sys.argv[4])
if by_torch:
    import torch
    from drkm.training import kernel_components

    def remembered(strategy, work):
        found = settle(strategy, work)
        charged.append(found[1].bytes - work.resident)
        return found

    settle, kernel_components.grams.settle = kernel_components.grams.settle, remembered
    options["device"] = torch.device("cpu")
else:
    most_bytes = by_numpy.most_bytes
    by_numpy.most_bytes = lambda *given: charged.append(most_bytes(*given)) or charged[-1]
if options.pop("tiled", False):
    from drkm.gram import Tiled

    options["gram"] = Tiled(keep=0)
X = np.random.RandomState(0).randn(n, d)
KernelPCA(**options).fit(X[:700])
gc.collect()
ctypes.CDLL("libc.so.6").malloc_trim(0)
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
KernelPCA(**options).fit(X)
print(json.dumps([resident("VmHWM") - before, charged[-1], "torch" in sys.modules]))
"""


@pytest.fixture
def available(monkeypatch):
    """A function that sets the available memory, and counts requests of any size."""

    def limit(number):
        monkeypatch.setattr("drkm.machine.memory.TRIFLE", 0)
        monkeypatch.setattr("drkm.machine.memory.available", lambda device: number)

    return limit


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux says what a process held at most")
@pytest.mark.parametrize(
    ("n", "d", "options"),
    [
        (2500, 10, {"kernel": "rbf"}),
        (2500, 10, {"kernel": "rbf", "n_components": 20}),
        (2500, 10, {"kernel": "rbf", "n_components": 500}),
        (2500, 10, {"kernel": "rbf", "tiled": True}),
        (2500, 800, {"kernel": "linear"}),
        pytest.param(3000, 3200, {"kernel": "linear"}, marks=pytest.mark.slow),
        pytest.param(3000, 10, {"kernel": "rbf", "n_components": 1500}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_fit_holds_no_more_than_it_is_charged_for_and_not_much_less(n, d, options):
    peak, charged, _ = measured(n, d, 1, options)
    assert peak <= charged < 2 * peak


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux says what a process held at most")
@pytest.mark.parametrize(
    ("n", "d", "options"),
    [
        (2500, 10, {"kernel": "rbf", "n_components": 20}),
        (2500, 10, {"kernel": "poly"}),
        (2500, 800, {"kernel": "linear"}),
        (1500, 2000, {"kernel": "cosine", "n_components": 5}),
        (20_000, 10, {"kernel": "linear"}),
        (20_000, 10, {"kernel": "linear", "n_components": 30}),
    ],
    ids=str,
)
def test_a_fit_with_numpy_alone_holds_no_more_than_its_bound(n, d, options):
    peak, charged, imported = measured(n, d, 0, options)
    assert not imported
    assert peak <= charged < 5 * peak


def measured(n, d, by_torch, options):
    words = [sys.executable, "-W", "ignore", "-c", MEASURED, *map(str, (n, d, by_torch)), json.dumps(options)]
    threads = {**os.environ, "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(words, env=threads, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(
    ("parameters", "n", "d", "enough"),
    [
        ({}, 3000, 10, 8e6),
        ({"kernel": "rbf"}, 700, 10, 8 * 8 * 700**2),
        ({"kernel": "rbf", "gram": gram.Nystroem(50)}, 3000, 10, 2e7),
        ({"kernel": "rbf", "gram": gram.Fourier(50)}, 3000, 10, 2e7),
        ({"kernel": kernels.Cosine()}, 3000, 10, 8e6),
    ],
    ids=str,
)
def test_all_components_need_the_memory_of_their_solver(parameters, n, d, enough, available):
    available(enough)
    model = KernelPCA(**parameters).fit(np.random.RandomState(0).randn(n, d))
    assert model.eigenvalues_.shape[0] >= min(n - 1, d)
    available(enough / 20)
    with pytest.raises(NotEnoughMemory, match=r"^gram: .* needs .* of memory"):
        KernelPCA(**parameters).fit(np.random.RandomState(0).randn(n, d))


def test_the_matrix_is_stored_where_it_fits_though_all_components_are_wanted(available, monkeypatch):
    chosen: list[Strategy] = []

    def remembered(strategy, work):
        chosen.append(strategy)
        return strategy, strategy.cost(work)

    monkeypatch.setattr("drkm.training.kernel_components.grams.settle", remembered)
    available(10 * 8 * 600**2)
    KernelPCA(kernel="rbf").fit(np.random.RandomState(0).randn(600, 4))
    assert [strategy.name for strategy in chosen] == ["dense"]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"kernel": "rbf", "gram": gram.Tiled(memory=1e6), "fit_inverse_transform": True}, "fit_inverse_transform"),
        ({"kernel": "linear", "preimage": "ridge"}, "fit_inverse_transform"),
        ({"kernel": "sigmoid"}, "kernel"),
        ({"kernel": lambda x, y: float(x @ y)}, "kernel"),
    ],
    ids=["tiled", "ridge", "sigmoid", "function"],
)
def test_matrices_beside_that_of_the_samples_are_charged_before_a_fit(parameters, named, available):
    available(8 * 2000**2 / 2)
    with pytest.raises(NotEnoughMemory, match=rf"^{named}: .* needs .* of memory"):
        KernelPCA(2, **parameters).fit(np.random.RandomState(0).randn(2000, 5))
