from __future__ import annotations

import re
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from drkm import ConstrDRKM
from drkm.inference.density import CodeDensity
from drkm.kernels import RBF, Cosine, FeatureMap, Laplacian, Linear, Matern, Polynomial, Precomputed
from drkm.solvers import TrustRegion
from drkm.training import progress, starts
from drkm.training.progress import ProgressBar
from few_digits import NEW, X, relative


@pytest.fixture(scope="module")
def model():
    return ConstrDRKM((6, 3)).fit(X)


# What a fit learns


def test_fitted_attributes_have_the_promised_shapes(model):
    assert model.codes_.shape == (100, 9)
    assert model.layer_slices_ == (slice(0, 6), slice(6, 9))
    assert [values.shape for values in model.eigenvalues_] == [(6,), (3,)]
    assert model.multipliers_.shape == (9, 9)
    assert model.n_features_in_ == 64
    assert model.converged_ is True
    assert [type(kernel) for kernel in model.kernels_] == [RBF, RBF]
    assert all(isinstance(kernel.sigma2, float) for kernel in model.kernels_)
    for name in ("objective_", "feasibility_", "stationarity_"):
        assert isinstance(getattr(model, name), float)
    assert model.feasibility_ < 1e-12
    assert model.stationarity_ <= 1e-6
    assert model.n_iter_ >= 1
    assert [entry["iteration"] for entry in model.history_] == list(range(model.n_iter_ + 1))
    assert {"objective", "stationarity", "feasibility", "seconds"} <= set(model.history_[-1])
    assert model.history_[-1]["objective"] == model.objective_


def energy_and_gradient(H, K1, sigma2, slices, eta=(1.0, 1.0)):
    """Dense oracle for two RBF layers, by the formulas of the paper."""
    H1, H2 = H[:, slices[0]], H[:, slices[1]]
    K2 = np.exp(-((H1[:, None] - H1[None]) ** 2).sum(2) / (2 * sigma2))
    W = K2 * (H2 @ H2.T)
    pull = (np.diag(W.sum(1)) - W) @ H1 / (sigma2 * eta[1])
    J = -0.5 * np.trace(H1.T @ K1 @ H1) / eta[0] - 0.5 * np.trace(H2.T @ K2 @ H2) / eta[1]
    return J, np.hstack([-K1 @ H1 / eta[0] + pull, -K2 @ H2 / eta[1]])


@pytest.mark.parametrize("axes", ["ritz", "varimax", "ica", None])
@pytest.mark.parametrize("eta", [(1.0, 1.0), (1.0, 3.0)])
def test_codes_are_stationary_with_the_reported_multipliers(axes, eta):
    fitted = ConstrDRKM((6, 3), kernel=[RBF(3.0), RBF(0.1)], axes=axes, eta=eta).fit(X)
    K1 = np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 6)
    H = fitted.codes_
    J, G = energy_and_gradient(H, K1, 0.1, fitted.layer_slices_, eta)
    np.testing.assert_allclose(fitted.objective_, J, rtol=1e-10)
    np.testing.assert_allclose(H.T @ H, np.eye(9), atol=1e-12)
    assert np.linalg.norm(G - H @ fitted.multipliers_) <= 1e-6 * np.linalg.norm(G)
    np.testing.assert_allclose(fitted.multipliers_, fitted.multipliers_.T, atol=1e-10)


def test_objective_does_not_depend_on_axes_and_ritz_axes_are_sorted_eigenvectors():
    fits = [ConstrDRKM((6, 3), axes=axes).fit(X) for axes in ("ritz", "varimax", "ica", None)]
    assert len({fit.objective_ for fit in fits}) == 1
    ritz = fits[0]
    kernel = ritz.kernels_[0]
    T = ritz.codes_[:, :6].T @ kernel(torch.tensor(X), torch.tensor(X)).numpy() @ ritz.codes_[:, :6]
    np.testing.assert_allclose(T, np.diag(ritz.eigenvalues_[0]), atol=1e-9)
    assert (np.diff(ritz.eigenvalues_[0]) <= 0).all()
    columns = ritz.codes_[np.abs(ritz.codes_).argmax(axis=0), range(9)]
    assert (columns > 0).all()


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (RBF(3.0), {"kernel": "rbf", "gamma": 1 / 6}),
        (Linear(), {"kernel": "linear"}),
        (Polynomial(2, 0.1, 1.0), {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0}),
        ("cosine", {"kernel": "cosine"}),
    ],
    ids=["rbf", "linear", "polynomial", "cosine"],
)
def test_one_centred_layer_is_kernel_pca(kernel, options):
    fitted = ConstrDRKM(5, kernel=kernel, center=True).fit(X)
    rival = KernelPCA(5, eigen_solver="dense", **options).fit(X)
    np.testing.assert_allclose(fitted.eigenvalues_[0], rival.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs((fitted.codes_ * rival.eigenvectors_).sum(0)), 1, atol=1e-8)
    expected = rival.transform(NEW) / np.sqrt(rival.eigenvalues_)
    np.testing.assert_allclose(np.abs(fitted.transform(NEW)), np.abs(expected), atol=1e-7)
    np.testing.assert_allclose(fitted.objective_, -0.5 * rival.eigenvalues_.sum(), rtol=1e-10)


