import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial import KDTree

from drkm import datasets
from drkm.datasets import toy2d
from drkm.datasets.curves import Arc, Curve, Segment, Spiral

MAKERS = {name: getattr(datasets, f"make_{name}") for name in toy2d.CURVES}
EVERY = pytest.mark.parametrize("name", sorted(toy2d.CURVES))


@EVERY
def test_clean_points_lie_on_the_curve_and_noise_has_its_size(name):
    noisy, clean = MAKERS[name](4000, 0.1, random_state=0)
    assert noisy.shape == clean.shape == (4000, 2)
    assert toy2d.CURVES[name]().distance(clean).max() < 1e-12
    assert np.std(noisy - clean) == pytest.approx(0.1, rel=0.03)


@EVERY
def test_one_seed_gives_one_dataset_and_leaves_the_global_state_alone(name):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = MAKERS[name](50, 0.1, random_state=3), MAKERS[name](50, 0.1, random_state=3)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], MAKERS[name](50, 0.1, random_state=4)[0])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_no_noise_gives_the_clean_points():
    noisy, clean = datasets.make_square(10, 0.0, random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(noisy, clean)


@EVERY
def test_walking_along_the_curve_covers_its_length(name):
    curve = toy2d.CURVES[name]()
    s = np.linspace(0, curve.length, 200_001)
    steps = np.hypot(*np.diff(curve.points_at(s), axis=0).T)
    # A chord is never longer than its arc, except where one part ends and the next begins.
    jumps = steps > 1.001 * (s[1] - s[0])
    assert jumps.sum() <= 4
    assert steps[~jumps].sum() == pytest.approx(curve.length, rel=1e-4)


def test_lengths_are_those_of_the_shapes():
    assert toy2d.square().length == pytest.approx(8)
    assert toy2d.half_circle().length == pytest.approx(np.pi)
    fine = np.linspace(0, 4 * np.pi, 400_001)
    r = 1.2 * fine / (4 * np.pi)
    polyline = np.hypot(np.diff(r * np.cos(fine)), np.diff(r * np.sin(fine))).sum()
    assert toy2d.square_spiral().part_lengths == pytest.approx([8, polyline], rel=1e-9)
    assert toy2d.squares_spiral_ring().part_lengths == pytest.approx([8, 8, polyline, 2 * np.pi * 1.8], rel=1e-9)


@pytest.mark.parametrize(("name", "n"), [("square_spiral", 1001), ("squares_spiral_ring", 1002)])
def test_every_part_gets_its_share_of_the_points(name, n):
    curve = toy2d.CURVES[name]()
    clean = curve.sample(n, random_state=1)
    counts = [int((Curve([part]).distance(clean) < 1e-9).sum()) for part in curve.parts]
    assert sum(counts) == n
    assert max(counts) - min(counts) <= 1


def test_points_are_uniform_in_arc_length():
    theta = np.linspace(0, 4 * np.pi, 100_001)
    length = theta * np.sqrt(1 + theta**2) + np.arcsinh(theta)
    clean = Curve([[Spiral((0, 0), 1.2)]]).sample(20_000, random_state=0)
    rank = np.interp(np.hypot(*clean.T) / 1.2 * 4 * np.pi, theta, length / length[-1])
    assert np.abs(np.sort(rank) - (np.arange(20_000) + 0.5) / 20_000).max() < 0.012


def test_first_rows_are_a_fair_sample():
    clean = datasets.make_square_spiral(2000, 0.0, random_state=0)[1]
    assert 400 < (clean[:1000, 0] > 1.5).sum() < 600


def test_distance_to_the_spiral_agrees_with_a_careful_search():
    spiral = Spiral((0.5, -0.25), 1.2)
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-2, 2, (60, 2)), [[0.5, -0.25], [0.5001, -0.2501], [1.7, -0.25]]])
    points = np.concatenate([points, spiral.points_at(rng.uniform(0, spiral.length, 20)) + 1e-4])
    starts = np.linspace(0, spiral.length, 401)
    on_curve = spiral.points_at(starts)
    for point, distance in zip(points, spiral.distance(points), strict=True):

        def squared(s, point=point):
            return np.sum((spiral.points_at(np.array([s]))[0] - point) ** 2)

        coarse = np.hypot(*(on_curve - point).T)
        candidates = [coarse.min()]
        for i in np.argsort(coarse)[:5]:
            bounds = (starts[max(i - 1, 0)], starts[min(i + 1, 400)])
            candidates.append(
                np.sqrt(minimize_scalar(squared, bounds=bounds, method="bounded", options={"xatol": 1e-12}).fun)
            )
        assert distance == pytest.approx(min(candidates), abs=1e-9)


def test_distance_sees_ties_between_two_turns():
    spiral = Spiral((0, 0), 1.2)
    angle = np.linspace(0, 2 * np.pi, 101)
    between = 1.2 * (angle + np.pi) / (4 * np.pi)
    points = between[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    fine = spiral.points_at(np.linspace(0, spiral.length, 200_001))
    np.testing.assert_allclose(spiral.distance(points), KDTree(fine).query(points)[0], atol=1e-9)


@pytest.mark.parametrize(
    ("piece", "point", "expected"),
    [
        (Segment((0, 0), (2, 0)), (1, 3), 3),
        (Segment((0, 0), (2, 0)), (5, 4), 5),
        (Arc((1, 1), 2), (1, 1), 2),
        (Arc((0, 0), 1, 0, np.pi), (0, 3), 2),
        (Arc((0, 0), 1, 0, np.pi), (1, -2), 2),
        (Arc((0, 0), 1, 0, np.pi), (0, -1), np.sqrt(2)),
        (Spiral((0, 0), 1.2), (1.2 + 5, 0), 5),
    ],
)
def test_distance_by_hand(piece, point, expected):
    assert piece.distance(np.array([point], dtype=float))[0] == pytest.approx(
        expected, abs=1e-3 if piece.length > 7 else 1e-12
    )


@EVERY
def test_quadrature_integrates_the_distribution(name):
    curve = toy2d.CURVES[name]()
    nodes, weights = curve.quadrature(4000)
    assert weights.sum() == pytest.approx(1)
    clean = curve.sample(40_000, random_state=0)
    np.testing.assert_allclose(weights @ nodes, clean.mean(0), atol=0.02)
    np.testing.assert_allclose(weights @ nodes**2, (clean**2).mean(0), rtol=0.02)
    s = np.linspace(0, curve.length, 100_001)[:-1]
    assert curve.density_at(s).mean() * curve.length == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_samples": 0}, "n_samples: expected an integer of at least 1, got 0"),
        ({"n_samples": 2.5}, "n_samples"),
        ({"n_samples": True}, "n_samples"),
        ({"noise": -0.1}, "noise: .* got -0.1"),
        ({"noise": np.nan}, "noise"),
        ({"noise": "much"}, "noise"),
        ({"random_state": "seed"}, "random_state"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_refused(arguments, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        datasets.make_square(**arguments)


def test_bad_points_are_refused():
    curve = toy2d.square()
    with pytest.raises(ValueError, match="points: expected an array of shape"):
        curve.distance([1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        curve.distance([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="arc lengths between 0 and 8"):
        curve.points_at([9.0])
    with pytest.raises(ValueError, match="shares"):
        Curve([], [])
    assert curve.distance(np.empty((0, 2))).shape == (0,)
    assert toy2d.square_spiral().distance(np.empty((0, 2))).shape == (0,)
