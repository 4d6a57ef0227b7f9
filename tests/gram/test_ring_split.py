"""Samples that several GPUs share, on tensor cores: on a GPU, and without one in Triton's interpreter.

Threads take the place of processes.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import interpreter
import numpy as np
import pytest
import torch
import torch.distributed as dist
from test_fused import DEVICE, INTERPRETED
from test_split import KERNELS, relative

from dense_oracle import draw, structured, values
from drkm import ConstrDRKM
from drkm.distributed import collectives
from drkm.gram import Centered, Dense, Fused, Nystroem, Sharded, SweptGram, Tiled, Workload, fused, sharded
from drkm.gram.ring import RingRows
from drkm.gram.ring_split import RingSplit, product_bytes, ring_split
from drkm.gram.split import LARGEST, Split, SplitGram, halves_bytes
from drkm.kernels import RBF, Linear, Polynomial
from drkm.problem import eigen
from drkm.problem.eigen import leading_eigenpairs
from sharded.threads import in_shards

#: largest relative error of a product
WORST = 2e-6
COUNTS = [(30,), (7, 1, 22), (1, 1, 1, 1), (130, 3, 150)]


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch):
    """Let one thread at a time run a kernel: the interpreter changes Triton's modules while it does."""
    lock, sums = threading.Lock(), SplitGram._sums

    def alone(*arguments):
        with lock:
            return sums(*arguments)

    if INTERPRETED:
        monkeypatch.setattr(SplitGram, "_sums", alone)


def shared(counts, work, *matrices):
    """Return the results of threads that share float32 matrices on the device, one after another."""
    return in_shards(counts, work, *(matrix.float().to(DEVICE) for matrix in matrices))


def product(counts, kernel, X, A, use=lambda gram: gram):
    return torch.cat(shared(counts, lambda X, A: use(ring_split(kernel, X)).matmul(A), X, A))


def apart(counts, d):
    """Return points of float32, those of every process around another centre, at a distance of 1 from the next."""
    process = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return ((draw(sum(counts), d) + process[:, None]) / d**0.5).float()


@pytest.mark.gpu
class TestProducts:
    @pytest.mark.parametrize("counts", COUNTS)
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.describe())
    def test_are_right_however_rows_are_shared(self, counts, kernel):
        X, A = apart(counts, 3), draw(sum(counts), 4, seed=1).float()
        expected = values(kernel, X.double(), X.double()) @ A.double()
        assert relative(product(counts, kernel, X, A), expected) <= WORST

    @pytest.mark.parametrize(("d", "columns"), [(1, 1), (50, 40), (130, 16)])
    def test_are_right_for_any_number_of_features_and_columns(self, d, columns):
        X, A = apart((40, 9), d), draw(49, columns, seed=1).float()
        expected = values(RBF(2.0), X.double(), X.double()) @ A.double()
        assert relative(product((40, 9), RBF(2.0), X, A), expected) <= WORST

    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.describe())
    def test_rough_ones_have_three_digits(self, kernel):
        X, A = apart((20, 41), 5), draw(61, 3, seed=1).float()
        expected = values(kernel, X.double(), X.double()) @ A.double()
        assert 1e-5 < relative(product((20, 41), kernel, X, A, lambda gram: gram.rough), expected) <= 1e-3

    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.describe())
    def test_rough_ones_belong_to_a_symmetric_matrix(self, kernel):
        K = product((20, 41), kernel, apart((20, 41), 5), torch.eye(61), lambda gram: gram.rough)
        assert relative(K, K.T.cpu().double()) <= 1e-6

    def test_of_another_bandwidth_are_right(self):
        X, A = apart((20, 41), 5), draw(61, 3, seed=1).float()
        found = product((20, 41), RBF(2.0), X, A, lambda gram: gram.with_kernel(RBF(5.0)))
        assert relative(found, values(RBF(5.0), X.double(), X.double()) @ A.double()) <= WORST

    def test_two_are_the_same_to_the_bit(self):
        X, A = apart((20, 41), 5), draw(61, 3, seed=1)

        def work(X, A):
            gram = ring_split(RBF(2.0), X)
            return torch.equal(gram.matmul(A), gram.matmul(A))

        assert all(shared((20, 41), work, X, A))


