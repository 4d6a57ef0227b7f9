"""Results that depend on all samples do not depend on how rows are distributed; the oracle is one process."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from torch import Tensor

from drkm.distributed import collectives
from drkm.gram import Centered, FeatureGram, FourierGram, SweptGram
from drkm.gram.landmarks import choose_landmarks
from drkm.gram.ring import RingGram, RingRows, shared_entries
from drkm.kernels import RBF, FourierFeatures, Laplacian, Linear, Matern, NystroemFeatures, Polynomial
from drkm.problem import axes, stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.solvers.lbfgs import two_loop, with_pair
from sharded.threads import ThreadShards, in_shards

COUNTS = (7, 1, 22)
N = sum(COUNTS)


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def together(parts: list[Tensor]) -> Tensor:
    return torch.cat(list(parts))


def close(actual: Tensor | float, expected: Tensor | float, tol: float = 1e-12) -> None:
    torch.testing.assert_close(torch.as_tensor(actual), torch.as_tensor(expected), rtol=tol, atol=tol)


def test_a_fit_elsewhere_is_not_affected():
    assert collectives.current() is None
    in_shards(COUNTS, lambda A: None, randn(N, 2))
    assert collectives.current() is None


def test_small_matrices_can_be_taken_out_of_the_exchange():
    def work(A: Tensor) -> Tensor:
        with collectives.shared(None):
            return collectives.total(torch.ones(1))

    assert [float(part) for part in in_shards(COUNTS, work, randn(N, 2))] == [1.0] * len(COUNTS)


class TestSums:
    def test_means_norms_and_products_are_those_of_all_rows(self):
        A, B = randn(N, 3), randn(N, 2, seed=1)

        def work(A: Tensor, B: Tensor) -> tuple:
            return collectives.mean(A), stiefel.norm(A), stiefel.column_norms(A), stiefel.gram(A, B)

        for mean, norm, columns, product in in_shards(COUNTS, work, A, B):
            close(mean, A.mean(dim=0))
            close(norm, float(A.norm()))
            close(columns, A.norm(dim=0))
            close(product, A.T @ B)

    def test_rows_are_found_by_their_index_among_all(self):
        A = randn(N, 3)
        index = torch.tensor([29, 0, 7, 8, 6])
        for found in in_shards(COUNTS, lambda A: collectives.rows_at(A, index), A):
            assert torch.equal(found, A[index])

    @pytest.mark.parametrize("most", [4, N, 100])
    def test_evenly_spaced_rows_are_those_of_one_process(self, most):
        A = randn(N, 3)
        expected = collectives.spread_rows(A, most)
        for found in in_shards(COUNTS, lambda A: collectives.spread_rows(A, most), A):
            assert torch.equal(found, expected)
        assert torch.equal(together(in_shards(COUNTS, lambda A: collectives.spread_here(A, most), A)), expected)

    @pytest.mark.parametrize("columns", [3, 8, N])
    def test_the_identity_matrix_has_one_row_a_sample(self, columns):
        parts = in_shards(COUNTS, lambda A: collectives.eye(len(A), columns, like=A), randn(N, 1))
        assert torch.equal(together(parts), torch.eye(N, columns, dtype=torch.float64))

    def test_the_largest_of_a_decision_counts(self):
        def work(A: Tensor) -> float:
            return collectives.agreed(float(collectives.offset() == 7))

        assert in_shards(COUNTS, work, randn(N, 1)) == [1.0] * len(COUNTS)


class TestRing:
    def test_every_process_meets_the_rows_of_all_from_its_own_on(self):
        A = randn(N, 3)

        def work(A: Tensor) -> list:
            return [(columns.start, block.clone()) for columns, block in collectives.ring(A)]

        for rank, met in enumerate(in_shards(COUNTS, work, A)):
            assert met[0][0] == sum(COUNTS[:rank])
            assert torch.equal(torch.cat([block for _, block in sorted(met, key=lambda part: part[0])]), A)

    @pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(2.0), Matern(sigma2=2.0), Polynomial(2, gamma=0.5)])
    def test_sums_of_pairs_are_those_of_one_process(self, kernel):
        U, A, dU, dA = (randn(N, columns, seed=seed) for seed, columns in enumerate((3, 2, 3, 2)))

        def work(U: Tensor, A: Tensor, dU: Tensor, dA: Tensor) -> tuple:
            gram = RingGram(kernel, U)
            product, pull, _ = gram.sums(A)
            return gram.matmul(A), product, pull, *gram.tangent(A, dU, dA), gram.rows(torch.arange(len(U)))

        swept = SweptGram(kernel, U)
        product, pull, _ = swept.sums(A)
        expected = swept.matmul(A), product, pull, *swept.tangent(A, dU, dA), swept.rows(torch.arange(N))
        for found, whole in zip(zip(*in_shards(COUNTS, work, U, A, dU, dA), strict=True), expected, strict=True):
            close(together(found), whole)
        if kernel.has_bandwidth:
            slopes = in_shards(COUNTS, lambda U, A: RingGram(kernel, U).parameter_sum(A), U, A)
            assert slopes == pytest.approx([swept.parameter_sum(A)] * 3, rel=1e-11)

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize(
        "counts", [COUNTS, (30,), (13, 17), (1, 29), (9, 1, 12, 8), (1, 1, 1, 1), (6, 3, 7, 2, 12)]
    )
    def test_what_is_kept_does_not_change_a_product(self, counts, share):
        n = sum(counts)
        X, A = randn(n, 4) + 50, randn(n, 2, seed=1)
        slopes: list[float] = []

        def work(X: Tensor, A: Tensor) -> tuple:
            # A budget that is enough for some processes and not for others.
            gram = RingRows(RBF(3.0), X, share * 8 * n * max(counts), rows=5)
            slopes.append(gram.parameter_sum(A))
            first, second = gram.matmul(A), gram.matmul(A)
            slopes.append(gram.parameter_sum(A))
            copied, wider = pickle.loads(pickle.dumps(gram)), gram.with_kernel(RBF(6.0))
            return first, second, copied.matmul(A), wider.matmul(A), wider.matmul(A), gram.matmul(A)

        found = zip(*in_shards(counts, work, X, A), strict=True)
        first, second, third, wider, again, last = (together(part) for part in found)
        close(first, RBF(3.0)(X, X) @ A)
        assert torch.equal(first, second)
        assert torch.equal(first, third)
        assert torch.equal(first, last)
        close(wider, RBF(6.0)(X, X) @ A)
        assert torch.equal(wider, again)
        assert slopes == pytest.approx([SweptGram(RBF(3.0), X).parameter_sum(A)] * 2 * len(counts), rel=1e-9)

    @pytest.mark.parametrize("counts", [(40, 40), (20, 30, 10), (20, 20, 20, 20)])
    def test_values_of_two_samples_are_kept_by_one_process_and_need_no_samples_of_others_again(self, counts):
        n, rows = sum(counts), 10
        X, A = randn(n, 4), randn(n, 2, seed=1)

        def work(X: Tensor, A: Tensor) -> tuple[int, int]:
            gram, shards = RingRows(RBF(3.0), X, math.inf, rows), collectives.current()
            gram.matmul(A)
            assert isinstance(shards, ThreadShards)
            before = shards.passed
            gram.matmul(A)
            return gram.kept_bytes // 8, shards.passed - before

        kept, passed = zip(*in_shards(counts, work, X, A), strict=True)
        # Each ten samples have tiles of 3, 3, 3 and 1 rows on the diagonal, which are kept whole.
        within = (sum(count**2 for count in counts) + n // rows * (3 * 3**2 + 1)) // 2
        assert sum(kept) == within + (n**2 - sum(count**2 for count in counts)) // 2
        assert passed == tuple(count * A.shape[1] for count in counts)

    @pytest.mark.parametrize("counts", [(48, 48), (32, 32, 32), (16, 16, 16, 16)])
    def test_equal_processes_have_equal_work(self, counts):
        entries = in_shards(counts, lambda X: shared_entries(len(X), 8, 8), randn(sum(counts), 1))
        assert entries == [counts[0] * (sum(counts) - counts[0]) // 2] * len(counts)


class TestRandomNumbers:
    @pytest.mark.parametrize("block", [1 << 16, 5])
    def test_do_not_depend_on_who_holds_the_rows(self, monkeypatch, block):
        monkeypatch.setattr(collectives, "RANDOM_BLOCK", block)

        def draw(A: Tensor) -> Tensor:
            return collectives.normal(len(A), 4, torch.Generator().manual_seed(3))

        A = randn(N, 1)
        assert torch.equal(together(in_shards(COUNTS, draw, A)), draw(A))
        assert torch.equal(together(in_shards((10, 10, 10), draw, A)), draw(A))

    def test_blocks_are_not_repetitions_of_each_other(self, monkeypatch):
        monkeypatch.setattr(collectives, "RANDOM_BLOCK", 5)
        drawn = collectives.normal(30, 1, torch.Generator().manual_seed(0))
        assert len(drawn.unique()) == 30
        again = torch.Generator().manual_seed(0)
        first, second = collectives.normal(30, 1, again), collectives.normal(30, 1, again)
        assert not torch.equal(first, second)


class TestFactorisations:
    @pytest.mark.parametrize("columns", [2, 9])
    def test_qr_is_a_factorisation_of_the_whole(self, columns):
        Y = randn(N, columns)
        factors = in_shards(COUNTS, stiefel.qr, Y)
        Q, R = together([q for q, _ in factors]), factors[0][1]
        close(Q.T @ Q, torch.eye(columns, dtype=torch.float64))
        close(Q @ R, Y)
        assert torch.equal(R, R.triu())

    @pytest.mark.parametrize("condition", [1.0, 1e9])
    def test_polar_factor_is_that_of_one_process(self, condition):
        Y = randn(N, 4) * torch.logspace(0, -torch.tensor(condition).log10(), 4, dtype=torch.float64)
        H = together(in_shards(COUNTS, stiefel.polar, Y))
        close(H.T @ H, torch.eye(4, dtype=torch.float64))
        close(H, stiefel.polar(Y), tol=1e-6)

    @pytest.mark.parametrize("dense_below", [0, 200])
    def test_leading_eigenvectors_are_those_of_one_process(self, monkeypatch, dense_below):
        monkeypatch.setattr("drkm.problem.eigen.DENSE_BELOW", dense_below)
        X = randn(90, 6) * torch.tensor([8.0, 6, 4, 2, 1, 1]).double()
        outside = stiefel.qr(randn(90, 2, seed=5))[0]

        def work(X: Tensor, outside: Tensor) -> tuple:
            return leading_eigenpairs(FeatureGram(Linear(), X), 3, like=X, outside=outside, tol=1e-12)

        parts = in_shards((40, 49, 1), work, X, outside)
        vectors = together([part.vectors for part in parts])
        expected = work(X, outside)
        close(parts[0].values, expected.values, 1e-9)
        close(vectors @ vectors.T, expected.vectors @ expected.vectors.T, 1e-8)

    @pytest.mark.parametrize("copied", [1 << 13, 7])
    def test_the_two_loops_of_sums_equal_those_of_one_process(self, monkeypatch, copied):
        monkeypatch.setattr("drkm.solvers.lbfgs.STACKED", {"cpu": copied})
        R, scale = randn(N, 2), torch.linspace(1, 3, N, dtype=torch.float64)[:, None]
        steps = [randn(N, 2, seed=seed) for seed in range(1, 6)]
        changes = [step * (0.5 + randn(N, 2, seed=9).abs()) for step in steps]

        def work(R: Tensor, scale: Tensor, *pairs: Tensor) -> Tensor:
            kept: tuple[list[Tensor], list[Tensor]] = ([], [])
            for s, y in zip(pairs[:5], pairs[5:], strict=True):
                kept = with_pair(*kept, s, y, 1e-10, memory=5)
            return two_loop(R, *kept, lambda Z: Z * scale)

        blocks = (R, scale, *steps, *changes)
        close(together(in_shards(COUNTS, work, *blocks)), work(*blocks), 1e-10)


class TestGramMatrices:
    U, A, dU, dA = (randn(N, 3, seed=seed) for seed in range(4))

    def kernels(self) -> list:
        rbf = RBF(2.0)
        fourier = FourierFeatures.drawn(rbf, 3, 20, orthogonal=True, random_state=0, like=self.U)
        return [Linear(), NystroemFeatures(rbf, randn(8, 3, seed=7)), fourier]

    @pytest.mark.parametrize("centered", [False, True])
    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_products_and_derivatives_are_those_of_one_process(self, number, centered):
        kernel = self.kernels()[number]

        def work(U: Tensor, A: Tensor, dU: Tensor, dA: Tensor) -> Tensor:
            gram = FourierGram(kernel, U) if isinstance(kernel, FourierFeatures) else FeatureGram(kernel, U)
            gram = Centered(gram) if centered else gram
            product, pull, _ = gram.sums(A)
            d_product, d_pull = gram.tangent(A, dU, dA)
            slope = torch.full_like(A[:, :1], gram.parameter_sum(A))
            return torch.cat([gram.matmul(A), product, pull, d_product, d_pull, slope], dim=1)

        blocks = (self.U, self.A, self.dU, self.dA)
        close(together(in_shards(COUNTS, work, *blocks)), work(*blocks), 1e-10)

    @pytest.mark.parametrize("number", [1, 2])
    def test_estimates_of_errors_are_those_of_one_process(self, number):
        kernel = self.kernels()[number]
        for found in in_shards(COUNTS, kernel.error, self.U):
            close(found, kernel.error(self.U))

    @pytest.mark.parametrize("name", ["uniform", "kmeans", "rpcholesky"])
    @pytest.mark.parametrize("m", [2, 10, N])
    def test_landmarks_are_those_of_one_process(self, name, m):
        X, kernel = randn(N, 2, seed=4), RBF(1.0)
        expected = choose_landmarks(name, kernel, X, m, 0)
        for found in in_shards(COUNTS, lambda X: choose_landmarks(name, kernel, X, m, 0), X):
            assert torch.equal(found, expected)


class TestRules:
    @pytest.mark.parametrize(
        ("kernel", "layer"),
        [
            (RBF("median"), 1),
            (RBF("scale"), 1),
            (RBF("scale"), 2),
            (Polynomial(degree=2), 1),
            (Polynomial(degree=2), 2),
        ],
    )
    def test_bandwidths_are_those_of_one_process(self, kernel, layer):
        def work(X: Tensor) -> dict:
            return kernel.resolve(X if layer == 1 else collectives.eye(len(X), 3, like=X), layer=layer).parameters

        X = randn(N, 3) + 5
        for found in in_shards(COUNTS, work, X):
            assert found == pytest.approx(work(X), rel=1e-12)

    @pytest.mark.parametrize("rotate", [axes.varimax, axes.ica])
    def test_axes_are_those_of_one_process(self, rotate):
        A = N**0.5 * stiefel.polar(randn(N, 3) ** 3)
        for found in in_shards(COUNTS, rotate, A):
            close(found, rotate(A), 1e-8)

    def test_signs_follow_the_largest_entry_of_all(self):
        A = torch.zeros(N, 2, dtype=torch.float64)
        A[3], A[29] = torch.tensor([1.0, 2.0]), torch.tensor([-2.0, -1.0])
        for found in in_shards(COUNTS, lambda A: axes._fix_signs(A, torch.eye(2).double()), A):
            assert found.diagonal().tolist() == [-1.0, 1.0]