# Summary, warnings, progress, callbacks


def test_summary_names_layers_kernels_shares_certificate_and_time():
    fitted = ConstrDRKM((6, 3), kernel=[RBF(3.0), Matern(1.5, 0.25)], axes="varimax").fit(X)
    text = fitted.summary()
    assert "100 samples, 64 features, 9 components in 2 layers" in text
    for piece in ("RBF(sigma2=3)", "Matern(nu=1.5, sigma2=0.25)", "axes: varimax", "converged in", "stationarity"):
        assert piece in text
    assert re.search(r"feasibility \d", text)
    assert re.search(r"\d+ evaluations, \d+\.\d\d s", text)
    assert f"{fitted.eigenvalues_[0][0] / 100:.1%}" in text
    assert f"together {fitted.eigenvalues_[1].sum() / 100:.1%}" in text
    assert f"{fitted.objective_:.8g}" in text
    assert "cannot be determined" not in text


def test_summary_points_at_a_small_effective_sample_size():
    few, many = ConstrDRKM((6, 3), eta=1.0).fit(X), ConstrDRKM((6, 3)).fit(X)
    advice = "a larger eta or sigma2 of layer 2 spreads it"
    assert advice in few.summary()
    assert "  effective n  " in few.summary().splitlines()[1]
    assert advice not in many.summary()
    for model in (few, many):
        shares = (model.codes_[:, :6] ** 2).sum(axis=1) / 6
        row = model.summary().splitlines()[2].split()
        assert row[:3] == ["1", "6", f"{1 / (shares**2).sum():.0f}"]
    # The same for codes off the manifold.
    with pytest.warns(ConvergenceWarning):
        paper = ConstrDRKM.paper((6, 3), sigma2=50, random_state=0).fit(X)
    lengths = (paper.codes_[:, :6] ** 2).sum(axis=1)
    assert paper.summary().splitlines()[2].split()[2] == f"{lengths.sum() ** 2 / (lengths**2).sum():.0f}"
    # Four samples hold a layer with as many components: the identity in the Gram matrix, nothing elsewhere.
    gram = np.diag([1.0] * 4 + [1e-3] * 16)
    assert ConstrDRKM(4, kernel="precomputed").fit(gram).summary().splitlines()[2].split()[:3] == ["1", "4", "4"]


