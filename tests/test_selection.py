from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from drkm.datasets import make_half_circle, make_square
from drkm.datasets.toy2d import CURVES
from drkm.estimator import ConstrDRKM, NoiseWarning
from drkm.kernels import RBF, FeatureMap, Laplacian, Matern
from drkm.selection import Selection, denoising_losses, perturbations, select
from drkm.selection.noise import _median_of_noise, estimate_noise, estimated_level

GRID = {"n_components": [30], "sigma2": [0.05, 0.2], "keep": [4, 6, 8, 10, 14, 20, 30]}


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_noise_is_estimated_to_a_tenth_on_a_curve(noise):
    X, _ = make_half_circle(1000, noise, random_state=3)
    assert estimate_noise(X) == pytest.approx(noise, rel=0.12)


def test_noise_is_not_taken_for_larger_on_a_long_curve_that_crosses_itself():
    rng = np.random.default_rng([0, 99])
    circle = np.exp(2j * np.pi * rng.random(1200))
    path = 1.5 * circle - 0.6 * circle**4
    X = np.column_stack([path.real, path.imag])
    found = estimated_level(X + 0.1 * rng.standard_normal(X.shape))
    assert found.sigma == pytest.approx(0.1, rel=0.1)
    assert not found.may_be_less


def test_noise_in_many_dimensions_comes_from_the_smallest_variances():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 40)) + 0.3 * rng.standard_normal((400, 40))
    assert estimate_noise(X) == pytest.approx(0.3, rel=0.1)
    assert estimated_level(X).may_be_less


@pytest.mark.parametrize("noise", [0.2, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_few_directions_below_a_gap_are_noise_alone(seed, noise):
    rng = np.random.default_rng(seed)
    u, v = rng.random((2, 400))
    sheet = np.column_stack([3 * u, 3 * v, np.sin(6 * u)]) @ np.linalg.qr(rng.standard_normal((7, 7)))[0][:3]
    assert estimate_noise(sheet + noise * rng.standard_normal(sheet.shape)) == pytest.approx(noise, rel=0.06)


def test_clusters_below_a_gap_are_not_noise():
    rng = np.random.default_rng(0)
    corners = np.vstack([np.eye(3), -np.eye(3)])[rng.integers(6, size=600)]
    X = np.column_stack([rng.choice([-5, 5], 600), corners])
    assert estimate_noise(X + 0.1 * rng.standard_normal(X.shape)) == pytest.approx(0.1, rel=0.15)


def test_noise_is_not_lost_where_no_sample_reaches_another():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 10)) @ rng.standard_normal((10, 80)) + 0.1 * rng.standard_normal((300, 80))
    assert estimate_noise(X) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize(("n", "d"), [(50, 200), (50, 51), (50, 49), (50, 30), (12, 500)])
def test_noise_is_found_in_few_samples_of_many_features(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) + 0.3 * rng.standard_normal((n, d))
    assert estimate_noise(X) == pytest.approx(0.3, rel=0.1)
    assert estimate_noise(np.hstack([X, np.full((n, 2 * d), 5.1)])) == estimate_noise(X)


def test_the_law_of_noise_has_the_median_of_its_eigenvalues():
    E = np.random.default_rng(0).standard_normal((400, 1000))
    assert _median_of_noise(0.4) == pytest.approx(np.median(np.linalg.svd(E, compute_uv=False)) ** 2 / 1000, rel=0.02)
    assert _median_of_noise(1e-12) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("shape", [(20, 60), (60, 20)])