@pytest.mark.gpu
class TestOperator:
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.describe())
    def test_rows_and_diagonal_equal_the_dense_ones(self, kernel):
        X = apart((20, 41), 5)
        K = values(kernel, X.double(), X.double())

        def work(X):
            gram = ring_split(kernel, X)
            return gram.rows(torch.arange(gram.n, device=X.device)).cpu(), gram.diagonal().cpu()

        rows, diagonal = (torch.cat(part) for part in zip(*shared((20, 41), work, X), strict=True))
        # The squared distance of equal points is a rounding error, of which the Laplacian takes the root.
        torch.testing.assert_close(rows.double(), K, rtol=1e-3, atol=2e-3)
        torch.testing.assert_close(diagonal.double(), K.diagonal(), rtol=1e-5, atol=1e-5)

    def test_the_slope_of_a_bandwidth_is_that_of_one_process(self):
        X, A = apart((20, 41), 5), draw(61, 3, seed=1).float()
        expected = SweptGram(RBF(2.0), X.double()).parameter_sum(A.double())
        found = shared((20, 41), lambda X, A: ring_split(RBF(2.0), X).parameter_sum(A), X, A)
        assert found == pytest.approx([expected] * 2, rel=1e-4)

    def test_some_of_its_points_are_not_an_operator_of_all(self):
        subsets = shared((20, 41), lambda X: ring_split(RBF(2.0), X).subset(torch.arange(3)), apart((20, 41), 5))
        assert subsets == [None, None]

    @pytest.mark.parametrize("centered", [False, True])
    def test_eigenpairs_are_those_of_float64(self, centered, monkeypatch):
        monkeypatch.setattr(eigen, "DENSE_BELOW", 0)
        X = structured(220).float()
        kernel = RBF("median").resolve(X, layer=1)
        K = values(kernel, X.double(), X.double())
        if centered:
            K = K - K.mean(dim=0) - K.mean(dim=1, keepdim=True) + K.mean()

        def work(X):
            gram = ring_split(kernel, X)
            return leading_eigenpairs(Centered(gram) if centered else gram, 3, like=X, tol=1e-5)

        pairs = shared((100, 1, 119), work, X)
        exact = torch.linalg.eigvalsh(K).flip(0)[:3]
        V = torch.cat([part.vectors for part in pairs]).cpu().double()
        assert float(torch.linalg.vector_norm(K @ V - V * exact, dim=0).max() / exact[0]) <= 2e-5
        for found in pairs:
            torch.testing.assert_close(found.values.cpu().double(), exact, rtol=1e-5, atol=0)


@pytest.mark.gpu
class TestAgreement:
    def far(self):
        """Return points of which halves hold all but the last two, which do not move the mean."""
        X = draw(60, 3)
        X[-2], X[-1] = 10 * LARGEST, -10 * LARGEST
        return X

    def test_points_that_one_process_cannot_hold_in_halves_are_tiled_in_all(self):
        X, A = self.far(), draw(60, 2, seed=1)
        strategy = Sharded(Split())

        def work(X, A):
            gram = strategy.fixed(RBF(2.0), X)
            return type(gram), SplitGram(RBF(2.0), X).fits_halves(), gram.matmul(A)

        kinds, fit, products = zip(*shared((20, 25, 15), work, X, A), strict=True)
        assert kinds == (RingRows,) * 3
        assert fit == (True, True, False)
        near = values(RBF(2.0), X[:-2].float().double(), X[:-2].float().double()) @ A[:-2]
        # Far points are nobody's neighbours, and their coordinates cost the others digits.
        assert relative(torch.cat(products)[:-2], near) <= 2e-2

    def test_a_bandwidth_that_is_too_narrow_for_one_process_gives_the_operator_up_in_all(self):
        X = draw(60, 3)
        X[-2], X[-1] = 100.0, -100.0
        found = shared((20, 40), lambda X: ring_split(RBF(2.0), X).with_kernel(RBF(1e-6)), X)
        assert found == [None, None]

    def test_one_device_without_tensor_cores_is_enough_for_tiles_in_all(self, monkeypatch):
        monkeypatch.setattr(fused, "why_not", lambda device: "needs a GPU" * (collectives.offset() > 0))
        kinds = shared((20, 40), lambda X: type(Sharded(Split()).fixed(RBF(2.0), X)), draw(60, 3))
        assert kinds == [RingRows] * 2

    def test_one_process_without_room_for_tiles_is_enough_to_recompute_in_all(self):
        def work(X):
            inner = Tiled(keep=10**6) if collectives.offset() else Split()
            return type(Sharded(inner).fixed(RBF(2.0), X))

        assert shared((20, 40), work, draw(60, 3)) == [RingSplit] * 2

    @pytest.mark.parametrize("inner", [Dense(), Tiled(keep=0)])
    def test_what_the_caller_keeps_is_kept(self, inner):
        assert shared((20, 40), lambda X: type(Sharded(inner).fixed(RBF(2.0), X)), draw(60, 3)) == [RingRows] * 2


