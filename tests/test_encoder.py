"""Codes of new points: consistent with training, computed rather than looked up, reported where undetermined."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM
from drkm.inference.encoder import Encoding
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Matern, Polynomial

DIGITS = load_digits().data / 16
SETTINGS = [(2.0, 0.05), (2.0, 0.01), (5.0, 0.02)]
AXES = ["ritz", "varimax", "ica", None]
N, HELD_OUT = 400, 40


def split(seed: int = 0, n: int = N, new: int = HELD_OUT) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.RandomState(seed).permutation(len(DIGITS))
    return DIGITS[order[:n]], DIGITS[order[n : n + new]]


@functools.cache
def fitted(sigma2: tuple[float, float], axes: str | None = "ritz", seed: int = 0) -> ConstrDRKM:
    return ConstrDRKM((10, 5), kernel=[RBF(sigma2[0]), RBF(sigma2[1])], eta=1.0, axes=axes).fit(split(seed)[0])


def relative(a, b) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


settings = pytest.mark.parametrize("sigma2", SETTINGS, ids=str)
all_axes = pytest.mark.parametrize("axes", AXES, ids=str)


@settings
@all_axes
def test_training_points_get_their_codes_back(sigma2, axes):
    model, (train, _) = fitted(sigma2, axes), split()
    assert model.converged_
    Z = model.transform(train)
    assert relative(Z, model.codes_) <= 1e-6
    rows = np.linalg.norm(Z - model.codes_, axis=1) / np.linalg.norm(model.codes_, axis=1)
    assert rows.max() <= 1e-4


@settings
@all_axes
def test_points_next_to_training_points_get_nearly_their_codes(sigma2, axes):
    model, (train, _) = fitted(sigma2, axes), split()
    noise = np.random.RandomState(1).randn(*train.shape)
    moved = train + 1e-3 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    Z = model.transform(moved)
    assert 0 < relative(Z, model.codes_) < 0.01
    rows = np.linalg.norm(Z - model.codes_, axis=1) / np.linalg.norm(model.codes_, axis=1)
    assert (rows < 0.01).mean() >= 0.99
    assert (rows > 0).all()


@settings
def test_entrywise_noise_moves_codes_by_less_than_a_percent(sigma2):
    model, (train, _) = fitted(sigma2), split()
    moved = train + 1e-3 * np.random.RandomState(2).randn(*train.shape)
    assert relative(model.transform(moved), model.codes_) < 0.01


@settings
@all_axes
def test_unseen_points_are_stationary(sigma2, axes):
    model, (_, new) = fitted(sigma2, axes), split(new=400)
    encoding = model.encode(new)
    assert (encoding.residual <= 1e-8).mean() >= 0.99
    assert np.isfinite(encoding.codes).all()
    assert encoding.ambiguous.dtype == bool
    assert encoding.ambiguous.mean() < 0.5
    np.testing.assert_array_equal(encoding.codes, model.transform(new))


@settings
def test_axes_only_rotate_the_codes_of_new_points(sigma2):
    _, new = split()
    reference = fitted(sigma2, "ritz")
    for axes in AXES[1:]:
        model = fitted(sigma2, axes)
        for block in model.layer_slices_:
            R = reference.codes_[:, block].T @ model.codes_[:, block]
            np.testing.assert_allclose(R.T @ R, np.eye(len(R)), atol=1e-9)
            np.testing.assert_allclose(
                reference.transform(new)[:, block] @ R, model.transform(new)[:, block], atol=1e-7
            )


@settings
def test_any_batch_split_gives_the_same_codes(sigma2, monkeypatch):
    model, (_, new) = fitted(sigma2), split(new=60)
    together = model.transform(new)
    parts = np.concatenate([model.transform(new[:1]), model.transform(new[1:7]), model.transform(new[7:])])
    assert relative(parts, together) < 1e-9
    shuffled = np.random.RandomState(0).permutation(60)
    assert relative(model.transform(new[shuffled]), together[shuffled]) < 1e-9
    monkeypatch.setattr("drkm.gram.cost.BATCH_ROWS", 7)
    assert relative(model.transform(new), together) < 1e-9


def test_residual_and_ambiguity_come_on_request():
    model, (_, new) = fitted(SETTINGS[0]), split()
    assert model.encode(new).ambiguous.shape == model.encode(new).residual.shape == (HELD_OUT,)
    assert model.encode(new, ambiguity=False).ambiguous is None
    tensors = model.encode(torch.tensor(new))
    assert isinstance(tensors.codes, torch.Tensor)
    assert tensors.ambiguous.dtype == torch.bool


def three_clusters(r):
    return 0.01 * r.standard_normal((110, 20)) + 10 * r.standard_normal((3, 20))[r.integers(0, 3, 110)]


def test_codes_stay_bounded_at_a_saddle_point_where_no_minimum_determines_them():
    r = np.random.default_rng(0)
    X = three_clusters(r)
    model = ConstrDRKM((8, 8), sigma2=(None, 1455.0), eta=1.0).fit(X)
    assert model.converged_
    assert np.linalg.eigvalsh(model.multipliers_)[-1] > 0
    new = X[:20] + 0.5 * r.standard_normal((20, 20))
    with pytest.warns(ConvergenceWarning, match=r"^codes of \d+ of 20 points are not determined.* saddle point of J"):
        codes = model.transform(new)
    encoding = model.encode(new)
    assert encoding.unbounded.any()
    assert not encoding.unbounded.all()
    assert np.linalg.norm(codes, axis=1).max() < 10 * np.linalg.norm(model.codes_, axis=1).max()
    assert np.isfinite(encoding.residual).all()
    np.testing.assert_array_equal(encoding.codes, codes)


def test_training_points_get_their_codes_at_a_saddle_point_with_undetermined_directions():
    X = three_clusters(np.random.default_rng(0))
    model = ConstrDRKM((3, 3), sigma2=(None, 300.0), eta=1.0).fit(X)
    assert model.converged_
    assert np.linalg.eigvalsh(model.multipliers_)[-1] > 0
    rotation, null = model._inference.rotation.numpy(), model._inference.encoder.undetermined.numpy()
    assert null.shape[1] > 0
    own = model.codes_ @ rotation.T
    encoding = model.encode(X)
    # Minus the undetermined directions, from which a search would go elsewhere.
    np.testing.assert_allclose(encoding.codes, (own - (own @ null) @ null.T) @ rotation, atol=1e-12)
    assert not encoding.unbounded.any()


def test_equal_samples_with_different_codes_get_those_of_one_and_are_ambiguous():
    X = np.random.default_rng(1).standard_normal((80, 5))
    X[40:] = X[:40]
    model = ConstrDRKM((4, 3), eta=1.0, init="random", random_state=0).fit(X)
    first, second = model.codes_[:40], model.codes_[40:]
    apart = np.linalg.norm(first - second, axis=1) > 1e-3 * np.linalg.norm(first, axis=1)
    assert apart.any()
    encoding = model.encode(X[:40])
    errors = np.minimum(*(np.abs(encoding.codes - own).max(axis=1) for own in (first, second)))
    assert errors.max() <= 1e-8
    assert encoding.ambiguous[apart].all()


def test_codes_that_are_not_stationary_are_doubted():
    encoding = Encoding(torch.zeros(3, 2), torch.tensor([0.0, 0.1, 0.02]), None)
    assert encoding.doubt().startswith("codes of 2 of 3 points are not stationary (largest residual 0.1): fit to conv")
    assert not Encoding(torch.zeros(3, 2), torch.zeros(3), None, unbounded=torch.zeros(3)).doubt()


# Against an oracle


def psi(model: ConstrDRKM, train: np.ndarray, x: np.ndarray):
    """ψ of one point as a function of its codes, written out from its definition."""
    H = torch.tensor(model.codes_)
    blocks = [H[:, block] for block in model.layer_slices_]
    eta = model.fitted_.eta
    multipliers = torch.tensor(model.multipliers_)
    n = len(H)
    centring = torch.eye(n, dtype=H.dtype) - 1 / n if model.center else torch.eye(n, dtype=H.dtype)
    rotation = [R.double() for R in model.fitted_.rotation]

    def kernel_vector(layer: int, point: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        k = model.kernels_[layer](point[None], points)[0]
        if model.center:
            k = k - model.kernels_[layer](points, points).mean(dim=0)
        return centring @ k

    def value(z: torch.Tensor) -> torch.Tensor:
        codes = [z[block] for block in model.layer_slices_]
        first = kernel_vector(0, torch.tensor(x), torch.tensor(train))
        total = -(codes[0] @ (blocks[0].T @ first)) / eta[0] - 0.5 * z @ multipliers @ z
        for layer in range(1, len(blocks)):
            below = rotation[layer - 1]
            # Deep kernels use the solver's own basis.
            k = kernel_vector(layer, below @ codes[layer - 1], blocks[layer - 1] @ below.T)
            # In a centred layer the row of a sample is its code minus the mean code.
            own = codes[layer] - blocks[layer].mean(dim=0) if model.center else codes[layer]
            total = total - own @ (blocks[layer].T @ k) / eta[layer]
        return total

    return value


UNCENTRED = {
    "rbf": ((6, 3), [RBF(3.0), RBF(0.1)]),
    "eta": ((6, 3), [RBF(3.0), RBF(0.1)]),
    "three layers": ((6, 4, 2), [RBF(3.0), RBF(0.1), RBF(0.1)]),
    "matern 5/2": ((6, 3), [Matern(2.5, 3.0), Matern(2.5, 0.2)]),
    "matern 3/2": ((6, 3), [RBF(3.0), Matern(1.5, 0.2)]),
    "polynomial": ((6, 3), [RBF(3.0), Polynomial(3)]),
    "laplacian first": ((6, 3), [Laplacian(3.0), RBF(0.1)]),
    "cosine first": ((6, 3), [Cosine(), RBF(0.1)]),
    "feature map": ((6, 3), ["rbf", FeatureMap(lambda u: torch.cat([torch.cos(4 * u), torch.sin(4 * u)], 1))]),
}


@functools.cache
def small(name: str, axes: str = "ritz") -> tuple[ConstrDRKM, np.ndarray, np.ndarray]:
    train, new = split(n=120, new=30)
    sizes, kernel = UNCENTRED[name]
    eta = (1.0, 2.0) if name == "eta" else 1.0
    return ConstrDRKM(sizes, kernel=kernel, eta=eta, axes=axes).fit(train), train, new


@pytest.mark.parametrize("axes", ["ritz", "varimax"])
@pytest.mark.parametrize("name", UNCENTRED)
def test_codes_of_new_points_have_no_gradient_by_autograd(name, axes):
    model, train, new = small(name, axes)
    encoding = model.encode(new)
    good = encoding.residual <= 1e-8
    assert good.mean() >= 0.9
    scale = np.abs(model.multipliers_).max()
    for x, z in zip(new[good][:8], encoding.codes[good][:8], strict=True):
        gradient = torch.func.grad(psi(model, train, x))(torch.tensor(z))
        assert gradient.norm() <= 1e-7 * scale * np.linalg.norm(z)


@pytest.mark.parametrize("name", UNCENTRED)
def test_codes_of_new_points_are_minima_where_no_training_point_is_near(name):
    model, train, new = small(name)
    encoding = model.encode(new)
    lowest = []
    for x, z in zip(new[:8], encoding.codes[:8], strict=True):
        curvature = torch.func.jacrev(torch.func.jacrev(psi(model, train, x)))(torch.tensor(z))
        lowest.append(float(torch.linalg.eigvalsh(curvature)[0]))
    assert np.median(lowest) >= -1e-6 * np.abs(model.multipliers_).max()


def test_ambiguous_are_the_points_that_the_second_nearest_sample_leads_elsewhere():
    train, new = split(n=120, new=40)
    model = ConstrDRKM((6, 3), kernel=[RBF(2.0), RBF(0.05)], eta=1.0).fit(train)
    encoding = model.encode(new)
    second = ((new[:, None] - train) ** 2).sum(axis=2).argsort(axis=1)[:, 1]
    elsewhere = []
    for x, z, start in zip(new, encoding.codes, model.codes_[second], strict=True):
        f = psi(model, train, x)
        parts = f, torch.func.grad(f), torch.func.jacrev(torch.func.grad(f))
        value, gradient, hessian = (lambda z, part=part: part(torch.tensor(z)).numpy() for part in parts)
        found = minimize(value, start, method="trust-exact", jac=gradient, hess=hessian, options={"gtol": 1e-9}).x
        elsewhere.append(relative(found, z) > 1e-4)
    assert 0 < sum(elsewhere) < 20
    np.testing.assert_array_equal(encoding.ambiguous, elsewhere)


def test_residuals_are_gradients_relative_to_the_parts_that_cancel(monkeypatch):
    model, train, new = small("rbf")
    monkeypatch.setattr("drkm.inference.encoder.stationary.TOL", 1e-2)
    encoding = model.encode(new)
    assert np.median(encoding.residual) > 1e-4
    for x, z, residual in zip(new, encoding.codes, encoding.residual, strict=True):
        gradient = torch.func.grad(psi(model, train, x))(torch.tensor(z)).numpy()
        quadratic = -model.multipliers_ @ z
        size = np.linalg.norm(quadratic) + np.linalg.norm(gradient - quadratic)
        assert residual == pytest.approx(np.linalg.norm(gradient) / size, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", UNCENTRED)
def test_training_points_get_their_codes_back_with_any_smooth_kernel(name):
    model, train, _ = small(name)
    assert model.converged_
    assert relative(model.transform(train), model.codes_) <= 2e-6


@pytest.mark.parametrize(
    ("sizes", "kernel"),
    [
        (4, RBF(3.0)),
        ((6, 3), [RBF(3.0), RBF(0.1)]),
        ((6, 3), [RBF(3.0), Polynomial(3)]),
        ((6, 3), ["linear", Matern(2.5)]),
        ((6, 4, 2), [RBF(3.0), RBF(0.1), RBF(0.1)]),
    ],
    ids=str,
)
def test_centred_models_encode_consistently(sizes, kernel):
    train, new = split(n=120, new=30)
    model = ConstrDRKM(sizes, kernel=kernel, center=True).fit(train)
    assert relative(model.transform(train), model.codes_) <= 2e-6
    encoding = model.encode(new)
    assert (encoding.residual <= 1e-8).mean() >= 0.9
    good = encoding.residual <= 1e-8
    for x, z in zip(new[good][:5], encoding.codes[good][:5], strict=True):
        gradient = torch.func.grad(psi(model, train, x))(torch.tensor(z))
        assert gradient.norm() <= 1e-7 * np.abs(model.multipliers_).max() * np.linalg.norm(z)


def test_a_deep_cosine_is_encoded_by_its_stationarity():
    train, new = split(n=120, new=30)
    # The cosine is smooth away from zero, where a common direction keeps the codes.
    model = ConstrDRKM((6, 3), kernel=[RBF(20.0), "cosine"], eta=(1.0, 50.0)).fit(train)
    assert model.converged_
    assert relative(model.transform(train), model.codes_) <= 5e-6
    encoding = model.encode(new)
    assert (encoding.residual <= 1e-8).mean() >= 0.9


# Where stationarity does not determine the codes


@pytest.mark.parametrize("init", ["kpca", "random"])
@pytest.mark.parametrize(("n", "d", "offset"), [(250, 300, 100.0), (250, 300, 1000.0), (150, 5, 5000.0)])
def test_components_that_the_mean_of_the_samples_outweighs_are_found_and_determined(n, d, offset, init):
    r = np.random.default_rng(0)
    train, new = (r.standard_normal((count, d)) * np.linspace(1, 0.2, d) + offset for count in (n, 20))
    left, lengths, right = np.linalg.svd(train, full_matrices=False)
    model = ConstrDRKM(4, kernel="linear", init=init, random_state=0).fit(train)
    np.testing.assert_allclose(model.eigenvalues_[0], lengths[:4] ** 2, rtol=1e-6)
    signs = np.sign((model.codes_ * left[:, :4]).sum(axis=0))
    expected = signs * (new @ right[:4].T) / lengths[:4]
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(model.transform(train), model.codes_, atol=1e-3 * np.abs(model.codes_).max())


@pytest.mark.parametrize("kernel", [[RBF(50.0), RBF(1e9)], ["rbf", "linear"]], ids=["flat rbf", "linear"])
def test_undetermined_directions_are_reported_and_set_to_zero(kernel):
    train, new = split(n=120, new=30)
    model = ConstrDRKM((6, 3), kernel=kernel, eta=1.0).fit(train)
    null = model._inference.encoder.undetermined.numpy()
    count = null.shape[1]
    assert count >= 2
    assert f"{count} directions of the codes cannot be determined" in model.summary()
    Z = model.transform(new)
    assert np.isfinite(Z).all()
    own = Z @ model._inference.rotation.numpy().T
    assert np.abs(own @ null).max() <= 1e-12
    determined = model.codes_ @ model._inference.rotation.numpy().T
    determined -= (determined @ null) @ null.T
    back = model.transform(train) @ model._inference.rotation.numpy().T
    assert relative(back, determined) <= 1e-5
    assert (model.encode(new).residual <= 1e-8).mean() >= 0.9


def test_the_papers_bandwidths_give_finite_stationary_codes():
    train, new = split()
    model = ConstrDRKM((10, 5), kernel=[RBF(50.0), RBF(50.0)], eta=1.0).fit(train)
    encoding = model.encode(new)
    assert np.isfinite(encoding.codes).all()
    assert (encoding.residual <= 1e-8).mean() >= 0.9
    # Here the second kernel matrix is constant to 1e-8: all but one of its components mean nothing.
    assert "4 directions of the codes cannot be determined" in model.summary()
    null = model._inference.encoder.undetermined.numpy()
    rotation = model._inference.rotation.numpy()
    kept = model.codes_ @ rotation.T
    kept -= (kept @ null) @ null.T
    assert relative(model.transform(train) @ rotation.T, kept) <= 1e-5
    # New codes have the size of the training codes: no small multiplier inflates them.
    assert np.linalg.norm(encoding.codes, axis=1).max() <= 3 * np.linalg.norm(model.codes_, axis=1).max()


# The paper's formulas


@pytest.mark.parametrize("axes", [None, "ritz"])
def test_the_projection_encoder_is_the_papers_formulas(axes):
    train, new = split(n=120, new=30)
    eta, lam = (1.5, 0.7), (2.0, 3.0)
    model = ConstrDRKM((6, 3), kernel=[RBF(3.0), RBF(0.1)], encoder="projection", axes=axes, eta=eta, lam=lam).fit(
        train
    )
    H1, H2 = model.codes_[:, :6], model.codes_[:, 6:]
    k1 = np.exp(-((new[:, None] - train[None]) ** 2).sum(2) / 6)
    h1 = k1 @ H1 / (lam[0] * eta[0])
    k2 = np.exp(-((h1[:, None] - H1[None]) ** 2).sum(2) / 0.2)
    h2 = k2 @ H2 / (lam[1] * eta[1])
    np.testing.assert_allclose(model.transform(new), np.hstack([h1, h2]), atol=1e-12)


def test_the_projection_encoder_does_not_return_the_training_codes():
    train, _ = split(n=120)
    model = ConstrDRKM((6, 3), kernel=[RBF(3.0), RBF(0.1)], encoder="projection").fit(train)
    size = np.linalg.norm(model.transform(train)[:, :6]) / np.linalg.norm(model.codes_[:, :6])
    assert size > 3
    encoding = model.encode(train)
    assert np.isnan(encoding.residual).all()


# Refit: the honest test


def mean_relative(a, b) -> float:
    """Return the mean over points of the relative error of a point's codes."""
    return float((np.linalg.norm(a - b, axis=1) / np.linalg.norm(b, axis=1)).mean())


