"""What a fit with a memory budget holds, and what it frees."""

from __future__ import annotations

import itertools
import mmap
import pickle
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from drkm import ConstrDRKM
from drkm.files.rows import Rows
from drkm.gram import Gram, NotEnoughMemory, Tiled, TiledGram, Workload
from drkm.gram.cost import batch_rows, preimage_bytes, start_blocks
from drkm.gram.tiled_gram import tile_bytes
from drkm.kernels import RBF, FeatureMap, Laplacian, Linear, Polynomial
from drkm.kernels.bandwidth import MEDIAN_ROWS, resolve_bandwidth
from drkm.machine import pages
from drkm.problem.eigen import leading_eigenpairs
from drkm.solvers import LBFGS
from drkm.training import Plan

SETTINGS = {"n_components": (3, 2), "tol": 1e-5}


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(120, 6)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setitem(sys.modules["drkm.gram.tiles"].TILE_ROWS, "cpu", 40)


def test_a_budget_is_refused_before_the_rule_of_a_bandwidth_runs(X, monkeypatch):
    monkeypatch.setattr("drkm.training.run.resolve_kernels", lambda *_: pytest.fail("allocated"))
    with pytest.raises(NotEnoughMemory, match="memory: tiled needs at least"):
        ConstrDRKM(gram=Tiled(memory=1e3), **SETTINGS).fit(X)


def test_a_solver_that_remembers_more_needs_more():
    plans = [Plan((3,), (RBF(),), (1.0,), (1.0,), Tiled(), LBFGS(memory)) for memory in (10, 200)]
    few, many = (Tiled(keep=0).cost(Workload(60_000, 5, (3,), (RBF(),), blocks=plan.blocks)).bytes for plan in plans)
    assert many - few >= 8 * 60_000 * 3 * (2 * 200 - 80)


def test_a_model_is_not_pickled_with_its_matrix_twice():
    X = np.random.RandomState(0).randn(400, 6)
    model = ConstrDRKM(2, gram="dense").fit(X)
    assert len(pickle.dumps(model)) < 1.8 * 8 * len(X) ** 2


def test_kept_tiles_lie_at_aligned_addresses():
    gram = TiledGram(RBF(2.0), torch.randn(37, 3, dtype=torch.float64), 1e9, rows=7)
    gram.matmul(torch.ones(37, 1, dtype=torch.float64))
    assert len(gram._tiles._tiles) == 15 + 5 * 10 + 1
    assert all(tile.data_ptr() % 64 == 0 for tile in gram._tiles._tiles.values())


def test_tiles_of_another_bandwidth_take_the_memory_of_those_before():
    U, A = torch.randn(37, 3, dtype=torch.float64), torch.randn(37, 2, dtype=torch.float64)
    gram = TiledGram(RBF(2.0), U, 1e9, rows=7)
    gram.matmul(A)
    place = gram._tiles._pool.data_ptr()
    other = gram.with_kernel(RBF(3.0))
    assert torch.equal(other.matmul(A), TiledGram(RBF(3.0), U, 0, rows=7).matmul(A))
    assert other._tiles._pool.data_ptr() == place
    assert torch.equal(gram.matmul(A), TiledGram(RBF(2.0), U, 0, rows=7).matmul(A))
    # Its samples are where a kernel of distances wants them.
    assert gram.with_kernel(Polynomial()) is None


def test_pre_images_take_the_memory_of_kept_tiles_if_they_need_it_and_are_the_same(X, small_tiles, monkeypatch):
    monkeypatch.setattr("drkm.gram.cost.LEAST_BATCH", 1000)
    monkeypatch.setattr("drkm.gram.cost.SEARCH_NUMBERS", 0)
    work = Workload(120, 6, (3, 2), (RBF(), RBF()))
    budget = Tiled(keep=0).cost(work).bytes + 40_000
    ample, tight = (ConstrDRKM(gram=Tiled(memory=memory), **SETTINGS).fit(X) for memory in (1e9, budget))
    np.testing.assert_array_equal(tight.codes_, ample.codes_)
    np.testing.assert_array_equal(tight.transform(X), ample.transform(X))
    without_search = preimage_bytes(work, "fixed-point") + tile_bytes(work)
    monkeypatch.setattr("drkm.gram.cost.SEARCH_NUMBERS", (budget - without_search) // 8)
    np.testing.assert_array_equal(tight.denoise(X[:9]), ample.denoise(X[:9]))
    assert tight._inference._gram.uncentered.kept_bytes == 0
    assert ample._inference._gram.uncentered.kept_bytes > 0


def test_pre_images_beyond_the_budget_are_refused(X, monkeypatch):
    model = ConstrDRKM(gram=Tiled(memory=1e8), **SETTINGS).fit(X)
    monkeypatch.setattr("drkm.gram.cost.SEARCH_NUMBERS", 1 << 27)
    with pytest.raises(NotEnoughMemory, match=r"^memory: pre-images with 120 samples of 6 features need "):
        model.denoise(X)


@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), Polynomial(2), Linear(), FeatureMap(torch.sin)], ids=repr)
@pytest.mark.parametrize("center", [False, True])
def test_pre_images_from_a_file_need_a_tile_of_the_samples_and_are_the_same(X, tmp_path, kernel, center, monkeypatch):
    monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 6 * 7)
    np.save(tmp_path / "X.npy", X)
    path, settings = str(tmp_path / "X.npy"), {**SETTINGS, "kernel": [kernel, RBF()], "center": center}
    ample, tight = (ConstrDRKM(gram=Tiled(memory=1e9), **settings).fit(path) for _ in range(2))
    whole = [ample.denoise(X[:9]), ample.denoise(X[:9], method="ridge"), ample.inverse_transform(ample.codes_[:5])]
    monkeypatch.setattr(
        "drkm.inference.inference.preimage_bytes",
        lambda work, method, from_file: 0 if from_file else 2 * 10**9,
    )
    monkeypatch.setattr("drkm.files.rows.Rows.tensor", lambda self: pytest.fail("all samples were read"))
    found = [tight.denoise(X[:9]), tight.denoise(X[:9], method="ridge"), tight.inverse_transform(ample.codes_[:5])]
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(X).max())