def test_codes_after_a_fit_that_did_not_converge_are_doubted():
    model = ConstrDRKM((6, 3), init="random", random_state=0, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model.fit(X)
    lost = model.encode(NEW).unbounded.sum()
    assert lost > 0
    told = f"codes of {lost} of {len(NEW)} points are not determined, .*: fit to convergence or"
    with pytest.warns(ConvergenceWarning, match=told) as caught:
        model.transform(NEW)
    assert caught[0].filename == __file__
    settled = ConstrDRKM((6, 3)).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settled.transform(NEW)


def test_summary_of_several_starts_shows_their_energies():
    model = ConstrDRKM((6, 3), n_init=3, random_state=0, solver=TrustRegion()).fit(X)
    ended, abandoned = re.search(
        r"best of 3 starts: ([^(\n]*)(?:\((\d+) abandoned behind the best\))?", model.summary()
    ).groups()
    assert len(ended.split(", ")) + int(abandoned or 0) == 3
    # Its iterations, evaluations and seconds are those of one of them.
    assert f"{model.n_iter_ + 1} evaluations" in model.summary()


def test_summary_counts_one_thing_as_one():
    assert "100 samples, 1 feature, 1 component in 1 layer\n" in ConstrDRKM(1).fit(X[:, 2:3]).summary()


def test_the_summary_says_where_a_feature_map_and_not_the_option_gives_the_axes():
    below = "axes: ica (those of layer 1 are given by the feature map above)"
    deep = ConstrDRKM((3, 2), kernel=("rbf", FeatureMap(torch.cos)), eta=(1, 10), axes="ica", tol=1.0).fit(X)
    assert below in deep.summary()
    first = ConstrDRKM((3, 2), kernel=(FeatureMap(torch.cos), "rbf"), eta=1.0, axes="ica", tol=1.0).fit(X[:, :3])
    assert "axes: ica\n" in first.summary()


def test_too_few_iterations_warn_with_advice():
    model = ConstrDRKM((6, 3), init="orthogonal", random_state=0, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"did not converge .*max_iter.*: raise max_iter, loosen tol"):
        model.fit(X)
    assert model.converged_ is False
    assert model.n_iter_ == 1
    assert model.feasibility_ < 1e-12
    expected = r"did not converge \(max_iter after 1 iteration, .*\), \d+ evaluations, .* s: raise max_iter, loosen tol"
    assert re.search(expected, model.summary())
    assert np.isfinite(model.encode(NEW).codes).all()


def test_a_layer_that_another_drowns_out_is_named():
    words = r"layer 2 has \de-\d\d of the energy, too little to be trained: divide X by its typical size, or choose eta"
    model = ConstrDRKM((6, 3), kernel=("linear", "rbf"))
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(1e4 * X)
    assert re.search(words, model.summary())
    # Following the advice helps.
    for again in (model.fit(X), model.set_params(eta=(1e8, 1)).fit(1e4 * X)):
        assert again.converged_
        assert "of the energy" not in again.summary()


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Laplacian(), "Laplacian in layer 2 has a kink .*: use RBF or Matern or a larger eta there"),
        (Cosine(), "Cosine in layer 2 jumps .*: use RBF or Matern or a larger eta there"),
        (FeatureMap(lambda x: torch.cat([x, x**2], 1)), "FeatureMap in layer 2 jumps .*: add a constant .* eta there"),
    ],
    ids=["laplacian", "cosine", "map"],
)
def test_a_deep_kernel_with_kinks_is_named_where_training_stops(kernel, words):
    model = ConstrDRKM((6, 3), kernel=("rbf", kernel), eta=1.0, max_iter=300)
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(X)
    assert re.search(words, model.summary())
    # Following the advice helps.
    assert model.set_params(eta=(1, 10), max_iter=1000).fit(X).converged_
    with pytest.warns(ConvergenceWarning, match=rf"{words}, or raise max_iter"):
        model.set_params(max_iter=2).fit(X)


def test_too_little_time_warns_with_advice():
    with pytest.warns(ConvergenceWarning, match=r"max_seconds .*: raise max_seconds"):
        ConstrDRKM((6, 3), init="orthogonal", random_state=0, max_seconds=1e-9).fit(X)


def test_a_bar_that_cannot_move_yet_says_what_is_done(capsys):
    bar = ProgressBar(1e-6)
    bar.tell("forming K_1")
    bar.close()
    assert "0%|          | 00:00 forming K_1" in capsys.readouterr().err


def test_a_fit_tells_its_bar_every_step_before_the_first_iteration(monkeypatch):
    told = []
    monkeypatch.setattr(ProgressBar, "tell", lambda bar, what: told.append(what))
    ConstrDRKM((6, 3), verbose=1).fit(X)
    before = ["kernels", "kernels", "forming K_1", "weights of the layers", "starting point", "first iteration"]
    assert told == [*before, "axes and multipliers"]


def test_the_clock_of_a_bar_counts_from_the_beginning_of_the_fit(capsys):
    ProgressBar(1e-6, began=time.perf_counter() - 75).close()
    assert "01:15 kernels" in capsys.readouterr().err