def refit(sigma2: tuple[float, float], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes of unseen points: by the encoder, of their nearest neighbours, and after training on them too."""
    train, new = split(seed)
    model = fitted(sigma2, seed=seed)
    Z = model.transform(new)
    neighbour = model.codes_[((new[:, None] - train[None]) ** 2).sum(2).argmin(1)]
    # Codes of more samples are smaller, in proportion to 1/√n, and σ² of the second layer with their squares.
    factor = N / (N + HELD_OUT)
    kernel = [RBF(sigma2[0]), RBF(sigma2[1] * factor)]
    both = ConstrDRKM((10, 5), kernel=kernel, eta=1.0, init=np.vstack([model.codes_, Z])).fit(np.vstack([train, new]))
    aligned = both.codes_.copy()
    for block in model.layer_slices_:
        left, _, right = np.linalg.svd(aligned[:N, block].T @ model.codes_[:, block])
        aligned[:, block] = aligned[:, block] @ left @ right
    return Z * np.sqrt(factor), neighbour * np.sqrt(factor), aligned[N:]


@settings
def test_codes_of_unseen_points_are_those_of_a_refit(sigma2):
    Z, neighbour, truth = refit(sigma2, seed=0)
    error = mean_relative(Z, truth)
    assert error <= 0.2
    assert error <= 0.5 * mean_relative(neighbour, truth)
    # A few points with large codes dominate this error: what two or three samples share changes with one more.
    assert relative(Z, truth) <= 0.25
    assert relative(Z, truth) <= 0.6 * relative(neighbour, truth)


@pytest.mark.slow
@settings
def test_codes_of_unseen_points_are_those_of_a_refit_on_the_median_seed(sigma2):
    draws = [refit(sigma2, seed) for seed in range(6)]
    errors, copied = np.array([(mean_relative(Z, truth), mean_relative(near, truth)) for Z, near, truth in draws]).T
    assert np.median(errors) <= 0.2
    assert np.median(errors / copied) <= 0.5
    assert (errors < copied).all()


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_few_points_are_handled_by_one_thread():
    train, new = split(n=120)
    seen: list[int] = []

    def watched(x):
        seen.append(torch.get_num_threads())
        return torch.cos(x)

    model = ConstrDRKM((4, 2), kernel=(FeatureMap(watched), "rbf"), eta=(1, 10)).fit(train)
    for work in (model.transform, model.denoise):
        seen.clear()
        work(new)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
