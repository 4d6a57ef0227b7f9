from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.experiments.denoising import (
    _digits_run,
    _methods,
    _panels,
    _panels_run,
    _problems,
    digits,
    figure1,
    figure2,
    figure3,
    table1,
)
from drkm.experiments.denoising._problems import BOUND, FIRST_MEASURE, MEAN_SHIFT, NOISY, ONE_LAYER, ORDER
from drkm.experiments.denoising._protocol import best, candidates, protocol_models, reconstruct
from drkm.experiments.denoising._table1_claims import AS_PUBLISHED
from drkm.experiments.denoising._verdicts import smaller
from drkm.experiments.output import markdown, save_table, write_bytes
from drkm.experiments.registry import TASKS
from drkm.experiments.reproduce import write_section
from drkm.experiments.section import Claim, Verdict
from drkm.runs.configuration import SCALES, Configuration, Results
from drkm.selection import select
from drkm.strange_data import StrangeDataWarning

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

EXPERIMENTS = [module.EXPERIMENT for module in (table1, figure1, figure2, figure3, digits)]
TINY = replace(
    _problems.SIZES["quick"],
    n_train=60,
    n_validation=30,
    widths=(12.0,),
    rival_widths=(12.0,),
    components=(5, 10),
    protocol=(0.02, 0.5),
    rival_points=60,
    rival_components=(5,),
)
TINY_DIGITS = replace(
    digits.SIZES["quick"], n_train=60, n_validation=20, n_test=20, components=(5, 10), layers=(5,), widths=(1.0,)
)


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_problems.SIZES, "quick", TINY)
        patch.setitem(digits.SIZES, "quick", TINY_DIGITS)
        yield


@pytest.fixture(scope="module")
def results(tiny):
    """Every run of the figures and of the digits, and the cells of Table 1 at the middle noise level."""
    runs = [run for experiment in EXPERIMENTS for run in experiment.configurations("quick")]
    runs = [run for run in runs if run.task != "denoise-cell" or run.parameters["noise"] == 0.1]
    return Results((run, json.loads(json.dumps(TASKS.perform(run))), 1.0) for run in runs)


def problem(noise: float = 0.1, n: int = 400) -> _problems.NoisyCurve:
    return _problems.make_problem("square", noise, n, 100, seed=3)


def test_narrow_bandwidths_of_the_protocol_are_not_reported_as_strange_data():
    train = np.vstack([problem(n=60).train, [[9.0, 9.0]]])
    with pytest.warns(StrangeDataWarning, match="row 60"):
        ConstrDRKM(3, sigma2=0.02).fit(train)
    assert len(protocol_models(train, 0.02)) > 1


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_every_experiment_writes_figures_tables_and_claims(experiment, results, tmp_path):
    section = experiment.section(results, "quick")
    paths = write_section(section, tmp_path / section.name)
    assert {path.suffix for path in paths} == {".png", ".svg", ".pdf", ".csv", ".md", ".tex"}
    assert all(path.stat().st_size > 0 for path in paths)
    assert section.claims
    assert section.title == experiment.title


def test_table_1_is_one_grid_of_curves_by_noise_levels_with_gaps_where_cells_are_missing(results):
    (table,) = [one for one in table1.EXPERIMENT.section(results, "quick").tables if one.in_front]
    assert [row["curve"] for row in table.rows] == list(_problems.DATASETS.values())
    assert all(list(row)[1:] == [f"σ_n = {noise}" for noise in _problems.NOISES] for row in table.rows)
    assert table.rows[0]["σ_n = 0.1"].endswith(" (1.09)")
    assert table.rows[0]["σ_n = 0.05"] is None


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_without_runs_nothing_is_drawn_and_no_claim_is_decided(experiment):
    section = experiment.section(Results(), "quick")
    assert not section.tables
    assert not section.figures
    assert {claim.verdict for claim in section.claims} == {Verdict.UNDECIDED}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
@pytest.mark.parametrize("scale", SCALES)
def test_runs_of_two_scales_differ(experiment, scale):
    runs = experiment.configurations(scale)
    assert len(set(runs)) == len(runs)
    others = {run for other in SCALES if other != scale for run in experiment.configurations(other)}
    assert not others & set(runs)