def test_the_clock_of_a_bar_goes_on_in_a_terminal_while_a_step_takes_long(monkeypatch):
    shown, found, refresh = threading.Event(), starts.kernel_pca, tqdm.refresh

    def slow(energy):
        assert shown.wait(60), "the bar was not shown again"
        return found(energy)

    def seen(bar, *given, **more):
        if threading.current_thread() is not threading.main_thread() and bar.desc == "starting point":
            shown.set()
        return refresh(bar, *given, **more)

    monkeypatch.setattr(progress, "TICK", 0.001)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(starts, "kernel_pca", slow)
    monkeypatch.setattr(tqdm, "refresh", seen)
    before = threading.active_count()
    ConstrDRKM((6, 3), verbose=1).fit(X)
    assert threading.active_count() == before


def test_verbose_shows_a_progress_bar_and_silence_is_the_default(capsys):
    ConstrDRKM((6, 3)).fit(X)
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == ""
    ConstrDRKM((6, 3), verbose=1).fit(X)
    loud = capsys.readouterr()
    assert loud.out == ""
    assert "fit 100%" in loud.err
    assert "stationarity" in loud.err


def test_a_progress_bar_fits_into_80_columns(capsys):
    bar = ProgressBar(1e-6)
    bar({"iteration": 12345, "objective": -123456.789, "stationarity": 1.5e-5})
    bar.close()
    shown = capsys.readouterr().err.rstrip("\n").split("\r")[-1]
    assert shown.endswith("iteration 12345, stationarity 1.5e-05, J -123457")
    assert len(shown) <= 80


def test_callbacks_see_every_entry_of_the_history():
    first, second = [], []
    fitted = ConstrDRKM((6, 3), callbacks=[first.append, second.append]).fit(X)
    assert first == second == fitted.history_
    single = []
    ConstrDRKM((6, 3), callbacks=single.append).fit(X)
    assert [entry["objective"] for entry in single] == [entry["objective"] for entry in first]


def test_a_callback_that_returns_true_stops_the_fit():
    model = ConstrDRKM((6, 3), init="orthogonal", random_state=0, callbacks=lambda entry: entry["iteration"] >= 2)
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 iterations"):
        model.fit(X)
    assert model.n_iter_ == 2


def test_ctrl_c_returns_the_best_point_so_far():
    def interrupt(entry):
        if entry["iteration"] == 3:
            raise KeyboardInterrupt

    model = ConstrDRKM((6, 3), init="orthogonal", random_state=0, callbacks=interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted after 3 iterations"):
        model.fit(X)
    assert model.feasibility_ < 1e-12
    assert model.objective_ == min(entry["objective"] for entry in model.history_)


# Starts and reproducibility


@pytest.mark.parametrize("init", ["kpca", "orthogonal", "random"])
def test_n_init_keeps_the_lowest_energy(init):
    kernel = [RBF(2.0), RBF(0.02)]
    fitted = ConstrDRKM((6, 3), kernel=kernel, init=init, n_init=4, random_state=0).fit(X)
    energies = [float(value) for value in re.search(r"best of 4 starts: ([^(\n]*)", fitted.summary())[1].split(", ")]
    assert fitted.objective_ == pytest.approx(min(energies), rel=1e-5)
    assert fitted.history_[-1]["objective"] == fitted.objective_
    np.testing.assert_allclose(fitted.transform(X), fitted.codes_, atol=1e-6)


def test_an_array_is_where_training_begins(model):
    again = ConstrDRKM((6, 3), init=model.codes_).fit(X)
    assert again.n_iter_ <= 3
    np.testing.assert_allclose(again.objective_, model.objective_, rtol=1e-12)
    tensor = ConstrDRKM((6, 3), init=torch.tensor(model.codes_)).fit(X)
    np.testing.assert_array_equal(tensor.codes_, again.codes_)


def test_two_runs_are_bit_identical(model):
    again = ConstrDRKM((6, 3)).fit(X)
    np.testing.assert_array_equal(again.codes_, model.codes_)
    assert again.objective_ == model.objective_
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(again.denoise(NEW), model.denoise(NEW))


@pytest.mark.parametrize("options", [{"init": "orthogonal"}, {"init": "random"}, {"n_init": 2}], ids=str)
def test_random_state_decides_random_starts_and_global_seeds_do_not(options):
    make = lambda seed: ConstrDRKM((6, 3), random_state=seed, max_iter=5, tol=0, **options)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        first = make(0).fit(X).codes_
        torch.manual_seed(2)
        np.random.seed(2)  # noqa: NPY002
        np.testing.assert_array_equal(make(0).fit(X).codes_, first)
        np.testing.assert_array_equal(make(np.random.RandomState(0)).fit(X).codes_, first)
        if "init" in options:
            assert relative(make(1).fit(X).codes_, first) > 1e-3


@pytest.mark.parametrize(
    "options", [{}, {"init": "random", "random_state": 0}, {"axes": "ica"}, {"n_init": 2}], ids=str
)
def test_the_global_random_states_are_left_alone(options):
    if "n_init" in options:
        options = {**options, "random_state": 3}
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), np.random.get_state()[2]  # noqa: NPY002
    threads, default = torch.get_num_threads(), torch.get_default_dtype()
    fitted = ConstrDRKM((4, 2), **options).fit(X)
    fitted.transform(NEW)
    fitted.denoise(NEW)
    fitted.sample(3, random_state=0)
    after = torch.get_rng_state(), np.random.get_state()[1], np.random.get_state()[2]  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2] == after[2]
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, default)


