from __future__ import annotations

import pickle
import weakref

import numpy as np
import pytest
import torch
from gram_suite import GramSuite, N, of_each
from test_gram import EXPLICIT, PAIRWISE

from dense_oracle import LargestTensor, draw, values
from drkm.files.rows import Rows
from drkm.gram import (
    Centered,
    Dense,
    FeatureGram,
    NotEnoughMemory,
    StoredGram,
    SweptGram,
    Tiled,
    TiledGram,
    Workload,
    tiled_gram,
)
from drkm.gram import tiles as tiles_module
from drkm.gram.tiled import StreamedFeatures
from drkm.gram.tiles import OrderedSum
from drkm.kernels import RBF, Linear, Precomputed

#: bytes of all tiles, of a few of them, and none, for tiles of 10 rows
BUDGETS = {"all kept": 1e9, "some kept": 10 * 10 * 8 * 4, "none kept": 0}


class Tiles(of_each(PAIRWISE), GramSuite):
    """With one budget: `test_what_is_kept_changes_no_bit_…` compares it with the others."""

    def bare(self, points):
        return TiledGram(self.chosen, points, BUDGETS["some kept"], rows=10)

    def test_second_product_equals_the_first(self):
        A, gram = draw(N, 2, seed=2), self.make()
        assert torch.equal(gram.matmul(A), gram.matmul(A))


class TestTiles(Tiles):
    pass


class TestCenteredTiles(Tiles):
    centered = True