def test_samples_that_show_no_noise_are_said_to(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    with pytest.warns(UserWarning, match="noise: half of the directions of X do not vary") as told:
        select(X, {"n_components": [2]}, refit=False)
    assert told[0].filename == __file__
    select(X, {"n_components": [2]}, refit=False, noise=0.5)


def test_estimated_risk_is_the_error_against_the_clean_points():
    noise = 0.1
    X, clean = make_square(4000, noise, random_state=5)
    omega = perturbations(X.shape, noise, 2, np.random.default_rng(0))
    nodes, weights = CURVES["square"]().quadrature(400)

    def posterior_mean(points: np.ndarray) -> np.ndarray:
        squared = ((points[:, None] - nodes) ** 2).sum(axis=-1)
        density = weights * np.exp(-squared / (2 * noise**2))
        return density @ nodes / density.sum(axis=1, keepdims=True)

    for denoise in (posterior_mean, lambda x: x, lambda x: 0.5 * x, lambda x: 0.1 * np.round(10 * x)):
        risk, reconstruction = denoising_losses(denoise, X, omega)
        truth = ((denoise(X) - clean) ** 2).sum(axis=1).mean()
        assert risk.mean() == pytest.approx(truth, rel=0.1)
        assert reconstruction.mean() == pytest.approx(((denoise(X) - X) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize(("d", "draws"), [(1, 1), (2, 2), (3, 7), (5, 2)])
def test_perturbations_have_one_length_and_orthogonal_directions(d, draws):
    omega = perturbations((20, d), 0.3, draws, np.random.default_rng(0))
    assert omega.shape == (draws, 20, d)
    products = np.einsum("amd,bmd->mab", omega, omega) / (d * 0.3**2)
    for first in range(0, draws, d):
        block = products[:, first : first + d, first : first + d]
        np.testing.assert_allclose(block, np.broadcast_to(np.eye(block.shape[1]), block.shape), atol=1e-12)


def test_as_many_perturbations_as_dimensions_leave_nothing_to_chance():
    A = np.array([[0.9, -0.4], [0.2, 0.3]])
    held, noise = np.random.default_rng(1).standard_normal((6, 2)), 0.2
    for seed in (0, 1):
        omega = perturbations(held.shape, noise, 2, np.random.default_rng(seed))
        risk, reconstruction = denoising_losses(lambda x: x @ A.T, held, omega)
        moved = 0.05 * noise**2 * (A**2).sum()
        np.testing.assert_allclose(risk, reconstruction + moved + 2 * noise**2 * np.trace(A) - 2 * noise**2)


def test_risk_chooses_a_model_that_denoises_and_reconstruction_one_that_does_not():
    X, clean = make_half_circle(500, 0.1, random_state=1)
    by_risk = select(X, GRID, noise="auto")
    by_reconstruction = select(X, GRID, noise=0.1, criterion="reconstruction")
    error = {"risk": ((by_risk.denoise(X) - clean) ** 2).sum(axis=1).mean()}
    with pytest.warns(NoiseWarning, match=r"denoise lets \d+% of small changes pass"):
        error["reconstruction"] = ((by_reconstruction.denoise(X) - clean) ** 2).sum(axis=1).mean()
    noisy = ((X - clean) ** 2).sum(axis=1).mean()
    assert error["risk"] < 0.65 * noisy
    assert error["reconstruction"] > 0.85 * noisy
    assert by_reconstruction.best_params["keep"] == 30
    assert len(by_risk.table) == 14
    assert by_risk.table[by_risk.best_index]["error"] == 0.0
    assert "| candidate |" in by_risk.to_markdown()


LAYERS = [
    {"n_components": [6, 10], "kernel": ["rbf", "matern"]},
    {"n_components": [(4, 4)], "eta": [(1.0, 30.0)], "keep": [(4, 2), (4, 4)]},
    {"n_components": [(4, 4)], "components": ["layer 1"]},
]


def test_layers_and_parameters_of_the_estimator_can_be_searched():
    X, _ = make_half_circle(100, 0.1, random_state=2)
    found = select(X, LAYERS, noise=0.1, draws=1)
    assert [row["n_components"] for row in found.table] == [6, 6, 10, 10, 6, 8, 4]
    assert found.table[4]["params"] == {"n_components": (4, 4), "eta": (1.0, 30.0), "keep": (4, 2)}


def test_candidates_that_are_written_alike_are_fitted_each():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    maps = [FeatureMap(lambda x, bend=bend: torch.cat([x, bend(x)], dim=1)) for bend in (torch.square, torch.sin)]
    # So large that their text has dots in place of the differences.
    inits = [np.roll(np.eye(45, 40), shift, axis=1) for shift in (10, 20)]
    for name, values in (("kernel", maps), ("init", inits)):
        grid = {"n_components": [2 if name == "kernel" else (20, 20)], "max_iter": [3]}
        together = select(X, {**grid, name: values}, noise=0.1, draws=1, refit=False).table
        alone = [select(X, {**grid, name: [value]}, noise=0.1, draws=1, refit=False).table[0] for value in values]
        assert [row["criterion"] for row in together] == [row["criterion"] for row in alone]
        assert together[0]["criterion"] != together[1]["criterion"]


def test_an_integer_keeps_so_many_components_of_each_layer():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    grid = {"n_components": [(4, 3)], "keep": [2, (2, 2)]}
    found = select(X, grid, noise=0.1, draws=1)
    assert [row["n_components"] for row in found.table] == [4, 4]
    assert found.table[0]["criterion"] == found.table[1]["criterion"]
    assert found.components == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_candidate_that_cannot_be_is_refused_before_the_first_is_fitted(monkeypatch):
    X, _ = make_half_circle(60, 0.1, random_state=2)
    monkeypatch.setattr(ConstrDRKM, "fit", lambda *_: pytest.fail("fitted"))
    for grid, sentence in (
        ({"n_components": [2, 99]}, "n_components: 99 components need at least 99 samples, got 45 samples"),
        ({"n_components": [2], "sigma2": [0.1, -1]}, "sigma2: expected a positive finite number, got -1"),
        ({"n_components": [2], "keep": [1, 3]}, r"keep: the layers have \[2\] components, got 3"),
        ({"n_components": [2], "components": [None, "layer 2"]}, "components: got 'layer 2', allowed are layer 1"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            select(X, grid)


def test_ctrl_c_ends_the_whole_selection():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    fits = []

    def press(entry):
        if entry["iteration"] == 1:
            fits.append(entry)
            signal.raise_signal(signal.SIGINT)

    grid = {"n_components": [(4, 2), (4, 3), (4, 4)]}
    with pytest.raises(KeyboardInterrupt):
        select(X, grid, noise=0.1, estimator=ConstrDRKM(callbacks=press))
    assert len(fits) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_processes_do_not_change_the_result():
    X, _ = make_half_circle(160, 0.1, random_state=2)
    alone = select(X, LAYERS, noise=0.1, draws=1)
    together = select(X, LAYERS, noise=0.1, draws=1, n_jobs=2)
    assert [row["params"] for row in alone.table] == [row["params"] for row in together.table]
    np.testing.assert_allclose(
        [row["criterion"] for row in alone.table], [row["criterion"] for row in together.table], rtol=1e-6
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_checkpoint_of_the_estimator_is_that_of_the_final_fit_alone(n_jobs, tmp_path):
    X, _ = make_half_circle(60, 0.1, random_state=2)
    path = tmp_path / "state"
    # Fits that run out of time leave their checkpoints.
    estimator = ConstrDRKM(checkpoint=path, max_seconds=1e-9, tol=1e-12)
    found = select(X, {"n_components": [(3, 2), (4, 2)]}, estimator=estimator, noise=0.1, n_jobs=n_jobs)
    assert [row["failure"] for row in found.table] == [None, None]
    assert estimator.checkpoint == path
    with pytest.warns(ConvergenceWarning):
        found.best_estimator.fit(X)
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        found.best_estimator.fit(X[1:])


def test_given_validation_points_are_not_trained_on():
    X, _ = make_half_circle(150, 0.1, random_state=2)
    found = select(X[:100], {"n_components": [6]}, validation=X[100:], noise=0.1)
    assert found.best_estimator.codes_.shape == (100, 6)
    assert select(X, {"n_components": [6]}, noise=0.1, refit=False).best_estimator is None


def test_plot_shows_the_curve_and_the_spectrum():
    pytest.importorskip("matplotlib").use("Agg")
    X, _ = make_half_circle(120, 0.1, random_state=2)
    figure = select(X, {"n_components": [(6, 4)], "keep": [(6, 0), (6, 4)]}, noise=0.1).plot()
    assert len(figure.axes) == 2
    assert len(figure.axes[1].lines) == 2
    empty = select(X, {"n_components": [3, 4]}, noise=0.1, refit=False).plot()
    assert [text.get_text() for text in empty.axes[1].texts] == ["no model was fitted: refit=False"]
    for axis in (*figure.axes, *empty.axes):
        assert all(tick == round(tick) for tick in axis.get_xticks())
    import matplotlib.pyplot as plt

    plt.close(figure)
    plt.close(empty)


def test_frames_and_tensors_are_answered_in_kind():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    expected = select(X, {"n_components": [4]}, noise=0.1)
    frame = pd.DataFrame(X, columns=["x", "y"])
    found = select(frame, {"n_components": [4]}, noise=0.1, validation=frame[:20])
    assert found.best_estimator.feature_names_in_.tolist() == ["x", "y"]
    pd.testing.assert_frame_equal(found.denoise(frame), pd.DataFrame(expected.denoise(X), columns=["x", "y"]))
    tensor = torch.tensor(X, requires_grad=True)
    cleaned = select(tensor, {"n_components": [4]}, noise=0.1).denoise(tensor)
    np.testing.assert_array_equal(cleaned.numpy(), expected.denoise(X))


def test_a_grid_may_name_parameters_of_kernels():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    base = ConstrDRKM(4, kernel=RBF())
    found = select(X, {"kernel__sigma2": [1e-3, 0.5]}, noise=0.1, estimator=base)
    assert found.best_estimator.kernels_ == (RBF(found.best_params["kernel__sigma2"]),)
    assert "table" not in repr(found)


def test_kernels_given_by_name_keep_their_kind_where_the_grid_has_bandwidths():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    grid = {"sigma2": [(1.0, 0.2)]}
    for kernel, expected in (
        (("laplacian", "matern"), (Laplacian(1.0), Matern(sigma2=0.2))),
        ((Laplacian(3.0), "matern"), (RBF(1.0), Matern(sigma2=0.2))),
        ((Laplacian(3.0), Matern()), (RBF(1.0), RBF(0.2))),
    ):
        found = select(X, grid, noise=0.1, estimator=ConstrDRKM((3, 2), kernel=kernel, tol=1e-3))
        assert found.best_estimator.kernels_ == expected
    with pytest.raises(ValueError, match="sigma2: the kernel linear has no bandwidth"):
        select(X, grid, noise=0.1, estimator=ConstrDRKM((3, 2), kernel=("linear", "rbf")))


def test_columns_of_validation_points_in_another_order_are_refused():
    frame = pd.DataFrame(make_half_circle(60, 0.1, random_state=2)[0], columns=["x", "y"])
    with pytest.raises(ValueError, match=r"^validation: expected the columns of X in their order, x, y, got y, x$"):
        select(frame, {"n_components": [4]}, noise=0.1, validation=frame[["y", "x"]])


def test_bad_input_gets_one_clear_sentence():
    X, _ = make_half_circle(60, 0.1, random_state=2)
    for samples in (X * np.nan, torch.tensor(X) * np.inf):
        with pytest.raises(ValueError, match=r"^X: contains NaN or infinity: drkm.Imputer fills in NaN$"):
            select(samples, GRID)
    with pytest.raises(ValueError, match=r"^validation: contains NaN or infinity: drkm.Imputer fills"):
        select(X, GRID, validation=X * np.nan)
    with pytest.raises(
        ValueError, match=r"^X: expected at least 4 samples as rows, got shape \(9, 4, 2\), reshape to \(9, 8\)$"
    ):
        select(np.zeros((9, 4, 2)))
    with pytest.raises(TypeError, match=r"^X: expected real numbers, got .*'a'"):
        select([["a", "b"]] * 6, GRID)
    with pytest.raises(TypeError, match=r"^X: expected real numbers, got .*(?i:sparse)"):
        select(scipy.sparse.csr_matrix(X), GRID)
    with pytest.raises(ValueError, match='noise: expected a positive number, one per column, or "auto", got None'):
        select(X, GRID, noise=None)
    with pytest.raises(ValueError, match="random_state: expected an integer of at least 0, got 'a'"):
        select(X, GRID, random_state="a")
    with pytest.raises(ValueError, match="sigma2: expected one per layer, 1 in all, got 2"):
        select(X, {"n_components": [4], "sigma2": [(1.0, 2.0)]}, noise=0.1)
    with pytest.raises(ValueError, match="criterion: unknown name 'magic', allowed are risk, reconstruction"):
        select(X, GRID, criterion="magic")
    with pytest.raises(ValueError, match=r"grid: unknown parameter 'depth', allowed are .*kernel.*keep"):
        select(X, {"depth": [1]})
    for grid in ("n_components", [("n_components", [3])]):
        with pytest.raises(TypeError, match="grid: expected lists of values by name of parameter"):
            select(X, grid)
    with pytest.raises(ValueError, match="n_jobs: expected a number of processes, or -1 for one per processor, got 0"):
        select(X, GRID, n_jobs=0)
    with pytest.raises(TypeError, match="grid: expected a list of values to try for n_components, got 3"):
        select(X, {"n_components": 3})
    with pytest.raises(ValueError, match="grid: expected at least one candidate"):
        select(X, {"n_components": []})
    with pytest.raises(ValueError, match='noise: expected a positive number, one per column, or "auto", got -1'):
        select(X, GRID, noise=-1)
    with pytest.raises(ValueError, match="validation: expected rows of 2 features"):
        select(X, GRID, validation=np.zeros((3, 5)))
    with pytest.raises(ValueError, match="keep: the layers have"):
        select(X, {"n_components": [4], "keep": [9]}, noise=0.1)
    for keep in ((1.5, 1), "ab", None, (1,)):
        with pytest.raises(ValueError, match=r"^keep: the layers have \[4, 2\] components, got"):
            select(X, {"n_components": [(4, 2)], "keep": [keep]}, noise=0.1)
    for one, other in (("keep", "components"), ("sigma2", "kernel")):
        with pytest.raises(ValueError, match=f"^grid: {one} and {other} exclude each other, give one of them$"):
            select(X, {"n_components": [4], one: [1], other: [None]})
    with pytest.raises(TypeError, match=r"^estimator: expected a ConstrDRKM, got 3$"):
        select(X, GRID, estimator=3)
    with pytest.raises(TypeError, match=r"^X: expected real numbers, got None$"):
        select(None, GRID)
    with pytest.raises(ValueError, match=r"^n_jobs: expected a number of processes, .* got 'a'$"):
        select(X, GRID, n_jobs="a")
    with pytest.raises(ValueError, match="holdout"):
        select(X, GRID, holdout=2)
    with pytest.raises(ValueError, match="draws"):
        select(X, GRID, draws=0)
    with pytest.raises(ValueError, match="refit: the chosen model was not fitted"):
        select(X, {"n_components": [4]}, noise=0.1, refit=False, estimator=ConstrDRKM()).denoise(X)


def test_a_candidate_that_the_data_refuse_does_not_end_the_others():
    far = np.random.default_rng(0).standard_normal((40, 2)) + 1e4
    with pytest.warns(
        FitFailedWarning, match=r"^1 of 2 candidates could not be fitted, the first: sigma2: 1e-16 "
    ) as told:
        found = select(far, {"n_components": [3], "sigma2": [1e-16, 2.0]}, noise=0.5)
    assert told[0].filename == __file__
    assert found.best_params == {"n_components": 3, "sigma2": 2.0}
    assert np.isnan(found.table[0]["criterion"])
    assert found.table[0]["failure"].startswith("sigma2: 1e-16 is too narrow")
    assert found.table[1]["failure"] is None
    assert "1e-16" not in found.to_markdown()
    assert list(found.curves().values()) == [[(3, found.table[1]["criterion"])]]


def test_a_candidate_that_failed_leaves_the_limits_of_the_plot_to_the_others():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    table = [
        {"params": {"sigma2": width}, "criterion": value, "n_components": 3, "failure": failure}
        for width, value, failure in ((0.1, np.nan, "too narrow"), (1, 1.0, None), (2, 1.1, None), (3, 99.0, None))
    ]
    figure = Selection(table, 1, None, None, 0.1, "risk", [np.ones(1)] * 8).plot()
    assert figure.axes[0].get_ylim()[1] == pytest.approx(1.25)
    plt.close(figure)


def test_a_grid_of_which_nothing_can_be_fitted_says_why():
    far = np.random.default_rng(0).standard_normal((40, 2)) + 1e4
    with pytest.raises(
        ValueError, match=r"^grid: no candidate could be fitted, the first: sigma2: 1e-16 is too narrow"
    ):
        select(far, {"n_components": [3], "sigma2": [1e-16, 1e-17]}, noise=0.5)