@pytest.mark.parametrize("name", ["float32", torch.float32])
def test_float32_trains_in_single_precision_and_agrees(model, name):
    single = ConstrDRKM((6, 3), dtype=name, init=model.codes_).fit(X)
    assert single.codes_.dtype == np.float32
    assert single.transform(NEW).dtype == np.float32
    assert single.denoise(NEW).dtype == np.float32
    np.testing.assert_allclose(single.objective_, model.objective_, rtol=1e-5)
    assert relative(single.transform(X), single.codes_) < 1e-3


def test_float32_stops_where_rounding_ends_the_progress(model):
    single = ConstrDRKM((6, 3), dtype="float32").fit(X)
    assert single.converged_
    assert single.n_iter_ < 4 * model.n_iter_ + 50
    np.testing.assert_allclose(single.objective_, model.objective_, rtol=1e-4)


def test_float32_data_are_trained_in_double_by_default(model):
    fitted = ConstrDRKM((6, 3)).fit(X.astype(np.float32))
    assert fitted.codes_.dtype == np.float64
    np.testing.assert_allclose(fitted.objective_, model.objective_, rtol=1e-6)


@pytest.mark.parametrize(("rows", "inside"), [(len(X), 1), (2500, 2)])
def test_small_fits_keep_to_one_thread(rows, inside):
    seen = []
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        data = np.random.RandomState(0).randn(rows, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ConstrDRKM((4, 2), max_iter=1, callbacks=lambda _: seen.append(torch.get_num_threads())).fit(data)
        assert set(seen) == {inside}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


# Kernels given in other ways


@pytest.mark.parametrize("n_components", [4, (6, 3)])
@pytest.mark.parametrize("center", [False, True])
def test_a_precomputed_gram_matrix_equals_its_kernel(n_components, center):
    kernel = RBF(3.0)
    K = kernel(torch.tensor(X), torch.tensor(X)).numpy()
    k_new = kernel(torch.tensor(NEW), torch.tensor(X)).numpy()
    direct = ConstrDRKM(n_components, kernel=kernel if n_components == 4 else [kernel, "rbf"], center=center).fit(X)
    given = Precomputed() if n_components == 4 else ["precomputed", "rbf"]
    fitted = ConstrDRKM(n_components, kernel=given, center=center).fit(K)
    assert relative(fitted.codes_, direct.codes_) < 1e-6
    assert relative(fitted.transform(k_new), direct.transform(NEW)) < 1e-6
    assert fitted.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("center", [False, True])
def test_a_feature_map_equals_the_kernel_it_stands_for(center):
    def quadratic(x):
        return (x[:, :, None] * x[:, None, :]).flatten(1)

    mapped = ConstrDRKM(4, kernel=FeatureMap(quadratic, normalize=False), center=center).fit(X[:, 20:30])
    direct = ConstrDRKM(4, kernel=Polynomial(2, 1.0, 0.0), center=center).fit(X[:, 20:30])
    np.testing.assert_allclose(mapped.eigenvalues_[0], direct.eigenvalues_[0], rtol=1e-8)
    assert relative(mapped.transform(NEW[:, 20:30]), direct.transform(NEW[:, 20:30])) < 1e-6


def test_a_feature_map_in_both_layers_fixes_the_axes_below_it():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh())
    fitted = ConstrDRKM((6, 3), kernel=["rbf", FeatureMap(module)], eta=1.0).fit(X)
    again = ConstrDRKM((6, 3), kernel=["rbf", FeatureMap(module)], eta=1.0, axes=None).fit(X)
    assert fitted.converged_
    np.testing.assert_array_equal(fitted.codes_[:, :6], again.codes_[:, :6])
    # Small codes make this map nearly linear, so that its energy determines them less sharply: the encoder, which knows
    # the remaining gradient, solves to 1e-10 with multipliers whose condition number is 2e5 here.
    sharpness = np.abs(np.linalg.eigvalsh(fitted.multipliers_))
    assert relative(fitted.transform(X), fitted.codes_) <= 1e-10 * sharpness.max() / sharpness.min() < 1e-3


