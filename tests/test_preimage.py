from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from drkm.datasets import make_square_spiral
from drkm.gram import Dense
from drkm.inference.preimage import preimage
from drkm.inference.preimage import search as preimages
from drkm.inference.preimage.residual import residual_of
from drkm.inference.subspace import Components
from drkm.kernels import RBF, Cosine, FeatureMap, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed

KERNELS = [RBF(0.5), Matern(2.5, 0.5), Matern(1.5, 0.5), Laplacian(0.5), Polynomial(3, 0.5), Linear()]
SMOOTH = KERNELS[:2] + KERNELS[4:]
SETTINGS = [(False, True), (True, True), (False, False), (True, False)]


def ids(value: object) -> str:
    return type(value).__name__ if isinstance(value, Kernel) else str(value)


def points(n: int = 60, d: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def codes(n: int, c: int, seed: int = 1) -> torch.Tensor:
    return torch.linalg.qr(points(n, c, seed))[0]


def leading(kernel: Kernel, X: torch.Tensor, c: int, center: bool = False) -> torch.Tensor:
    K = kernel(X, X)
    if center:
        C = torch.eye(len(X), dtype=X.dtype) - 1 / len(X)
        K = C @ K @ C
    return torch.linalg.eigh(K)[1][:, -c:].flip(1)


def make(
    kernel: Kernel, *, c: int = 4, center: bool = False, normalized: bool = True, n: int = 60, d: int = 2
) -> tuple[Components, torch.Tensor, torch.Tensor]:
    X = points(n, d)
    components = Components(kernel, X, leading(kernel, X, c, center), center=center, normalized=normalized)
    new = points(25, d, seed=7) * 0.8
    return components, new, components.coordinates(kernel(new, X))


@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
@pytest.mark.parametrize(("center", "normalized"), SETTINGS)
def test_residual_is_the_squared_distance_in_feature_space(kernel, center, normalized):
    components, new, a = make(kernel, center=center, normalized=normalized)
    X, beta = components.X, components.weights(a)
    K = kernel(X, X)
    dense = kernel.diagonal(new) - 2 * (beta * kernel(new, X)).sum(1) + ((beta @ K) * beta).sum(1)
    torch.testing.assert_close(components.residual(new, a), dense.clamp(min=0), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_projection_leaves_an_error_orthogonal_to_every_component(center):
    kernel = RBF(0.5)
    X = points()
    H = codes(60, 5)
    components = Components(kernel, X, H, center=center)
    new = points(9, seed=3)
    k = kernel(new, X)
    beta = components.weights(components.coordinates(k))
    K = kernel(X, X)
    directions = H - H.mean(0) if center else H
    torch.testing.assert_close((k - beta @ K) @ directions, torch.zeros(9, 5).double(), atol=1e-10, rtol=0)


@pytest.mark.parametrize("center", [False, True])
def test_projection_is_idempotent(center):
    components, _, a = make(RBF(0.5), center=center)
    again = components.coordinates(components.weights(a) @ components.kernel(components.X, components.X))
    torch.testing.assert_close(again, a, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("center", [False, True])
def test_projection_ignores_order_length_and_linear_dependence_of_components(center):
    kernel, X, H = RBF(0.5), points(), codes(60, 5)
    k = kernel(points(9, seed=3), X)

    def beta(H: torch.Tensor) -> torch.Tensor:
        components = Components(kernel, X, H, center=center)
        return components.weights(components.coordinates(k))

    expected = beta(H)
    mixed = torch.cat([H, H[:, :2] @ points(2, 3, 5), torch.zeros(60, 1)], dim=1)
    for other in (H[:, [3, 0, 4, 2, 1]], H * torch.tensor([1e-3, 1, 1e3, 5, 1]), mixed):
        torch.testing.assert_close(beta(other), expected, rtol=1e-7, atol=1e-9)


def test_paper_coefficients_have_no_middle_factor():
    components, new, a = make(RBF(0.5), normalized=False)
    H = components.H
    torch.testing.assert_close(components.weights(a), components.kernel(new, components.X) @ H @ H.T)


def test_scores_and_kernel_rows_give_the_same_coordinates():
    components, new, a = make(RBF(0.5), center=True)
    X = components.X
    K, k = components.kernel(X, X), components.kernel(new, X)
    centred = k - k.mean(1, keepdim=True) - K.mean(0) + K.mean()
    torch.testing.assert_close(components.coordinates_from_scores(centred @ components.H), a)


@pytest.mark.parametrize("center", [False, True])
def test_a_stored_gram_matrix_and_none_agree(center):
    kernel, X, H = RBF(0.5), points(), codes(60, 4)
    k = kernel(points(9, seed=3), X)
    swept, stored = (
        Components(kernel, X, H, center=center, gram=gram).coordinates(k) for gram in (None, Dense().fixed(kernel, X))
    )
    torch.testing.assert_close(stored, swept)


@pytest.mark.parametrize("method", ["fixed-point", "gradient"])
@pytest.mark.parametrize("kernel", SMOOTH, ids=ids)
@pytest.mark.parametrize("center", [False, True])
def test_preimage_of_an_exactly_representable_point_is_that_point(kernel, method, center):
    if method == "fixed-point" and not hasattr(kernel, "sigma2"):
        pytest.skip("fixed point is for kernels of distances")
    X = points(30)
    components = Components(kernel, X, torch.eye(30).double(), center=center)
    result = preimage(components, components.coordinates(kernel(X, X)), method=method)
    torch.testing.assert_close(result.points, X, atol=1e-5, rtol=0)
    assert result.residual.max() < 1e-9
    assert result.converged.all()
    # Also from another start, because this one is the answer.
    moved = preimage(components, components.coordinates(kernel(X, X)), method=method, start=X + 0.02)
    torch.testing.assert_close(moved.points, X, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=ids)
@pytest.mark.parametrize(("center", "normalized"), SETTINGS)
def test_gradient_fixed_point_and_plain_iteration_agree(kernel, center, normalized):
    components, _, a = make(kernel, center=center, normalized=normalized)
    fixed = preimage(components, a, tol=1e-10)
    for other in (
        preimage(components, a, method="gradient", tol=1e-10),
        preimage(components, a, memory=0, tol=1e-10, max_iter=20000),
    ):
        assert other.converged.all()
        torch.testing.assert_close(other.points, fixed.points, atol=1e-6, rtol=0)
        torch.testing.assert_close(other.residual, fixed.residual, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=ids)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("c", "d"), [(2, 1), (2, 2), (12, 2), (5, 4)])
def test_derivatives_of_the_residual_agree_with_finite_differences(kernel, center, c, d):
    components, new, a = make(kernel, c=c, center=center, d=d)
    target = residual_of(components, second_order=True)
    x = new - target.origin
    found = target.evaluate(x, a)
    torch.testing.assert_close(found.value + components.norm2(a), components.residual(new, a), rtol=1e-9, atol=1e-10)
    for i, step in enumerate(1e-5 * torch.eye(d).double()):
        rise = components.residual(new + step, a) - components.residual(new - step, a)
        torch.testing.assert_close(found.gradient[:, i], rise / 2e-5, rtol=1e-6, atol=1e-7)
        turn = target.evaluate(x + step, a).gradient - target.evaluate(x - step, a).gradient
        torch.testing.assert_close(found.hessian[:, i], turn / 2e-5, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("d", "newton"), [(1, True), (8, True), (9, False)])
def test_newton_steps_are_taken_in_few_dimensions_and_change_no_result(monkeypatch, d, newton):
    components, new, a = make(RBF(0.5 * d), c=6, d=d, n=100)
    found = preimage(components, a, start=new, tol=1e-10)
    monkeypatch.setattr(preimages, "NEWTON_DIMENSIONS", 0)
    without = preimage(components, a, start=new, tol=1e-10)
    assert found.converged.all()
    torch.testing.assert_close(found.points, without.points, atol=1e-8, rtol=0)
    assert (found.iterations.sum() < 0.7 * without.iterations.sum()) == newton


def test_points_far_from_the_origin_converge_in_single_precision():
    X = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    found = []
    for offset in (0.0, 1000.0):
        H = torch.linalg.eigh(RBF(1.0)(X, X)).eigenvectors[:, -8:]
        components = Components(RBF(1.0), X + offset, H)
        a = components.coordinates(RBF(1.0)(X + 0.1, X))
        found.append(preimage(components, a, tol=1e-5))
    assert found[1].converged.all()
    assert found[1].iterations.float().mean() < 2 * found[0].iterations.float().mean()
    torch.testing.assert_close(found[1].points - 1000.0, found[0].points, atol=2e-3, rtol=0)


@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("unit", [1e-15, 1e12, 1e15, 3e17])
def test_the_unit_of_the_data_does_not_matter(unit, d):
    X, new = (points(n, d, seed).float() for n, seed in ((60, 0), (25, 7)))
    kernel, scaled = RBF(5.0), RBF(5.0 * unit**2)
    H = leading(kernel, X, 4)
    one = preimage(Components(kernel, X, H), Components(kernel, X, H).coordinates(kernel(new, X)))
    components = Components(scaled, X * unit, H)
    other = preimage(components, components.coordinates(scaled(new * unit, X * unit)))
    assert other.converged.all()
    assert other.iterations.max() <= one.iterations.max() + 2
    torch.testing.assert_close(other.points / unit, one.points, rtol=0, atol=1e-4)


@pytest.mark.parametrize("unit", [2.0**-490, 2.0**490])
@pytest.mark.parametrize("kernel", [RBF(5.0), Matern(2.5, 5.0)], ids=ids)
def test_no_unit_that_kernels_take_changes_a_digit(kernel, unit):
    X, new = points(60, 3), points(25, 3, 7)
    found = []
    for scaled, size in ((kernel, 1.0), (kernel.with_parameters(sigma2=5.0 * unit**2), unit)):
        components = Components(scaled, X * size, leading(kernel, X, 4))
        found.append(preimage(components, components.coordinates(scaled(new * size, X * size))).points / size)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernel", [RBF(40.0), Laplacian(40.0), Polynomial(3, 0.01)], ids=ids)
@pytest.mark.parametrize("center", [False, True])
def test_with_many_features_the_search_runs_in_the_span_of_the_training_points(monkeypatch, kernel, center):
    components, _, a = make(kernel, center=center, n=20, d=90)
    method = "gradient" if isinstance(kernel, Polynomial) else "fixed-point"
    asked = []
    monkeypatch.setattr(
        preimages, "residual_of", lambda *_, **options: asked.append(options) or residual_of(*_, **options)
    )
    found = preimage(components, a, method=method)
    monkeypatch.setattr(preimages, "WIDE", 1000)
    plain = preimage(components, a, method=method)
    assert [options["in_span"] for options in asked] == [True, False]
    torch.testing.assert_close(found.points, plain.points, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.residual, plain.residual, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", [RBF(40.0), Matern(2.5, 40.0), Polynomial(3, 0.01)], ids=ids)
def test_with_many_features_any_split_gives_the_same_points(kernel):
    components, _, a = make(kernel, center=True, n=40, d=170)
    method = "gradient" if isinstance(kernel, Polynomial) else "fixed-point"
    whole = preimage(components, a, method=method).points
    # Searches for so few points do not use the span of the training points.
    for rows in (slice(0, 1), slice(7, 11)):
        found = preimage(components, a[rows], method=method).points
        torch.testing.assert_close(found, whole[rows], rtol=0, atol=1e-9)
    torch.testing.assert_close(preimage(components, a, method=method, batch_size=3).points, whole, rtol=0, atol=1e-9)


def test_a_start_of_the_caller_is_not_forced_into_the_span_of_the_training_points():
    components, new, a = make(RBF(40.0), n=20, d=90)
    found = preimage(components, a, start=new, max_iter=1, tol=1e9)
    torch.testing.assert_close(found.points, new, rtol=0, atol=0)


def test_without_memory_a_step_is_that_of_the_published_iteration():
    components, new, a = make(RBF(0.5))
    weight = components.weights(a) * components.kernel(new, components.X)
    found = preimage(components, a, start=new, memory=0, max_iter=1)
    torch.testing.assert_close(found.points, weight @ components.X / weight.sum(1, keepdim=True))


def test_a_kernel_with_a_kink_has_no_newton_steps(monkeypatch):
    components, _, a = make(Laplacian(0.5))
    found = preimage(components, a)
    monkeypatch.setattr(preimages, "NEWTON_DIMENSIONS", 0)
    assert torch.equal(found.iterations, preimage(components, a).iterations)


@pytest.mark.parametrize(("sigma2", "c"), [(0.05, 3), (0.05, 20), (0.2, 20)])
def test_newton_steps_end_where_the_plain_iteration_ends(sigma2, c):
    X = torch.from_numpy(make_square_spiral(300, noise=0.1, random_state=0)[0])
    kernel = RBF(sigma2)
    components = Components(kernel, X, leading(kernel, X, c))
    a = components.coordinates(kernel(X, X))
    found = preimage(components, a)
    beta, x = components.weights(a), components.X[components.nearest_training_point(a)[0]]
    for _ in range(2000):
        weight = beta * kernel(x, X)
        x = weight @ X / weight.sum(1, keepdim=True)
    assert found.converged.all()
    torch.testing.assert_close(found.points, x, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.residual, components.residual(found.points, a), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kernel", SMOOTH, ids=ids)
def test_gradient_reaches_what_scipy_reaches_from_the_same_start(kernel):
    components, new, a = make(kernel)
    ours = preimage(components, a, method="gradient", start=new)
    for i in range(0, len(new), 5):

        def residual(x: np.ndarray, i: int = i) -> float:
            return float(components.residual(torch.from_numpy(x)[None], a[i : i + 1]))

        theirs = minimize(residual, new[i].numpy(), tol=1e-12)
        assert float(ours.residual[i]) <= theirs.fun + 1e-6


def test_fixed_point_satisfies_the_published_iteration():
    components, _, a = make(RBF(0.5))
    x = preimage(components, a).points
    weight = components.weights(a) * components.kernel(x, components.X)
    torch.testing.assert_close(weight @ components.X / weight.sum(1, keepdim=True), x, atol=1e-7, rtol=0)


@pytest.mark.parametrize("method", ["fixed-point", "gradient", "ridge"])
@pytest.mark.parametrize("kernel", [RBF(0.05), Laplacian(0.5), Matern(1.5, 0.2)], ids=ids)
def test_residual_never_rises_above_that_of_the_start(kernel, method):
    components, new, a = make(kernel, c=3)
    start = torch.cat([new[:15], 50 + new[15:]])
    result = preimage(components, a, method=method, start=start)
    assert (result.residual <= components.residual(start, a)).all()
    default = preimage(components, a, method=method)
    assert method == "ridge" or (default.residual <= components.nearest_training_point(a)[1]).all()
    torch.testing.assert_close(default.residual, components.residual(default.points, a), atol=1e-12, rtol=0)


def test_a_start_beyond_the_reach_of_the_kernel_restarts_at_a_training_point():
    components, _, a = make(RBF(0.5))
    far = preimage(components, a, start=torch.full((25, 2), 1e3).double())
    torch.testing.assert_close(far.points, preimage(components, a).points)


@pytest.mark.parametrize("method", ["fixed-point", "gradient", "ridge"])
def test_batch_splits_do_not_matter(method):
    components, _, a = make(RBF(0.3), center=True)
    whole = preimage(components, a, method=method)
    for size in (1, 7, 25):
        split = preimage(components, a, method=method, batch_size=size)
        torch.testing.assert_close(split.points, whole.points, atol=1e-9, rtol=0)


def test_a_batch_has_fewer_rows_where_points_have_many_features(monkeypatch):
    components, _, a = make(RBF(0.5), d=6)
    whole = preimage(components, a)
    sizes = []
    one_batch = preimages._one_batch
    monkeypatch.setattr(preimages, "_one_batch", lambda c, part, *_: sizes.append(len(part)) or one_batch(c, part, *_))
    monkeypatch.setitem(preimages.BATCH_NUMBERS, "cpu", 60)
    torch.testing.assert_close(preimage(components, a).points, whole.points, rtol=0, atol=1e-12)
    assert sizes == [10, 10, 5]


def test_many_and_few_components_take_the_same_road():
    # One uses sums with every component, the other forms β: the same numbers.
    X, kernel = points(40), RBF(0.5)
    few = Components(kernel, X, codes(40, 3))
    many = Components(kernel, X, torch.cat([codes(40, 3)] * 8, dim=1))
    k = kernel(points(10, seed=3), X)
    one, two = (preimage(c, c.coordinates(k)) for c in (few, many))
    torch.testing.assert_close(one.points, two.points, atol=1e-6, rtol=0)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(0.5), Polynomial(2, gamma=0.5)])
def test_weights_that_are_kept_do_not_change_a_search_nor_its_memory(kernel, center, monkeypatch):
    X, new = points(40), points(30, seed=3)
    components = Components(kernel, X, leading(kernel, X, 12, center), center=center)
    a = components.coordinates(kernel(new, X))
    method = "fixed-point" if kernel.is_isotropic else "gradient"
    whole = preimage(components, a, method=method).points
    formed = []
    weights = Components.weights
    monkeypatch.setattr(Components, "weights", lambda self, rows: formed.append(len(rows)) or weights(self, rows))
    monkeypatch.setattr(preimages, "MANY_COMPONENTS", 12)
    monkeypatch.setattr(preimages, "KEPT_NUMBERS", 400)
    monkeypatch.setattr(preimages, "KEPT_ROWS", 10)
    torch.testing.assert_close(preimage(components, a, method=method).points, whole, rtol=0, atol=1e-6)
    assert max(formed) == 10
    if not kernel.is_kinked:
        formed.clear()
        preimage(components, a, method=method, batch_size=15)
        assert not formed


def test_ridge_maps_projections_back_on_a_smooth_curve():
    angle = torch.linspace(0, 3, 150).double()
    X = torch.stack([angle.cos(), angle.sin()], dim=1)
    kernel = RBF(0.5)
    components = Components(kernel, X[::2], leading(kernel, X[::2], 6))
    result = preimage(components, components.coordinates(kernel(X[1::2], X[::2])), method="ridge")
    assert (result.points - X[1::2]).norm(dim=1).max() < 0.02


def test_feature_maps_and_cosine_have_gradients():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh()).double()
    for kernel in (FeatureMap(network, normalize=False), Cosine()):
        X = points(30)
        components = Components(kernel, X, torch.eye(30).double())
        result = preimage(components, components.coordinates(kernel(X, X).detach()), method="gradient", start=X * 1.1)
        assert result.residual.max() < 1e-8


@pytest.mark.parametrize("kernel", [FeatureMap(torch.nn.Linear(2, 5).double()), Cosine()], ids=ids)
def test_gradients_are_found_in_the_inference_mode_of_the_caller(kernel):
    components, new, coordinates = make(kernel)
    expected = preimage(components, coordinates.detach(), method="gradient", start=new).points
    with torch.inference_mode():
        # All tensors are made in this mode, of which none can take part in autograd.
        components, new, coordinates = make(kernel)
        found = preimage(components, coordinates, method="gradient", start=new).points
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_float32_converges_to_its_own_precision():
    X = points().float()
    kernel = RBF(0.5)
    components = Components(kernel, X, leading(kernel, X.double(), 4).float())
    a = components.coordinates(kernel(X, X))
    exact = Components(kernel, X.double(), components.H.double())
    expected = preimage(exact, exact.coordinates(kernel(X.double(), X.double())))
    result = preimage(components, a)
    assert result.points.dtype == torch.float32
    assert (result.points - expected.points).norm(dim=1).median() < 1e-3


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=ids)
def test_in_float32_no_search_turns_on_the_spot_until_its_evaluations_are_spent(kernel, center):
    X = points(d=3).float() + 0.5
    components = Components(kernel, X, leading(kernel, X.double(), 3, center).float(), center=center)
    new = points(200, 3, seed=7).float() + 0.5
    found = preimage(components, components.coordinates(kernel(new, X)), method="gradient")
    assert found.converged.all()