@pytest.mark.parametrize("scale", SCALES)
def test_one_and_two_layers_choose_among_the_same_first_layers(scale):
    sizes = _problems.SIZES[scale]
    shallow = _methods.one_layer_grid(sizes.widths, sizes.components)
    deep = _methods.deep_grid(sizes.widths, sizes.components, sizes.n_train)
    one = [(width, count) for grid in shallow for width in grid["sigma2"] for count in grid["keep"]]
    two = [(widths[0], s) for grid in deep for widths in grid["sigma2"] for s, _ in grid["n_components"]]
    assert sorted(one) == sorted(two)
    assert max(one)[1] == max(shallow[0]["n_components"])


def test_the_second_layer_lowers_the_error_of_the_first():
    made = problem(n=300)
    noise = _problems.noise_of(made)
    errors = []
    for layers, grid in (
        (1, _methods.one_layer_grid([5 * noise**2], [18])),
        (2, _methods.deep_grid([5 * noise**2], [18], len(made.train))),
    ):
        found = select(made.train, grid, estimator=_methods.base_model(layers), validation=made.validation, noise=noise)
        errors.append(_problems.mean_squared_error(found.denoise(made.train), made.clean))
    assert 0.98 * errors[0] < errors[1] < errors[0]


def test_the_same_run_gives_the_same_result(results):
    run = figure1.EXPERIMENT.configurations("quick")[0]
    assert TASKS.perform(run) == results[run]


def test_points_that_are_drawn_have_the_error_that_is_told(results):
    run = figure1.EXPERIMENT.configurations("quick")[0]
    made = _problems.make_problem("square", _panels.NOISE, TINY.n_train, TINY.n_validation, run.seed)
    for panel in results[run]["panels"]:
        points = np.array(panel["points"])
        assert len(points) == TINY.n_train
        assert panel["mse"] == pytest.approx(np.mean(np.sum((points - made.clean) ** 2, axis=1)), abs=1e-4)
        assert panel["distance"] == pytest.approx(made.curve.distance(points).mean(), abs=1e-4)


def test_the_gap_sees_a_lost_side_that_the_distance_does_not():
    made = problem(noise=0.01)
    half = made.train[made.train[:, 0] < 0]
    assert made.curve.distance(half).mean() < 0.02
    assert _panels_run.gap(made, made.train) < 0.05
    assert _panels_run.gap(made, half) > 0.3


def test_table1_has_a_column_for_every_method_and_a_row_for_every_cell(results):
    section = table1.EXPERIMENT.section(results, "quick")
    rows = {table.name: table.rows for table in section.tables}
    assert [row["curve"] for row in rows["errors"]] == list(_problems.DATASETS.values())
    assert set(ORDER) - {BOUND} <= set(rows["errors"][0])
    assert [row["published"] for row in rows["ratios"]] == [1.09, 1.17, 1.70, 1.62]
    assert all(row["ours"] == pytest.approx(row["kernel PCA, MSE"] / row["deep model, MSE"]) for row in rows["ratios"])
    assert len(rows["definitions"]) == 12
    assert {row["cells"] for row in rows["definitions"]} == {4}


def cell(dataset: str, noise: float, ratio: float, two: float = 1.0, deep: float = 1.0) -> dict:
    errors = dict.fromkeys(ORDER, 1.0) | {"two layers, selected": two, "paper's deep model (2, 1)": deep}
    return {
        "curve": dataset,
        "noise": noise,
        "errors": [{"method": name, "mse": mse, "distance": mse, "chosen": ""} for name, mse in errors.items()],
        "protocol": [{**AS_PUBLISHED, "kernel PCA": ratio, "deep": 1.0, "kernel PCA σ²": "", "deep σ²": ""}],
    }


def claims(cells: list[dict], points: int) -> list[Claim]:
    return list(table1.EXPERIMENT.claims(cells, replace(TINY, n_train=points)))


def judged(cells: list[dict], points: int = 3000) -> dict[str, Verdict]:
    return {claim.text: claim.verdict for claim in claims(cells, points)}


def test_a_ratio_is_judged_by_one_and_by_the_published_one():
    first = "Square, σ_n = 0.05: the deep model denoises better than kernel PCA"
    verdicts = [judged([cell("square", 0.05, ratio)])[first] for ratio in (1.22, 1.1, 0.9)]
    assert verdicts == [Verdict.HELD, Verdict.FAILED, Verdict.FAILED]
    small = [judged([cell("square", 0.05, ratio)], points=300)[first] for ratio in (1.22, 1.1, 0.9)]
    assert small == [Verdict.HELD, Verdict.UNDECIDED, Verdict.FAILED]
    assert judged([])[first] is Verdict.UNDECIDED


