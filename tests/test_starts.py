from __future__ import annotations

import pytest
import torch

from dense_oracle import centring, draw, orthonormal, structured
from drkm.gram import Dense, Fourier
from drkm.kernels import RBF, FeatureMap
from drkm.problem import energy as energy_module
from drkm.problem import stiefel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.energy import Energy
from drkm.training import starts

N = 120
X = structured(N)


def make(sizes=(6, 4), sigma2=(50.0, 50.0), center=False, dtype=torch.float64, gram=None):
    gram, points = gram or Dense(), [X, *(orthonormal(N, size) for size in sizes)]
    kernels = [gram.approximate(RBF(value), points[layer], layer=layer + 1) for layer, value in enumerate(sigma2)]
    return Energy(X.to(dtype), kernels, sizes, (1.0,) * len(sizes), gram, center)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class TestKernelPCA:
    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_lies_on_the_manifold_even_where_the_deep_matrix_is_all_ones(self, center, dtype):
        H = starts.kernel_pca(make(center=center, dtype=dtype))
        assert H.dtype == dtype
        assert stiefel.feasibility(H) < (1e-12 if dtype == torch.float64 else 2e-6)

    @pytest.mark.parametrize("center", [False, True])
    def test_first_layer_spans_the_leading_eigenvectors(self, center):
        H1 = starts.kernel_pca(make(center=center))[:, :6]
        C = centring(N) if center else torch.eye(N).double()
        V = torch.linalg.eigh(C @ RBF(50.0)(X, X) @ C)[1][:, -6:]
        assert torch.linalg.svdvals(V.T @ H1).min() > 1 - 1e-6

    def test_second_layer_is_kernel_pca_in_the_complement_of_the_first(self):
        energy = make(sigma2=(50.0, 0.1))
        H1, H2 = energy.split(starts.kernel_pca(energy))
        K2 = RBF(0.1)(H1.contiguous(), H1.contiguous())
        P = torch.eye(N).double() - H1 @ H1.T
        V = torch.linalg.eigh(P @ K2 @ P)[1][:, -4:]
        assert torch.linalg.svdvals(V.T @ H2).min() > 1 - 1e-6

    def test_two_calls_agree_in_every_bit(self):
        assert torch.equal(starts.kernel_pca(make()), starts.kernel_pca(make()))

    @pytest.mark.parametrize("gram", [Dense(), Fourier(features=40)])
    def test_signs_of_an_eigensolver_change_no_bit(self, gram, monkeypatch):
        def start(sign):
            def pairs(*arguments, **options):
                found = leading_eigenpairs(*arguments, **options)
                return found._replace(vectors=sign * found.vectors)

            monkeypatch.setattr(starts, "leading_eigenpairs", pairs)
            monkeypatch.setattr(energy_module, "leading_eigenpairs", pairs)
            return starts.kernel_pca(make(sigma2=(50.0, 0.1), gram=gram))

        assert torch.equal(start(1.0), start(-1.0))

    def test_three_layers_that_fill_the_space_work(self):
        energy = Energy(X[:12], [RBF(50.0), RBF(0.3), RBF(0.3)], (6, 4, 2), (1.0, 1.0, 1.0), Dense())
        assert stiefel.feasibility(starts.kernel_pca(energy)) < 1e-12


class TestRandomStarts:
    def test_random_is_standard_normal_off_the_manifold(self):
        H = starts.random(make(), generator())
        assert H.shape == (N, 10)
        assert H.std().item() == pytest.approx(1.0, abs=0.1)

    def test_orthogonal_lies_on_the_manifold(self):
        assert stiefel.feasibility(starts.orthogonal(make(), generator())) < 1e-13

    def test_float32_begins_where_float64_does(self):
        single, double = (starts.random(make(dtype=dtype), generator()) for dtype in (torch.float32, torch.float64))
        assert torch.equal(single, double.float())

    def test_the_same_generator_gives_the_same_start_and_another_one_another(self):
        assert torch.equal(starts.orthogonal(make(), generator()), starts.orthogonal(make(), generator()))
        assert not torch.equal(starts.orthogonal(make(), generator()), starts.orthogonal(make(), generator(1)))

    def test_further_starts_are_near_or_far_and_on_the_manifold(self):
        energy, H = make(sigma2=(50.0, 0.1)), orthonormal(N, 10)
        H = H * H.pow(3).sum(dim=0).sign()
        near, far = (starts.further(energy, H, length, generator()) for length in (starts.NEAR, starts.FAR))
        assert max(stiefel.feasibility(point) for point in (near, far)) < 1e-13
        assert 0.2 < (near - H).norm() / H.norm() < 0.7 < 1.0 < (far - H).norm() / H.norm()
        assert not torch.equal(near, starts.further(energy, H, starts.NEAR, generator(1)))

    def test_the_signs_of_the_first_start_do_not_matter_but_where_a_feature_map_sees_them(self):
        energy, H = make(sigma2=(50.0, 0.1)), orthonormal(N, 10)
        flipped = H * torch.tensor([1.0, -1.0]).repeat(5)
        one, other = (starts.further(energy, start, starts.NEAR, generator()) for start in (H, flipped))
        assert torch.equal(one, other)
        energy.set_kernels([RBF(50.0), FeatureMap(torch.cos)])
        assert (starts.further(energy, flipped, starts.NEAR, generator()) - flipped).norm() < 0.7 * H.norm()

    def test_the_first_start_itself_comes_down_too(self):
        energy = make(sigma2=(50.0, 0.1))
        H = starts.kernel_pca(energy)
        again = [starts.further(energy, H, 0.0, generator(seed)) for seed in (0, 1)]
        assert torch.equal(*again)
        assert energy.value(again[0]) < energy.value(H)

    def test_an_array_off_the_manifold_comes_down_on_it(self):
        energy = make(sigma2=(50.0, 0.1))
        H = starts.kernel_pca(energy)
        on, off = (starts.further(energy, start, 0.0, generator()) for start in (H, 3.0 * H))
        assert stiefel.feasibility(off) < 1e-13
        torch.testing.assert_close(off, on, rtol=0, atol=1e-9)

    def test_a_far_start_has_come_down_some_gradient_steps(self):
        energy, H = make(sigma2=(50.0, 0.1)), orthonormal(N, 10)
        before = starts.perturbed(H, generator(), starts.FAR)
        assert energy.value(starts.further(energy, H, starts.FAR, generator())) < 1.5 * energy.value(before) < 0


class TestGiven:
    def test_takes_the_precision_of_the_energy(self):
        assert starts.given(make(dtype=torch.float32), draw(N, 10)).dtype == torch.float32

    def test_a_wrong_shape_is_refused(self):
        with pytest.raises(ValueError, match=r"init: expected an array of shape \(120, 10\), got \(120, 9\)"):
            starts.given(make(), draw(N, 9))

    def test_nan_is_refused(self):
        H = draw(N, 10)
        H[3, 3] = float("nan")
        with pytest.raises(ValueError, match="init: the array contains NaN or inf"):
            starts.given(make(), H)