def test_the_trust_region_takes_explicit_features_without_a_warning(model):
    def waves(u):
        return torch.cat([torch.cos(4 * u), torch.sin(4 * u)], dim=1)

    options = {"kernel": ["rbf", FeatureMap(waves)], "init": model.codes_}
    newton = ConstrDRKM((6, 3), solver="trust-region", **options).fit(X)
    assert newton.converged_
    np.testing.assert_allclose(newton.objective_, ConstrDRKM((6, 3), **options).fit(X).objective_, rtol=0.05)


def test_training_a_feature_map_lowers_the_energy_and_leaves_the_callers_module_untouched():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh())
    before = {name: value.clone() for name, value in module.state_dict().items()}
    fixed = ConstrDRKM((4, 2), kernel=[FeatureMap(module), "rbf"]).fit(X)
    trained = ConstrDRKM((4, 2), kernel=[FeatureMap(module, trainable=True), "rbf"]).fit(X)
    assert trained.objective_ < fixed.objective_
    assert trained.converged_
    assert relative(trained.transform(X), trained.codes_) < 1e-6
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.dtype == torch.float32
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.filterwarnings("ignore:ConstrDRKM. the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
def test_learning_bandwidths_lowers_the_energy_within_bounds():
    kernel = [RBF(3.0), RBF(0.05)]
    fixed = ConstrDRKM((6, 3), kernel=kernel).fit(X)
    learned = ConstrDRKM((6, 3), kernel=kernel, learn_bandwidth=True).fit(X)
    assert learned.objective_ < fixed.objective_
    assert learned.converged_
    for found, begin in zip(learned.kernels_, kernel, strict=True):
        assert begin.sigma2 / 1.01e4 < found.sigma2 < 1.01e4 * begin.sigma2
    assert any(found.sigma2 != begin.sigma2 for found, begin in zip(learned.kernels_, kernel, strict=True))
    assert kernel == [RBF(3.0), RBF(0.05)]


# The published choices


def test_paper_makes_every_choice_as_published():
    chosen = ConstrDRKM.paper((10, 5), 50.0, gamma=2.0, random_state=1).get_params()
    assert (chosen["kernel"], chosen["sigma2"]) == ("rbf", [50.0, 50.0])
    assert (chosen["solver"], chosen["encoder"], chosen["axes"]) == ("penalty", "projection", None)
    assert (chosen["init"], chosen["learn_bandwidth"], chosen["random_state"]) == ("random", True, 1)
    assert chosen["eta"] / chosen["lam"] == 2.0
    assert ConstrDRKM.paper(3, 2.0).sigma2 == [2.0]
    assert ConstrDRKM.paper((3, 2), (2.0, 0.5)).sigma2 == [2.0, 0.5]
    assert ConstrDRKM.paper((3, 2), np.float32(2.0)).sigma2 == [2.0, 2.0]
    assert ConstrDRKM.paper((3, 2), 2.0, learn_bandwidth=False, max_iter=7).max_iter == 7


def test_paper_fits_and_says_that_its_schedule_ended():
    model = ConstrDRKM.paper((4, 2), 5.0, init="kpca", random_state=0)
    with pytest.warns(ConvergenceWarning, match="the published schedule of penalties ended before the tolerance"):
        model.fit(X[:40])
    assert model.codes_.shape == (40, 6)
    assert np.isfinite(model.transform(X[40:50])).all()


def test_drawing_leaves_the_density_that_threads_share_as_it_was():
    density = CodeDensity(torch.tensor(np.random.RandomState(0).randn(60, 3)))
    before = density.mixture.random_state
    drawn = density.draw(4, np.random.RandomState(1))
    assert density.mixture.random_state is before
    torch.testing.assert_close(density.draw(4, np.random.RandomState(1)), drawn, rtol=0, atol=0)