def test_a_claim_tells_how_the_ratio_depends_on_the_definition_of_the_error():
    both = cell("square", 0.05, 2.0)
    both["protocol"].append({**both["protocol"][0], "β": "projection", "kernel PCA": 0.5})
    first = claims([both], points=300)[0]
    assert first.measured == "2"
    assert "0.50 to 2.00" in first.why


def test_claims_about_all_cells_need_all_cells():
    gains = {"square": 2, "half_circle": 2, "square_spiral": 4, "squares_spiral_ring": 4}
    cells = [cell(d, n, gains[d] / n) for n in _problems.NOISES for d in _problems.DATASETS]
    names = list(judged(cells))[12:]
    assert [judged(cells)[name] for name in names] == [Verdict.HELD] * 2 + [Verdict.FAILED] + [Verdict.HELD] * 2
    assert {judged(cells[1:])[name] for name in names} == {Verdict.UNDECIDED}
    worse = [cell("square", 0.05, 100, two=1.16, deep=0.5), *cells[1:]]
    assert [judged(worse)[name] for name in names] == [Verdict.FAILED, Verdict.HELD] + [Verdict.FAILED] * 2 + [
        Verdict.HELD
    ]


def test_close_errors_of_one_draw_are_not_told_apart():
    assert [smaller(error, 1.0) for error in (0.9, 0.96, 1.04, 1.1)] == [
        Verdict.HELD,
        Verdict.UNDECIDED,
        Verdict.UNDECIDED,
        Verdict.FAILED,
    ]


def test_the_posterior_mean_is_better_than_the_noisy_points_and_any_other_method():
    here = problem()
    bound = _problems.mean_squared_error(_problems.posterior_mean(here, here.train), here.clean)
    for name in (NOISY, MEAN_SHIFT, ONE_LAYER):
        found = _methods.METHODS[name](here, TINY, 0.1)
        assert _problems.mean_squared_error(found.points, here.clean) > bound


def test_problems_depend_on_the_seed_alone():
    one, same, other = (_problems.make_problem("square", 0.1, 50, 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.train, same.train)
    assert not np.array_equal(one.train, other.train)
    assert one.validation.shape == (20, 2)


def test_the_protocol_takes_the_bandwidth_of_least_validation_error():
    made = problem(n=80)
    found = candidates(made, (0.02, 0.5))
    chosen = best(found, "deep", FIRST_MEASURE)
    rivals = [c for c in found if c.name == "deep" and not c.normalized and c.steps is None]
    assert len(rivals) == 4
    errors = [
        _problems.mean_squared_error(reconstruct(rival.model, made.validation), made.validation_clean)
        for rival in rivals
    ]
    assert chosen.validation[FIRST_MEASURE] == pytest.approx(min(errors))
    assert chosen.training[FIRST_MEASURE] == _problems.mean_squared_error(chosen.points, made.clean)


def test_training_points_are_denoised_by_chosen_candidates_alone():
    found = candidates(problem(n=80), (0.02, 0.5))
    best(found, "deep", FIRST_MEASURE)
    assert not [c for c in found if "points" in vars(c)]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_bytes(path, lambda file: 1 / 0)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_tables_come_as_csv_with_all_digits_and_markdown_with_four(tmp_path):
    rows = [{"a": 1 / 3, "b": "x"}]
    save_table(rows, tmp_path, "t", "title")
    assert (tmp_path / "t.csv").read_text() == f"a,b\n{1 / 3},x\n"
    assert (tmp_path / "t.md").read_text() == "title\n\n" + markdown(rows) + "\n"
    assert "| 0.3333 | x |" in markdown(rows)


def test_a_bar_in_a_cell_does_not_begin_another_one():
    assert markdown([{"a|b": "x|y", "c": "two\nlines"}]) == "| a\\|b | c |\n|---|---|\n| x\\|y | two lines |"


def test_salt_and_pepper_sets_pixels_to_black_or_white():
    images = _digits_run.load_images(0)[:50]
    noisy = _digits_run.corrupt(images, 0.2, gaussian=False, seed=0)
    changed = noisy != images
    assert set(np.unique(noisy[changed])) <= {0.0, 1.0}
    assert 0.05 < changed.mean() < 0.2


def test_a_run_with_sizes_survives_being_written_as_json():
    run = Configuration("denoise-cell", {"sizes": asdict(TINY)}, 1)
    assert Configuration.from_json(run.canonical()) == run