@pytest.mark.gpu
@pytest.mark.parametrize("d", [2, 12])
def test_a_gpu_finds_the_points_that_a_cpu_finds(d):
    components, new, a = make(RBF(0.5 * d), c=6, d=d, center=True)
    there = Components(components.kernel, components.X.cuda(), components.H.cuda(), center=True)
    found = preimage(there, a.cuda(), start=new.cuda())
    torch.testing.assert_close(found.points.cpu(), preimage(components, a, start=new).points, atol=1e-7, rtol=0)


def test_no_points_give_no_points():
    components, _, a = make(RBF(0.5))
    empty = preimage(components, a[:0])
    assert empty.points.shape == (0, 2)
    assert empty.converged.shape == empty.residual.shape == empty.iterations.shape == (0,)


class Opaque(Kernel):
    def __call__(self, x, y):
        return torch.minimum(x[:, None], y[None]).clamp(min=0).sum(-1)

    def diagonal(self, x):
        return x.clamp(min=0).sum(1)


def test_bad_input_gets_one_clear_sentence():
    components, new, a = make(RBF(0.5))
    X = components.X
    with pytest.raises(ValueError, match="method: unknown name 'magic', allowed are fixed-point"):
        preimage(components, a, method="magic")
    with pytest.raises(ValueError, match="start: expected one point per projection"):
        preimage(components, a, start=new[:3])
    with pytest.raises(ValueError, match="coordinates: expected 4 columns"):
        preimage(components, a[:, :2])
    with pytest.raises(ValueError, match="scores: expected 4 columns"):
        components.coordinates_from_scores(a[:, :2])
    with pytest.raises(ValueError, match="k_rows: expected 60 columns"):
        components.coordinates(a)
    with pytest.raises(ValueError, match="batch_size: expected an integer of at least 1, got 0"):
        preimage(components, a, batch_size=0)
    with pytest.raises(ValueError, match="tol: expected a positive number"):
        preimage(components, a, tol=0)
    for option, least, wrong in (("max_iter", 1, (0, 2.5)), ("memory", 0, (-1, "a")), ("batch_size", 1, (1.5,))):
        for value in wrong:
            with pytest.raises(
                (TypeError, ValueError), match=f"^{option}: expected an integer of at least {least}, got"
            ):
                preimage(components, a, **{option: value})
    with pytest.raises(TypeError, match=r"^tol: expected a positive number, got 'a'$"):
        preimage(components, a, tol="a")
    with pytest.raises(ValueError, match="H: expected one row of coefficients for each of 60"):
        Components(RBF(0.5), X, codes(10, 2))
    with pytest.raises(ValueError, match="components: expected at least one"):
        Components(RBF(0.5), X, X[:, :0])