@pytest.fixture
def alone(tmp_path):
    """A group whose only process is this one."""
    backend = "gloo" if INTERPRETED else "nccl"
    dist.init_process_group(backend, init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.gpu
@pytest.mark.usefixtures("alone")
class TestFit:
    def test_kernel_pca_is_that_of_float64(self):
        X = structured(250 if INTERPRETED else 5000).numpy()
        options = {"n_components": 3, "center": True, "tol": 1e-5}
        model = ConstrDRKM(gram="sharded", device=DEVICE, dtype="float32", **options).fit(X)
        expected = ConstrDRKM(gram="dense", device="cpu", **options).fit(X)
        assert "recomputed" in model.summary()
        np.testing.assert_allclose(model.eigenvalues_[0], expected.eigenvalues_[0], rtol=1e-4)
        np.testing.assert_allclose(model.transform(X[:3]), model.codes_[:3], atol=1e-3 * np.abs(model.codes_).max())

    def test_layers_converge_and_training_points_get_their_codes_back(self):
        X = structured(250 if INTERPRETED else 5000).numpy()
        model = ConstrDRKM((2, 1), gram="sharded", device=DEVICE, dtype="float32", tol=1e-4).fit(X)
        assert model.converged_
        assert "recomputed" in model.summary()
        np.testing.assert_allclose(model.transform(X[:3]), model.codes_[:3], atol=1e-3 * np.abs(model.codes_).max())


def test_the_gpu_tests_pass_in_the_interpreter():
    interpreter.passes(__file__, "Test")


class TestChoice:
    def settled(self, monkeypatch, available=1e11, inner=None, **options):
        monkeypatch.setattr(fused, "why_not", lambda device: "")
        monkeypatch.setattr("drkm.machine.memory.available", lambda device: available)
        return Sharded(inner or Tiled()).settle(self.work(**options))

    def work(self, **options):
        work = {"n": 100_000, "d": 50, "sizes": (10, 5), "kernels": (RBF(2.0), RBF(0.1)), "dtype": torch.float32}
        return Workload(**{**work, **options})

    @pytest.mark.parametrize("inner", [Tiled(), Tiled(memory=1e11), Fused()], ids=repr)
    def test_few_features_are_recomputed(self, monkeypatch, inner):
        assert isinstance(self.settled(monkeypatch, inner=inner).inner, Split)

    def test_many_features_are_kept_for_the_many_products_of_a_deep_model(self, monkeypatch):
        kept = self.settled(monkeypatch, d=784)
        assert isinstance(kept.inner, Tiled)
        assert kept.inner.keep == sharded._tiles(self.work(d=784))

    def test_and_recomputed_for_the_few_of_one_layer(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch, d=784, sizes=(10,), kernels=(RBF(2.0),)).inner, Split)

    def test_and_where_not_all_tiles_fit(self, monkeypatch):
        assert isinstance(self.settled(monkeypatch, d=784, n=300_000).inner, Split)

    @pytest.mark.parametrize("options", [{"dtype": torch.float64}, {"kernels": (Polynomial(9), RBF(0.1))}])
    def test_what_halves_do_not_serve_is_tiled(self, monkeypatch, options):
        assert isinstance(self.settled(monkeypatch, **options).inner, Tiled)

    @pytest.mark.parametrize("options", [{"inner": Nystroem(100)}, {"kernels": (Linear(), RBF(0.1))}])
    def test_features_are_left_alone(self, monkeypatch, options):
        assert repr(self.settled(monkeypatch, **options).inner) == repr(options.get("inner", Tiled()))

    @pytest.mark.parametrize("inner", [Tiled(keep=10**6), Dense()], ids=repr)
    def test_what_the_caller_keeps_is_kept(self, monkeypatch, inner):
        chosen = self.settled(monkeypatch, inner=inner).inner
        assert type(chosen) is type(inner)

    def test_without_a_gpu_it_is_tiled(self):
        assert isinstance(Sharded(Fused()).settle(self.work()).inner, Tiled)

    def test_settles_once(self, monkeypatch):
        for options in ({}, {"d": 784}):
            chosen = self.settled(monkeypatch, **options)
            assert repr(chosen.settle(self.work(**options))) == repr(chosen)

    def test_what_does_not_fit_in_halves_may_keep_what_the_budget_leaves(self, monkeypatch):
        chosen = self.settled(monkeypatch, available=1e10).inner
        assert 0 < chosen.tiles.keep < 0.5e10

    def test_says_that_it_is_recomputed(self, monkeypatch):
        assert self.settled(monkeypatch).describe() == "recomputed for the rows of each process"


class TestCost:
    WORK = Workload(10_000, 50, (10,), (RBF(2.0),), torch.float32)

    def test_is_that_of_halves_not_of_tiles(self, monkeypatch):
        tiled = Sharded().cost(self.WORK).bytes
        monkeypatch.setattr(fused, "why_not", lambda device: "")
        cost = Sharded().cost(self.WORK)
        assert cost == Sharded().settle(self.WORK).cost(self.WORK)
        assert cost.bytes < tiled
        assert cost.setup == 0.0

    def test_grows_with_the_rows_of_all_processes_in_time_and_with_the_largest_share_in_memory(self):
        def of(counts, n):
            X = torch.zeros(sum(counts), 1)
            return in_shards(counts, lambda X: Sharded(Split()).cost(replace(self.WORK, n=len(X))), X)[n]

        one, two = of((64, 64), 0), of((64, 192), 0)
        assert two.flops == 2 * one.flops
        assert two.bytes > one.bytes

    def test_counts_what_is_alive_in_a_product(self):
        n, d, columns = 1000, 50, 25
        with_blocks = product_bytes(replace(self.WORK, n=n)) - 2 * halves_bytes(n, d)
        assert with_blocks >= 4 * 4 * n * (d + columns)

    def test_halves_have_these_bytes(self):
        for n, d in ((1, 1), (130, 50), (200, 130)):
            own = SplitGram(RBF(2.0), torch.zeros(n, d))._own
            assert halves_bytes(n, d) == sum(part.nbytes for part in own)