@pytest.mark.parametrize("index", [slice(2, 9), slice(5, 5), slice(0, 11, 3), torch.tensor([7, 1, 1])], ids=str)
def test_rows_of_hdf5_are_in_memory_once(tmp_path, index):
    h5py = pytest.importorskip("h5py")
    values = np.random.RandomState(0).randn(11, 20_000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = values
    with h5py.File(tmp_path / "x.h5", "r") as file:
        rows = Rows(file["x"])
        rows[:1]
        tracemalloc.start()
        found = rows[index]
        # Memory of torch is not counted, but a numpy array would be.
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_array_equal(found.numpy(), values[index if isinstance(index, slice) else index.numpy()])
    assert peak < 100_000
    assert found.data_ptr() % 64 == 0


@pytest.mark.parametrize("layer", [0, 1])
def test_features_are_counted_by_their_number(X, layer):
    kernels = [RBF(), RBF()]
    kernels[layer] = FeatureMap(lambda x: x.repeat(1, 10_000 // x.shape[1]).sin())
    with pytest.raises(NotEnoughMemory, match=r"^memory: tiled needs at least \d+(\.\d)? MB"):
        ConstrDRKM(gram=Tiled(memory=8e6 if layer == 0 else 12e6), **SETTINGS, kernel=kernels).fit(X)


def test_batches_shrink_as_samples_grow_and_take_a_few_megabytes():
    sizes = [batch_rows(n, 5) for n in (100, 1000, 10_000, 1_000_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 1024
    assert all(rows >= 10 for rows in sizes)


def test_the_median_is_that_of_all_distances():
    X = np.random.RandomState(1).randn(300, 4) + 5
    squared = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(300, 1)]
    found = resolve_bandwidth("median", torch.from_numpy(X), layer=1)
    assert len(X) <= MEDIAN_ROWS
    assert found == pytest.approx(0.5 * np.sort(squared)[(len(squared) - 1) // 2], rel=1e-12)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process holds of files")
def test_a_mapped_file_does_not_stay_in_memory(tmp_path):
    def mapped():
        lines = Path("/proc/self/status").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))

    np.save(tmp_path / "X.npy", np.ones((4000, 1000)))
    rows, before = Rows(np.load(tmp_path / "X.npy", mmap_mode="r")), mapped()
    assert all((rows[some] == 1).all() for some in rows.tiles())
    assert mapped() - before < 8e6


def test_what_was_written_to_a_private_map_of_a_file_is_not_lost(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((50, 3)))
    array = np.load(tmp_path / "X.npy", mmap_mode="c")
    array[7] = 5.0
    rows = Rows(array)
    assert (rows[:] == rows[:]).all()
    assert (rows[7:8] == 5.0).all()


class Slow(Gram):
    """A spectrum that decays so slowly that the Krylov basis of a start reaches its maximum size, at no cost."""

    def __init__(self, n):
        self.n, self.values = n, torch.linspace(1.0, 2.0, n, dtype=torch.float64)

    def matmul(self, A):
        return self.values[:, None] * A

    def diagonal(self):
        return self.values

    def rows(self, index):
        return torch.diag(self.values)[index]


def most_held(work):
    """Return the largest number of bytes of tensors that were alive at once."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    events = profile.profiler.kineto_results.events()
    return max(itertools.accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
@pytest.mark.parametrize("components", [1, 5])
def test_the_basis_of_a_start_is_within_what_is_counted_for_it(components):
    n = 6000
    like = torch.empty(0, dtype=torch.float64)
    peak = most_held(lambda: leading_eigenpairs(Slow(n), 2 * components, like=like, tol=1e-3, max_passes=12))
    counted = start_blocks(components) * 8 * n * components
    assert 0.8 * counted < peak <= counted


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="needs the memory of Linux")
def test_memory_for_a_while_goes_back_to_the_system():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    block = pages.for_a_while(3_000_000, torch.empty(0, dtype=torch.float64)).fill_(1.0)
    assert block.dtype == torch.float64
    assert block.shape == (3_000_000,)
    assert resident() - before > 20e6
    del block
    assert resident() - before < 4e6
