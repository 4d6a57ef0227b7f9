"""Weighted components: against dense algebra, for any layers, in files, and refused where they are meaningless."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import drkm
from drkm.datasets import make_square
from drkm.estimator import ConstrDRKM
from drkm.gram import Nystroem
from drkm.inference.eigencomponents import EigenComponents
from drkm.inference.subspace import Components
from drkm.kernels import RBF, Linear
from drkm.problem.shrinkage import KINDS, Shrinkage

FORMULAS = {
    "soft": lambda t, v: np.maximum(1 - t / v, 0),
    "firm": lambda t, v: np.maximum(1 - (t / v) ** 2, 0),
    "ridge": lambda t, v: v / (v + t),
    "hard": lambda t, v: (v > t).astype(float),
}


def samples(n=60, noise=0.1):
    return make_square(n, noise, random_state=0)[0]


def gram(X, sigma2=0.5, center=False):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1) / (2 * sigma2))
    C = np.eye(len(X)) - 1 / len(X) if center else np.eye(len(X))
    return C @ K @ C


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind):
    values = np.array([4.0, 1.0, 0.5, 0.1])
    found = Shrinkage(0.5, kind).weights(torch.tensor([*values, 0.0, -1e-9], dtype=torch.float64))
    np.testing.assert_allclose(found, [*FORMULAS[kind](0.5, values), 0, 0])
    assert Shrinkage.of(Shrinkage(0.5, kind).parameter) == Shrinkage(0.5, kind)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_samples_are_those_of_dense_algebra(kind, center):
    X = samples()
    values, U = np.linalg.eigh(gram(X, center=center))
    kept = values > 1e-10
    expected = (U[:, kept] * FORMULAS[kind](0.3, values[kept])) @ U[:, kept].T + center / len(X)
    eigen = EigenComponents(RBF(0.5), torch.from_numpy(X), center=center)
    components = eigen.components(Shrinkage(0.3, kind))
    np.testing.assert_allclose(components.weights(components.training_coordinates()), expected, atol=1e-7)
    new = components.coordinates(eigen.kernel(torch.from_numpy(X[:5]), torch.from_numpy(X)))
    np.testing.assert_allclose(components.weights(new), expected[:5], atol=1e-7)


@pytest.mark.parametrize("shrink", [None, Shrinkage(0.3, "firm")])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()])
def test_eigenvectors_are_components_like_any_others(kernel, center, shrink):
    X = torch.from_numpy(samples())
    eigen = EigenComponents(kernel, X, center=center, rank=3)
    quick = eigen.components(shrink)
    slow = Components(kernel, X, eigen.vectors[:, : quick.c], center=center, shrink=shrink)
    a = slow.coordinates(kernel(X[:9] + 0.1, X))
    for found, expected in (
        (quick.KH, slow.KH),
        (quick.M, slow.M),
        (quick.coordinates(kernel(X[:9] + 0.1, X)), a),
        (quick.training_coordinates(), slow.training_coordinates()),
        (quick.norm2(a), slow.norm2(a)),
        (quick.residual(X[:9], a), slow.residual(X[:9], a)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_several_layers_are_weighed_in_the_ritz_basis_of_their_span(center):
    X, rng = samples(), np.random.default_rng(0)
    H = rng.standard_normal((len(X), 6))
    spanned = H - H.mean(axis=0) if center else H
    Q = np.linalg.qr(spanned)[0]
    values, V = np.linalg.eigh(Q.T @ gram(X) @ Q)
    expected = (Q @ V * (FORMULAS["soft"](0.2, values) / values)) @ (Q @ V).T @ gram(X, center=center)
    for basis in (H, H @ rng.standard_normal((6, 6)), np.hstack([H, H[:, :2]])):
        components = Components(
            RBF(0.5), torch.from_numpy(X), torch.from_numpy(basis), center=center, shrink=Shrinkage(0.2)
        )
        found = components.weights(components.training_coordinates())
        np.testing.assert_allclose(found, expected.T + center / len(X), atol=1e-6)


def test_a_model_denoises_as_its_eigenpairs_do():
    X, shrink = samples(), Shrinkage(0.3)
    eigen = EigenComponents(RBF(0.5), torch.from_numpy(X), center=True)
    model = ConstrDRKM(eigen.rank(shrink), sigma2=0.5, center=True, shrink=0.3).fit(X)
    found = eigen.denoise(shrink, tol=1e-8)
    np.testing.assert_allclose(model.denoise(X), found, atol=1e-5)
    new = X[:7] + 0.01
    np.testing.assert_allclose(model.denoise(new), eigen.denoise(shrink, torch.from_numpy(new), tol=1e-8), atol=1e-5)
    plain = ConstrDRKM(eigen.rank(shrink), sigma2=0.5, center=True).fit(X)
    np.testing.assert_allclose(plain.denoise(X, shrink=0.3), model.denoise(X), atol=1e-7)
    np.testing.assert_allclose(model.denoise(X, shrink=0), plain.denoise(X), atol=1e-5)
    assert np.abs(plain.denoise(X) - model.denoise(X)).max() > 1e-2


def test_linear_components_are_shrunk_as_singular_values_are():
    X = samples() + 3.0
    eigen = EigenComponents(Linear(), torch.from_numpy(X), center=True)
    U, singular, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    expected = X.mean(axis=0) + U * (singular * FORMULAS["soft"](20.0, singular**2)) @ Vt
    np.testing.assert_allclose(eigen.denoise(Shrinkage(20.0), tol=1e-8), expected, atol=1e-6)


def test_codes_lead_back_to_what_denoising_gives():
    X = samples()
    model = ConstrDRKM((8, 3), sigma2=(0.3, "scale"), shrink=("firm", 0.5)).fit(X)
    found = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(found, model.denoise(X, components="layer 1"), atol=1e-4)
    both = model.denoise(X)
    assert np.isfinite(both).all()
    assert np.abs(both - model.denoise(X, shrink=0)).max() > 1e-2


def test_landmarks_shrink_as_the_samples_they_stand_for():
    X = samples(80)
    exact = ConstrDRKM(8, sigma2=0.5, shrink=0.4).fit(X)
    approximate = ConstrDRKM(8, sigma2=0.5, shrink=0.4, gram=Nystroem(m=80)).fit(X)
    np.testing.assert_allclose(approximate.denoise(X), exact.denoise(X), atol=1e-4)


@pytest.mark.parametrize("shrink", [None, 0.4, ("ridge", 0.2), Shrinkage(0.3, "firm"), np.float32(0.5)])
def test_files_keep_the_shrinkage(tmp_path, shrink):
    X = samples()
    model = ConstrDRKM(6, sigma2=0.5, shrink=shrink).fit(X)
    model.save(tmp_path / "m.safetensors")
    again = drkm.load(tmp_path / "m.safetensors")
    assert Shrinkage.of(again.shrink) == Shrinkage.of(shrink)
    np.testing.assert_array_equal(again.denoise(X), model.denoise(X))


@pytest.mark.parametrize(
    "shrink", [-1, "soft", ("hat", 1.0), ("soft", np.inf), True, (1, 2, 3), ("ridge", "much"), (["a"], 1)]
)
def test_other_values_are_refused_by_fit_and_denoise(shrink):
    X = samples(20)
    with pytest.raises((TypeError, ValueError), match=r"^shrink: "):
        ConstrDRKM(3, shrink=shrink).fit(X)
    with pytest.raises((TypeError, ValueError), match=r"^shrink: "):
        ConstrDRKM(3).fit(X).denoise(X, shrink=shrink)


def test_a_threshold_that_leaves_nothing_is_refused_unless_the_mean_is_left():
    X = samples(30)
    with pytest.raises(ValueError, match=r"^shrink: no component is left, the largest eigenvalue is"):
        ConstrDRKM(3, shrink=1e6).fit(X).denoise(X)
    found = ConstrDRKM(3, kernel="linear", center=True, shrink=1e6).fit(X).denoise(X)
    np.testing.assert_allclose(found, np.broadcast_to(X.mean(axis=0), X.shape), atol=1e-6)


def test_the_projection_of_the_paper_is_not_shrunk():
    X = samples(30)
    model = ConstrDRKM(3, shrink=0.1).fit(X)
    with pytest.raises(ValueError, match=r"^shrink: the projection of the paper"):
        model.reconstruct(X, normalized=False, shrink=0.1)
    plain = ConstrDRKM(3).fit(X)
    found = model.reconstruct(X, normalized=False).points
    np.testing.assert_array_equal(found, plain.reconstruct(X, normalized=False).points)