@pytest.mark.parametrize("far", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("kernel", [Linear(), FeatureMap(lambda x: x, normalize=False)], ids=ids)
def test_samples_far_from_zero_have_the_pre_images_of_principal_components(kernel, far):
    X = points(60, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + far
    components = Components(kernel, X, leading(kernel, X - X.mean(dim=0), 2), center=True)
    found = preimage(components, components.coordinates(kernel(X, X)), method="gradient", start=X).points
    middle = X.mean(dim=0)
    axes = torch.linalg.svd(X - middle, full_matrices=False)[2][:2]
    expected = (X - middle) @ axes.T @ axes + middle
    # The rounding error of products of numbers of this size.
    atol = 1e-6 + 1e-15 * far**2
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("kernel", [Polynomial(2, 1.0), Linear()], ids=ids)
def test_fixed_point_names_what_it_needs(kernel):
    components, _, a = make(kernel)
    with pytest.raises(TypeError, match=r'"fixed-point" needs a kernel of distances .* use method="gradient"'):
        preimage(components, a)


def test_kernels_without_gradient_or_input_space_are_refused():
    X = points()
    for kernel in (Opaque(), FeatureMap(lambda x: x.detach(), normalize=False)):
        components = Components(kernel, X, codes(60, 3))
        a = components.coordinates(kernel(X, X))
        with pytest.raises(TypeError, match='"gradient" needs a kernel that can be differentiated'):
            preimage(components, a, method="gradient")
        assert preimage(components, a, method="ridge").points.shape == X.shape
    K = RBF(0.5)(X, X)
    components = Components(Precomputed(), K, codes(60, 3))
    with pytest.raises(TypeError, match="a precomputed Gram matrix has no input space"):
        preimage(components, components.coordinates(K))