class TestStreamedFeatures(GramSuite):
    @pytest.fixture(autouse=True, params=EXPLICIT[:4], ids=lambda kernel: kernel.describe())
    def choose(self, request, tmp_path):
        self.chosen = request.param
        self.path = tmp_path / "points.npy"

    def kernel(self):
        return self.chosen

    def bare(self, points):
        np.save(self.path, points.numpy())
        return StreamedFeatures(self.chosen, Rows(np.load(self.path, mmap_mode="r"), points.dtype))

    def test_the_size_of_tiles_changes_nothing_that_matters(self, monkeypatch):
        A, expected = draw(N, 2, seed=2), self.make().matmul(draw(N, 2, seed=2))
        monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 3 * 10)
        torch.testing.assert_close(self.make().matmul(A), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_what_is_kept_changes_no_bit_and_points_in_a_file_are_as_good_as_others(kernel, dtype, tmp_path):
    U, A = draw(N, 3).to(dtype), draw(N, 2, seed=1).to(dtype)
    np.save(tmp_path / "points.npy", U.numpy())
    in_file = Rows(np.load(tmp_path / "points.npy", mmap_mode="r"), dtype)

    def everything(points, keep):
        gram = TiledGram(kernel, points, keep, rows=10)
        centred, index = Centered(gram), torch.tensor([5, 0, 36, 5])
        # Twice, because the second product reads the tiles that the first one kept.
        products = [gram.matmul(A), gram.matmul(A), gram.matmul(draw(N, 6, seed=2).to(dtype)[:, 1:5])]
        return [
            *products,
            centred.matmul(A),
            gram.diagonal(),
            centred.diagonal(),
            gram.rows(index),
            centred.rows(index),
        ]

    known = everything(U, BUDGETS["some kept"])
    for points in (U, in_file):
        first, *others = (everything(points, keep) for keep in BUDGETS.values())
        assert all(torch.equal(*pair) for other in others for pair in zip(first, other, strict=True))
        # Points in a file are centred by a sum over tiles.
        tol = 1e3 * torch.finfo(dtype).eps
        torch.testing.assert_close(first, known, rtol=tol, atol=tol)


@pytest.mark.parametrize("keep", BUDGETS.values(), ids=BUDGETS)
def test_kept_tiles_stay_within_the_budget(keep):
    gram = TiledGram(RBF(2.0), draw(N, 3), keep, rows=10)
    for _ in range(2):
        gram.matmul(draw(N, 2, seed=1))
        # On the diagonal, tiles of 3, 3, 3 and 1 rows, of the last 7 rows 3, 3 and 1, are whole.
        upper_half = 8 * (N * N + 3 * 28 + 19) // 2
        # The first, two more and small ones of the next: 400 numbers, as each tile begins at an aligned address.
        assert gram.kept_bytes == {1e9: upper_half, 3200: 8 * (64 + 2 * 100 + 3 * 9 + 2 * 3), 0: 0}[keep]
        # At most one block, of exactly that size: tiles allocated between temporaries would fragment the memory.
        blocks = {
            tile.untyped_storage().data_ptr(): tile.untyped_storage().nbytes() for tile in gram._tiles._tiles.values()
        }
        assert len(blocks) <= 1
        assert sum(blocks.values()) <= min(keep, upper_half + 64 * len(gram._tiles._tiles))


def test_kept_tiles_are_not_computed_again(monkeypatch):
    gram = TiledGram(RBF(2.0), draw(N, 3), 1e9, rows=10)
    first = gram.matmul(draw(N, 2, seed=1))
    monkeypatch.setattr("drkm.gram.tiled_gram.form", None)
    assert torch.equal(gram.matmul(draw(N, 2, seed=1)), first)


def test_points_far_from_the_origin_lose_no_digits():
    U = draw(N, 3)
    A = draw(N, 2, seed=1)
    found = TiledGram(RBF(2.0), U + 1e4, rows=10).matmul(A)
    torch.testing.assert_close(found, values(RBF(2.0), U, U) @ A, rtol=1e-9, atol=1e-9)


def test_tiles_never_form_anything_n_by_n():
    n = 600
    U, A = draw(n, 3), draw(n, 2, seed=1)
    with LargestTensor() as seen:
        gram = Centered(TiledGram(RBF(2.0), U, 0, rows=100))
        gram.matmul(A)
        gram.diagonal()
        gram.gram.parameter_sum(A)
    assert 0 < seen.entries <= 100 * 100


@pytest.mark.parametrize("kernel", PAIRWISE[:4], ids=lambda kernel: kernel.describe())
def test_parameter_sum_equals_that_of_a_sweep(kernel):
    U, A = draw(N, 3), draw(N, 2, seed=1)
    centred = U - U.mean(dim=0)
    expected = SweptGram(kernel, centred).parameter_sum(A)
    assert TiledGram(kernel, U, rows=10).parameter_sum(A) == pytest.approx(expected, rel=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("keep", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("kernel", PAIRWISE, ids=lambda kernel: kernel.describe())
def test_products_on_a_gpu_are_right_to_float32(kernel, keep, tmp_path):
    U, A = draw(N, 3), draw(N, 2, seed=1)
    np.save(tmp_path / "U.npy", U.numpy())
    file = Rows(np.load(tmp_path / "U.npy", mmap_mode="r"), torch.float32, "cuda")
    for points in (U.float().cuda(), file):
        found = TiledGram(kernel, points, keep, rows=10).matmul(A.float().cuda())
        torch.testing.assert_close(found.cpu().double(), values(kernel, U, U) @ A, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float64])
def test_rows_of_a_file_are_the_same_on_a_gpu(kind, tmp_path):
    numbers = np.random.RandomState(0).randint(0, 256, (50, 7)).astype(kind)
    np.save(tmp_path / "X.npy", numbers)
    file = Rows(np.load(tmp_path / "X.npy", mmap_mode="r"), torch.float32, "cuda")
    assert file[:3].dtype == torch.float32
    np.testing.assert_array_equal(file.tensor().cpu(), numbers)
    np.testing.assert_array_equal(file[torch.tensor([4, 2, 2])].cpu(), numbers[[4, 2, 2]])


class TestTiledStrategy:
    def test_tiles_the_first_layer_and_sweeps_the_deep_ones(self):
        U = draw(N, 3)
        assert isinstance(Tiled().fixed(RBF(2.0), U), TiledGram)
        assert isinstance(Tiled().moving(RBF(2.0), U), SweptGram)

    def test_keeps_features_and_a_given_matrix_as_they_are(self, tmp_path):
        U = draw(N, 3)
        np.save(tmp_path / "U.npy", U.numpy())
        rows = Rows(np.load(tmp_path / "U.npy", mmap_mode="r"))
        assert isinstance(Tiled().fixed(Linear(), U), FeatureGram)
        assert isinstance(Tiled().fixed(Linear(), rows), StreamedFeatures)
        assert isinstance(Tiled().fixed(Precomputed(), U @ U.T), StoredGram)

    @pytest.mark.parametrize("kernel", [Linear(), Precomputed()], ids=repr)
    def test_speaks_of_no_tiles_where_there_are_none(self, kernel):
        work = Workload(N, N, (3,), (kernel,))
        assert Tiled().settle(work).describe() == "tiled"
        with pytest.raises(NotEnoughMemory, match="memory: tiled needs at least"):
            Tiled(memory=1).settle(work)

    def test_keeps_all_tiles_where_memory_allows(self):
        U, A = draw(N, 3), draw(N, 2, seed=1)
        gram = Tiled().fixed(RBF(2.0), U)
        torch.testing.assert_close(gram.matmul(A), Dense().fixed(RBF(2.0), U).matmul(A), rtol=1e-12, atol=1e-12)
        assert gram.kept_bytes == 8 * N * N

    def test_tiles_of_the_default_size_cover_everything(self, monkeypatch):
        monkeypatch.setitem(tiles_module.TILE_ROWS, "cpu", 9)
        U, A = draw(N, 3), draw(N, 2, seed=1)
        expected = Dense().fixed(RBF(2.0), U).matmul(A)
        torch.testing.assert_close(Tiled(keep=0).fixed(RBF(2.0), U).matmul(A), expected, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("name", ["memory", "keep"])
    @pytest.mark.parametrize(("value", "kind"), [(-1, ValueError), ("2GB", TypeError), (True, TypeError)])
    def test_a_budget_that_is_no_number_of_bytes_is_refused(self, name, value, kind):
        with pytest.raises(kind, match=f"{name}: expected a number of bytes"):
            Tiled(**{name: value})


def test_copies_travel_without_tiles():
    gram = TiledGram(RBF(2.0), draw(N, 3), 1e9, rows=10)
    A = draw(N, 2, seed=1)
    product = gram.matmul(A)
    assert gram.kept_bytes > 8 * N * N / 2
    dumped = pickle.dumps(gram)
    assert len(dumped) < 3 * 8 * N * 3 + 3000
    assert torch.equal(pickle.loads(dumped).matmul(A), product)


@pytest.mark.parametrize("name", ["memory", "keep"])
def test_budgets_are_finite(name):
    with pytest.raises(ValueError, match=f"{name}: expected a number of bytes of at least 0, got inf"):
        Tiled(**{name: float("inf")})


def test_terms_are_added_in_order_and_given_up():
    terms = [draw(N, 2, seed=seed) * 10.0**seed for seed in range(5)]
    total, gone = OrderedSum(), []
    for number in (3, 0, 2, 4, 1):
        term = terms[number].clone()
        weakref.finalize(term, gone.append, number)
        total.add(number, term)
        del term
    # The first one holds the sum.
    assert sorted(gone) == [1, 2, 3, 4]
    assert torch.equal(total.value, (((terms[0] + terms[1]) + terms[2]) + terms[3]) + terms[4])


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11, 37, 60])
def test_tiles_cover_the_half_once_and_are_counted_without_a_list(n):
    places, covered = tiled_gram._places(n, 10), torch.zeros(n, n)
    for upper, lower in places:
        covered[upper, lower] += 1
        if upper != lower:
            covered[lower, upper] += 1
    assert torch.equal(covered, torch.ones(n, n))
    sizes = [(upper.stop - upper.start, lower.stop - lower.start) for upper, lower in places]
    assert tiled_gram.half_entries(n, 10, 8) == sum(tiles_module.aligned_entries(*size, 8) for size in sizes)
