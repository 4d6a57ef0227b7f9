"""Figures show the right numbers, which are read back from the drawing."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgba
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM, KernelPCA, plotting
from drkm.datasets import make_square
from drkm.plotting import pyplot
from few_digits import NEW, X

matplotlib.use("Agg")
WINE = load_wine()
TABLE = StandardScaler().fit_transform(WINE.data)
CLASSES = np.arange(100) % 10


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot().close("all")


@pytest.fixture(scope="module")
def digits():
    return ConstrDRKM((4, 2)).fit(X)


@pytest.fixture(scope="module")
def wine():
    return ConstrDRKM(3).fit(TABLE)


def heat_map(axis):
    return np.asarray(axis.images[0].get_array())


def texts(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_the_spectrum_is_a_share_of_the_trace_per_layer(digits):
    (axis,) = plotting.plot_spectrum(digits).axes
    for line, values, trace in zip(axis.lines, digits.eigenvalues_, digits.fitted_.traces, strict=True):
        np.testing.assert_allclose(line.get_ydata(), values / trace)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(len(values)))
    assert texts(axis.get_legend().get_texts()) == [
        f"layer {layer}: {values.sum() / trace:.1%} together"
        for layer, (values, trace) in enumerate(zip(digits.eigenvalues_, digits.fitted_.traces, strict=True), 1)
    ]


def test_the_spectrum_of_kernel_pca_is_its_eigenvalues():
    model = KernelPCA(5, kernel="rbf").fit(TABLE)
    np.testing.assert_allclose(plotting.plot_spectrum(model).axes[0].lines[0].get_ydata(), model.eigenvalues_)


def test_convergence_is_the_history_beside_the_tolerance(digits):
    (axis,) = plotting.plot_convergence(digits).axes
    stationarity, energy, tolerance = axis.lines
    np.testing.assert_array_equal(stationarity.get_ydata(), [entry["stationarity"] for entry in digits.history_])
    objective = np.array([entry["objective"] for entry in digits.history_])
    above = (objective - objective.min()) / abs(objective.min())
    np.testing.assert_allclose(energy.get_ydata(), above[above > 1e-16])
    assert tolerance.get_ydata()[0] == digits.tol
    assert axis.get_title(loc="left") == f"reached the tolerance: {digits.n_iter_} iterations"


def test_shares_are_labelled_in_percent_also_between_powers_of_ten():
    figure = plotting.plot_spectrum(ConstrDRKM(6).fit(TABLE))
    figure.canvas.draw()
    (axis,) = figure.axes
    labels = texts(axis.get_yticklabels(which="both"))
    assert len([label for label in labels if label]) > 2
    assert all(label == "" or label.endswith("%") for label in labels)


def test_long_names_of_columns_leave_room_for_the_map():
    names = [
        f"{name}, measured in milligrams per litre, number {number}" for number, name in enumerate(WINE.feature_names)
    ]
    axis = plotting.plot_reconstructions(ConstrDRKM(3).fit(TABLE), feature_names=names).axes[0]
    shown = texts(axis.get_yticklabels())
    assert shown[0] == "alcohol, measur…itre, number 0"
    assert max(map(len, shown)) == 30


def test_the_convergence_of_an_eigensolver_is_one_point():
    (axis,) = plotting.plot_convergence(ConstrDRKM(2).fit(TABLE)).axes
    assert [line.get_label() for line in axis.get_legend().get_lines()] == ["stationarity"]
    assert axis.get_title(loc="left") == "reached the tolerance: 0 iterations"
    assert all(tick == int(tick) for tick in axis.get_xticks())


def test_codes_are_a_scatter_matrix_with_one_colour_per_class(digits):
    figure = plotting.plot_codes(digits, labels=CLASSES, components=[(1, 0), (1, 2), (2, 1)])
    cells = np.array(figure.axes).reshape(3, 3)
    for (row, column), axis in np.ndenumerate(cells):
        drawn = [points.get_offsets() for points in axis.collections]
        if row > column:
            chosen = digits.codes_[:, [(0, 2, 5)[column], (0, 2, 5)[row]]]
            for value, points in enumerate(drawn):
                np.testing.assert_array_equal(points, chosen[value == CLASSES])
        else:
            assert drawn == []
    assert texts(cells[0, 2].get_legend().get_texts()) == list("0123456789")
    assert [axis.get_xlabel() for axis in cells[2]] == ["layer1_0", "layer1_2", "layer2_1"]


def test_many_numbers_are_a_scale_of_colours(digits):
    brightness = X.mean(axis=1)
    figure = plotting.plot_codes(digits, labels=brightness, components=[(1, 0), (1, 1)])
    np.testing.assert_array_equal(figure.axes[2].collections[0].get_array(), brightness)
    assert len(figure.axes) == 5


def test_codes_of_new_samples_are_those_of_transform(digits):
    figure = plotting.plot_codes(digits, NEW, ["a", "b"] * 10, components=[(1, 0), (1, 1)])
    np.testing.assert_array_equal(figure.axes[2].collections[1].get_offsets(), digits.transform(NEW)[1::2, :2])


def drawn_points(figure):
    """The numbers of points of each class in the lower left cell, by name."""
    shown = figure.axes[2].collections
    return {points.get_label(): len(points.get_offsets()) for points in shown}


def test_classes_with_similar_numbers_stay_apart_and_samples_without_a_number_are_drawn(digits):
    labels = np.array([1000001] * 30 + [1000002] * 30 + [np.nan] * 40)
    figure = plotting.plot_codes(digits, labels=labels, components=[(1, 0), (1, 1)])
    assert drawn_points(figure) == {"1000001": 30, "1000002": 30, "nan": 40}


def test_on_a_colour_scale_samples_without_a_number_are_grey(digits):
    brightness = X.mean(axis=1)
    brightness[:3] = np.nan
    figure = plotting.plot_codes(digits, labels=brightness, components=[(1, 0), (1, 1)])
    (points,) = figure.axes[2].collections
    points.update_scalarmappable()
    assert len(points.get_offsets()) == 100
    grey = to_rgba("#9A9A9A")
    assert [tuple(colour) == grey for colour in points.get_facecolors()] == [True] * 3 + [False] * 97


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (CLASSES[:5], "labels: expected one per sample, 100, got 5"),
        ([f"name {i}" for i in range(100)], "labels: 100 classes cannot be told apart by colour, at most 14 can"),
    ],
)
def test_labels_that_cannot_be_drawn_are_refused(digits, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        plotting.plot_codes(digits, labels=labels)


def test_a_model_is_recovered_by_itself_and_not_by_noise(digits):
    class Noise:
        layer_slices_ = digits.layer_slices_

        def transform(self, X):
            return np.random.RandomState(0).standard_normal((len(X), 6))

    (axis,) = plotting.plot_recovery([digits, digits], X).axes
    np.testing.assert_allclose([bar.get_height() for bar in axis.patches], 1.0)
    figure = plotting.plot_recovery([digits, Noise()], X)
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert max(heights) < 0.15
    # One dot for the noise as explained by the model, one for the model as explained by the noise.
    assert sum(len(line.get_ydata()) for line in figure.axes[0].lines) == 2 * 6


def test_what_is_recovered_is_the_r2_of_a_linear_regression_on_the_other_codes():
    one, other = (ConstrDRKM(3).fit(X[rows]) for rows in (slice(0, 50), slice(50, 100)))
    (axis,) = plotting.plot_recovery([one, other], NEW).axes
    codes = [model.transform(NEW) for model in (one, other)]
    for component, line in enumerate(np.transpose([line.get_ydata() for line in axis.lines])):
        expected = [
            LinearRegression().fit(known, sought[:, component]).score(known, sought[:, component])
            for sought, known in (codes, codes[::-1])
        ]
        np.testing.assert_allclose(line, expected, rtol=1e-9)
        assert axis.patches[component].get_height() == pytest.approx(np.mean(expected))


def test_models_with_other_layers_are_refused(digits, wine):
    with pytest.raises(ValueError, match="models: expected two or more with the same layers"):
        plotting.plot_recovery([digits, wine], X)


def test_reconstructions_of_images_go_from_the_smallest_error_to_the_largest(digits):
    figure = plotting.plot_reconstructions(digits, NEW, shape=(8, 8), most=5)
    cells = np.array(figure.axes[:15]).reshape(3, 5)
    found = digits.denoise(NEW)
    errors = np.sqrt(((NEW - found) ** 2).mean(axis=1))
    rows = np.argsort(errors)[[0, 5, 10, 14, 19]]
    assert [axis.get_title() for axis in cells[0]] == [f"row {row}\nerror {errors[row]:.2g}" for row in rows]
    for column, row in enumerate(rows):
        np.testing.assert_allclose(heat_map(cells[0, column]).ravel(), NEW[row], atol=1e-12)
        np.testing.assert_allclose(heat_map(cells[1, column]).ravel(), np.clip(found[row], 0, 1), atol=1e-12)
        np.testing.assert_allclose(heat_map(cells[2, column]).ravel(), found[row] - NEW[row])


def test_reconstructions_of_a_table_are_differences_in_standard_deviations(wine):
    names = WINE.feature_names
    axis, _ = plotting.plot_reconstructions(wine, TABLE * 1.0, feature_names=names, most=2).axes
    differences = wine.denoise(TABLE) - TABLE
    errors = np.sqrt((differences**2).mean(axis=1))
    rows = [errors.argmin(), errors.argmax()]
    np.testing.assert_allclose(heat_map(axis), differences[rows].T)
    assert texts(axis.get_yticklabels()) == names
    assert texts(axis.get_xticklabels()) == [f"row {row}\n{errors[row]:.2g}" for row in rows]


def test_a_traversal_of_images_is_what_traverse_gives_minus_its_base(digits):
    figure = plotting.plot_traversal(digits, shape=(8, 8), steps=3, span=1, base=7)
    cells = np.array(figure.axes[:16]).reshape(4, 4)
    effects = []
    for line in cells:
        index = int(line[0].texts[0].get_text().split("\n")[0].removeprefix("layer1_"))
        own = digits.codes_[:, index]
        moved = digits.traverse(1, index, own.mean() + own.std() * np.array([-1, 0, 1]), base=7)
        point = digits.traverse(1, index, [own[7]], base=7)
        for axis, change in zip(line[1:], moved - point, strict=True):
            np.testing.assert_allclose(heat_map(axis).ravel(), change, atol=1e-7)
        effects.append(float(((moved - point) ** 2).mean()))
    assert effects == sorted(effects, reverse=True)
    assert [axis.get_title() for axis in cells[0]] == ["sample", "-1 s.d.", "mean", "+1 s.d."]


def squares_that_turn_pink(count=24):
    """A square of the same mean over colours, from grey to pink, on black."""
    images = np.zeros((count, 4, 4, 3))
    images[:, 1:3, 1:3] = 0.4 + np.linspace(0, 1, count)[:, None, None, None] * np.array([0.2, -0.1, -0.1])
    return images.reshape(count, -1)


def test_a_traversal_of_colour_images_is_the_moved_images_between_black_and_white():
    model = ConstrDRKM(2, kernel="linear", center=True).fit(squares_that_turn_pink())
    figure = plotting.plot_traversal(model, shape=(4, 4, 3), steps=3, span=1, most=1, limits=(0.0, 2.0))
    sample, *moved = map(heat_map, figure.axes)
    own = model.codes_[:, 0]
    expected = model.traverse(1, 0, own.mean() + own.std() * np.array([-1, 0, 1])).reshape(3, 4, 4, 3)
    np.testing.assert_allclose(moved, np.clip(expected / 2, 0, 1), atol=1e-7)
    assert np.ptp([image[1, 1, 0] for image in moved]) > 0.04
    assert sample.max() < 0.35


def test_the_difference_of_colour_images_is_that_of_the_colour_that_differs_most():
    class Grey:
        n_features_in_ = 48

        def denoise(self, X):
            return np.repeat(X.reshape(len(X), 16, 3).mean(axis=2), 3, axis=1)

    figure = plotting.plot_reconstructions(Grey(), squares_that_turn_pink(), shape=(4, 4, 3), most=1)
    last = plotting.plot_reconstructions(Grey(), squares_that_turn_pink()[-1:], shape=(4, 4, 3), most=1)
    assert np.abs(heat_map(figure.axes[2])).max() < 1e-12
    np.testing.assert_allclose(heat_map(last.axes[2])[1:3, 1:3], -0.2)


def test_samples_are_called_by_their_names(wine):
    names = [f"bottle {row}" for row in range(len(TABLE))]
    axis = plotting.plot_reconstructions(wine, TABLE, row_names=names, most=2).axes[0]
    errors = np.sqrt(((TABLE - wine.denoise(TABLE)) ** 2).mean(axis=1))
    ends = [names[row] for row in (errors.argmin(), errors.argmax())]
    # Long names are shortened to their end, which is what differs.
    shown = [name if len(name) <= 10 else f"…{name[-9:]}" for name in ends]
    assert [head.split("\n")[0] for head in texts(axis.get_xticklabels())] == shown
    with pytest.raises(ValueError, match="row_names: expected one per sample, 178, got 2"):
        plotting.plot_reconstructions(wine, TABLE, row_names=["a", "b"])


def test_a_traversal_of_a_table_is_columns_by_values(wine):
    figure = plotting.plot_traversal(wine, feature_names=WINE.feature_names, components=[(1, 1)], steps=5)
    axis = figure.axes[0]
    own = wine.codes_[:, 1]
    base = int(np.linalg.norm(wine.codes_ - wine.codes_.mean(axis=0), axis=1).argmin())
    moved = wine.traverse(1, 1, own.mean() + own.std() * np.linspace(-2, 2, 5))
    np.testing.assert_allclose(heat_map(axis), (moved - wine.traverse(1, 1, [own[base]])).T, atol=1e-7)
    assert texts(axis.get_yticklabels()) == WINE.feature_names
    assert axis.get_title().startswith("layer1_1\neffect ")


@pytest.mark.filterwarnings("error")
def test_a_model_of_a_data_frame_is_drawn_with_the_names_of_its_columns():
    # The second name is that of a method of tensors.
    frame = pd.DataFrame(StandardScaler().fit_transform(load_wine().data[:, :4]), columns=["ash", "cpu", "hue", "acid"])
    model = ConstrDRKM(8, sigma2=0.5).fit(frame)
    for rows in (None, frame):
        figures = [plotting.plot_reconstructions(model, rows), plotting.plot_traversal(model, rows, most=1)]
        for figure in figures:
            assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(frame)
        plotting.plot_codes(model, rows)


@pytest.mark.parametrize("convert", [torch.tensor, lambda X: torch.tensor(X, requires_grad=True), pd.DataFrame])
def test_points_may_be_what_denoise_returns(convert):
    noisy, clean = make_square(20, noise=0.1, random_state=0)
    before, after = plotting.plot_cleaning(convert(noisy), convert(clean)).axes
    np.testing.assert_array_equal(before.collections[0].get_offsets(), noisy)
    np.testing.assert_array_equal(after.collections[0].get_offsets(), clean)
    _, axes = pyplot().subplots()
    plotting.scatter_before_after(axes, convert(noisy), convert(noisy), clean=convert(clean))
    for drawn, points in zip(axes.collections, (noisy, clean, noisy), strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), points)


def test_wide_tables_show_the_columns_that_change_most(digits):
    axis = plotting.plot_traversal(digits, components=[(1, 0)]).axes[0]
    names = texts(axis.get_yticklabels())
    assert len(names) == 30
    assert names == sorted(names, key=lambda name: int(name[1:]))


@pytest.mark.parametrize(
    "draw",
    [
        lambda model, axes: plotting.plot_spectrum(model, axes[0]),
        lambda model, axes: plotting.plot_convergence(model, axes[0]),
        lambda model, axes: plotting.plot_codes(model, components=[(1, 0), (1, 1)], axes=axes),
        lambda model, axes: plotting.plot_recovery([model, model], X, axes[0]),
        lambda model, axes: plotting.plot_reconstructions(model, NEW, axes=axes[0]),
        lambda model, axes: plotting.plot_traversal(model, axes=axes),
        lambda model, axes: plotting.plot_traversal(model, most=1, steps=3, shape=(8, 8), axes=axes),
    ],
)
def test_figures_are_drawn_on_the_axes_of_the_caller(digits, draw):
    figure, axes = pyplot().subplots(2, 2)
    before = {name: matplotlib.rcParams[name] for name in plotting.STYLE}
    assert draw(digits, axes.ravel()) is figure
    assert axes.ravel()[0].has_data()
    assert {name: matplotlib.rcParams[name] for name in plotting.STYLE} == before
    assert len(pyplot().get_fignums()) == 1


def test_too_few_axes_are_refused(digits):
    with pytest.raises(ValueError, match="axes: expected 4×4 axes, got 1"):
        plotting.plot_codes(digits, axes=pyplot().subplots()[1])


def test_a_model_without_its_samples_asks_for_some(tmp_path):
    from drkm import load
    from drkm.gram import Nystroem

    ConstrDRKM(3, gram=Nystroem(m=20)).fit(X).save(tmp_path / "model")
    model = load(tmp_path / "model")
    with pytest.raises(ValueError, match="X: the model has not kept its samples"):
        plotting.plot_reconstructions(model)
    assert plotting.plot_reconstructions(model, NEW, shape=(8, 8)).axes[0].has_data()


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda model: plotting.plot_traversal(model, steps=0), "steps: expected an integer of at least 1, got 0"),
        (lambda model: plotting.plot_traversal(model, most=0), "most: expected an integer of at least 1, got 0"),
        (lambda model: plotting.plot_traversal(model, span=np.nan), "span: expected a finite number, got nan"),
        (lambda model: plotting.plot_reconstructions(model, most=0), "most: expected an integer of at least 1, got 0"),
    ],
)
def test_nothing_to_draw_is_refused(digits, draw, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        draw(digits)


def test_images_of_another_size_are_refused(digits):
    with pytest.raises(ValueError, match="shape: expected that of images of 64 values, got 8×9"):
        plotting.plot_traversal(digits, shape=(8, 9))


def test_names_beside_images_have_room_for_all_their_letters():
    figure = plotting.image_grid(np.zeros((2, 2, 8, 8)), ["a", "two hundred components"], ["", ""])
    figure.canvas.draw()
    texts = [text for axis in figure.axes for text in axis.texts]
    assert max(len(text.get_text()) for text in texts) == 22
    assert all(text.get_window_extent().x0 >= 0 for text in texts)
