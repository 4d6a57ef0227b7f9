"""The disentanglement experiments: what they ask for, what they show, and how they judge."""

import json
import math
from typing import ClassVar

import numpy as np
import pytest

from drkm import ConstrDRKM
from drkm.datasets._factors import ArrayDataset
from drkm.experiments import data
from drkm.experiments.disentanglement import _models as models
from drkm.experiments.disentanglement import _tasks as tasks
from drkm.experiments.registry import EXPERIMENTS
from drkm.experiments.section import Verdict
from drkm.experiments.settings import Seeds
from drkm.experiments.study import study
from drkm.experiments.study.groups import KERNEL_PCA, Group, families
from drkm.experiments.study.scales import SIZES, TWO_LAYERS
from drkm.experiments.study.study import Study
from drkm.runs.configuration import SCALES, Configuration, Results

STUDIES = {name: found for name, found in EXPERIMENTS.items() if isinstance(found, Study)}
studies = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)


def runs_of(name, scale):
    return STUDIES[name].configurations(scale)


def scores(rng, irs=0.6):
    return {
        "irs": irs + 0.05 * rng.random(),
        "irs_chance": 0.3,
        "mig": 0.05 * rng.random(),
        "mig_chance": 0.003,
        "sap": 0.02 * rng.random(),
        "sap_chance": 0.005,
        "train_s": 1.0,
        "iterations": 20,
    }


def made_up(configuration, rng):
    if configuration.task == "equal_time":
        return {"drkm": scores(rng), "beta-vae": scores(rng)}
    if configuration.task == "stability":
        depth = len(configuration.parameters.get("layers", [10]))
        lists = {key: rng.random(depth).tolist() for key in ("shared", "shared_chance", "angle", "agreement")}
        return {**lists, "train_s": 1.0, "device": "cpu"}
    if configuration.task == "candidate":
        draws = [scores(rng) for _ in range(configuration.parameters["draws"])]
        lists = {name: [one[name] for one in draws] for name in ("irs", "irs_chance", "mig", "mig_chance")}
        return {axes: {**lists, "agreement": rng.random()} for axes in ("ritz", "varimax", "ica")}
    if configuration.task == "tuned":
        widths = configuration.parameters["widths"]
        more = {"accuracy": rng.random(), "width": widths[0], "agreements": rng.random(len(widths)).tolist()}
        return {**scores(rng), **more}
    if "all_images" in configuration.parameters:
        return {
            **scores(rng),
            "all_images": {k: v for k, v in scores(rng).items() if k not in ("train_s", "iterations")},
        }
    return {**scores(rng), "dci": rng.random(), "dci_completeness": rng.random(), "dci_accuracy": rng.random()}


def results_of(study, scale):
    rng = np.random.default_rng(0)
    return Results((run, made_up(run, rng), 1.0) for run in dict.fromkeys(study.configurations(scale)))


@studies
@pytest.mark.parametrize("scale", SCALES)
def test_configurations_come_back_from_json_and_are_asked_for_once(study, scale):
    runs = study.configurations(scale)
    assert runs
    assert len(set(runs)) == len(runs)
    assert [Configuration.from_json(run.canonical()) for run in runs] == runs


@pytest.mark.parametrize(("scale", "seeds"), [("quick", 2), ("medium", 10), ("paper", 5)])
def test_every_scale_has_its_datasets_seeds_and_sizes(scale, seeds):
    runs = {run for name in STUDIES if name != "candidates" for run in runs_of(name, scale)}
    others = [runs_of(name, scale) for name in STUDIES if name != "variance" and scale not in STUDIES[name].own_sizes]
    assert {run.seed for group in others for run in group} == set(range(seeds))
    datasets = {run.parameters["dataset"] for run in runs}
    assert datasets == ({"sprites"} if scale == "quick" else {"cars3d", "smallnorb", "dsprites", "noisy_dsprites"})
    assert "cars3d" not in {run.parameters["dataset"] for run in runs_of("candidates", scale)}
    assert not any("device" in run.parameters for run in runs)
    betas = {run.parameters["beta"] for run in runs if run.parameters.get("family") == "beta-vae"}
    assert betas == set(SIZES[scale].betas)


def test_the_paper_scale_is_the_published_one():
    sizes = SIZES["paper"]
    assert (sizes.points, sizes.seeds, sizes.evaluation) == ((50, 100, 200, 400, 800), 5, 4000)
    assert sizes.gammas == (0.01, 0.1, 1, 5, 25)
    assert sizes.betas == (2, 3, 4, 5, 6)
    # 4 datasets × 5 N × 5 γ × 5 seeds × 3 architectures, as many draws of our defaults without γ, centred kernel PCA
    assert len(runs_of("layers", "paper")) == 4 * 5 * 5 * 5 * 3 + 4 * 5 * 5 * 3 + 4 * 5 * 5


@pytest.mark.parametrize("scale", ["medium", "paper"])
@pytest.mark.parametrize("asked", [None, "3", "10,paper=5,beta-vae=5"])
def test_table_2_has_its_published_size_whatever_is_asked_for(scale, asked):
    runs = STUDIES["table2"].configurations(scale, asked and Seeds.read(asked))
    shared = {"dataset": "cars3d", "n": 800, "evaluation": 4000, "all_images": True}
    assert all(shared.items() <= run.parameters.items() for run in runs)
    for family in ("paper", "drkm", "beta-vae"):
        draws = [run.seed for run in runs if run.parameters["family"] == family and "draw" not in run.parameters]
        assert set(draws) == set(range(10))
    # σ² = 50 and learned from a random start, and the β-VAE: nine seeds on draw 0, besides seed 0, whose draw it is
    assert sum(run.parameters.get("draw") == 0 for run in runs) == 9 * 3 + 3
    assert {run.seed for run in STUDIES["table2"].configurations("paper", Seeds(12))} == set(range(12))


def test_experiments_share_their_runs():
    runs = {name: set(runs_of(name, "medium")) for name in STUDIES}
    assert runs["hyperparameters"] == runs["training_points"]
    assert runs["gamma"] <= runs["training_points"]
    assert runs["gamma"] <= runs["layers"]
    assert runs["sample_efficiency"] <= runs["training_points"]
    assert runs["components"] & runs["layers"]


def test_a_draw_that_is_the_seed_is_the_same_run():
    each, fixed = (
        Group(family="drkm", at="start_points", draw=draw).configurations(SIZES["quick"]) for draw in (None, 0)
    )
    assert each[0] == fixed[0]
    assert each[1] != fixed[1]
    assert fixed[1].parameters == {**each[1].parameters, "draw": 0}


def test_kernel_pca_without_centring_is_the_run_of_one_layer():
    sizes = SIZES["quick"]
    plain, centred = (set(group.configurations(sizes)) for group in families(*KERNEL_PCA))
    assert plain == set(Group(family="drkm", stacks=((10,),)).configurations(sizes))
    assert {run.parameters["center"] for run in centred} == {True}
    assert {
        row["family"] for row in families(*KERNEL_PCA)[1].found(Results((run, {}, 1.0) for run in centred), sizes)
    } == {"kpca-centred"}


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in ("candidates",)])
def test_kernel_pca_stands_beside_every_model(name):
    shallow = [run for run in runs_of(name, "medium") if run.parameters.get("layers") == [10]]
    assert {run.parameters.get("center", False) for run in shallow if run.parameters["family"] == "drkm"} == {
        False,
        True,
    }


def test_our_defaults_are_those_of_the_estimator():
    deep = [run for run in runs_of("components", "quick") if run.parameters["family"] == "drkm"]
    assert {run.parameters.get("eta") for run in deep if len(run.parameters["layers"]) > 1} == {ConstrDRKM().eta}
    rows = models.rows_of(tasks.draw("sprites", 0, 30, 10).train)
    assert models.default_model({"layers": [4, 2], "eta": "auto"}, rows).eta == "auto"
    assert models.default_model({"layers": [4, 2]}, rows).eta == (1.0, 1.0)
    # Studies that use the paper's weights still share the runs that were made with them.
    assert not any("eta" in run.parameters for run in runs_of("candidates", "medium"))


def test_seeds_are_those_that_were_asked_for():
    seeds = Seeds.read("4,beta-vae=3, paper=2")
    runs = [run for name in STUDIES for run in STUDIES[name].configurations("quick", seeds)]
    for family, number in (("drkm", 4), ("beta-vae", 3), ("paper", 2)):
        found = {run.seed for run in runs if run.parameters.get("family") == family}
        assert found == set(range(number))
    assert set(runs_of("layers", "quick")) <= set(STUDIES["layers"].configurations("quick", Seeds(2)))
    assert Seeds.read(str(seeds)) == seeds


@pytest.mark.parametrize("text", ["", "0", "many", "3,beta-vae", "3,beta-vae=0", "-1"])
def test_a_number_of_seeds_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="seeds: expected a number such as 10"):
        Seeds.read(text)


def test_groups_of_one_model_share_their_runs():
    sizes = SIZES["quick"]
    one = Group(family="paper", at="start_points").configurations(sizes)
    every = Group(family="paper", at="start_points", hyperparameter="all").configurations(sizes)
    grid = Group(family="paper", hyperparameter="grid").configurations(sizes)
    assert set(one) < set(every) < set(grid)
    assert {run.parameters["layers"] == list(TWO_LAYERS) for run in grid} == {True}
    assert not Group(family="beta-vae", long=True).configurations(sizes)


@studies
def test_a_study_without_results_shows_no_figure_and_cannot_tell(study):
    section = study.section(Results(), "medium")
    assert not section.figures
    assert section.claims or study.name == "candidates"
    assert {claim.verdict for claim in section.claims} <= {Verdict.UNDECIDED}


@studies
def test_results_of_all_datasets_give_tables_figures_and_reasons(study):
    section = study.section(results_of(study, "medium"), "medium")
    assert all(table.rows for table in section.tables)
    assert all(claim.text and claim.measured and claim.why for claim in section.claims)
    for table in section.tables:
        json.dumps(list(table.rows), allow_nan=False)
        assert len({tuple(row) for row in table.rows}) == 1
        if "IRS" in table.rows[0]:
            assert "IRS chance" in table.rows[0]


def test_table_2_has_the_published_numbers_beside_ours_in_front():
    found = STUDIES["table2"].section(results_of(STUDIES["table2"], "quick"), "quick")
    (front,) = [table for table in found.tables if table.in_front]
    assert [row["model"] for row in front.rows] == ["random start", "kernel PCA start", "β-VAE"]
    assert [row["MIG published"] for row in front.rows] == ["0.012 ± 0.010", "0.040 ± 0.000", "0.010 ± 0.011"]
    assert all(row[f"{name} {what}"] for row in front.rows for name in ("IRS", "MIG") for what in ("ours", "chance"))


@studies
def test_figures_are_drawn(study):
    plt = pytest.importorskip("matplotlib.pyplot")
    figures = study.section(results_of(study, "quick"), "quick").figures
    assert bool(figures) == (study.name not in ("table2", "candidates"))
    for figure in figures:
        drawn = figure.draw()
        assert drawn.axes
        plt.close(drawn)


def test_rows_have_scores_above_chance_and_leave_out_what_has_no_value():
    group = Group(family="drkm", at="start_points", tags={"model": "ours"})
    run = group.configurations(SIZES["quick"])[0]
    results = Results([(run, {"irs": 0.5, "irs_chance": 0.2, "mig": None, "mig_chance": 0.1}, 1.0)])
    (row,) = group.found(results, SIZES["quick"])
    assert row["irs_above"] == pytest.approx(0.3)
    assert row["mig_above"] is None
    assert row["layers"] == TWO_LAYERS
    assert (row["depth"], row["model"]) == (2, "ours")


def test_gamma_changes_nothing_on_the_manifold():
    images = tasks.draw("sprites", 0, 40, 20)
    rows, new = models.rows_of(images.train), models.rows_of(images.evaluation)
    plain, scaled = (ConstrDRKM((4, 2), eta=gamma, tol=1e-8).fit(rows) for gamma in (1.0, 5.0))
    np.testing.assert_allclose(scaled.codes_, plain.codes_, atol=1e-6)
    np.testing.assert_allclose(scaled.transform(new), plain.transform(new), atol=1e-5)


class TestTasks:
    """Real runs, as small as they can be."""

    shared: ClassVar = {"dataset": "sprites", "n": 40, "evaluation": 120}

    def test_our_defaults_do_not_depend_on_the_seed(self):
        parameters = {**self.shared, "family": "drkm", "layers": [4, 3, 3], "draw": 0}
        first, second = (tasks.disentangle(parameters, seed) for seed in (0, 1))
        timed = {"train_s", "encode_s"}
        assert {k: v for k, v in first.items() if k not in timed} == {k: v for k, v in second.items() if k not in timed}
        assert first["feasibility"] < 1e-10
        json.dumps(first, allow_nan=False)

    def test_the_paper_recipe_ends_off_the_manifold_and_depends_on_the_seed(self):
        parameters = {**self.shared, "family": "paper", "layers": [10, 5], "gamma": 1.0, "draw": 0}
        first, second = (tasks.disentangle(parameters, seed) for seed in (0, 1))
        assert first["irs"] != second["irs"]
        assert first["feasibility"] > 0.1
        # 2 rounds of 500 steps and the two changes of round
        assert first["iterations"] == 1002
        assert first["bandwidths"][0] != 50.0

    def test_a_second_set_of_images_changes_no_score_of_the_first(self):
        parameters = {**self.shared, "family": "drkm", "layers": [10]}
        plain, both = (tasks.disentangle({**parameters, **more}, 0) for more in ({}, {"all_images": True}))
        for name in ("irs", "irs_chance", "mig", "mig_chance", "sap", "sap_chance"):
            assert both[name] == pytest.approx(plain[name], rel=1e-9)
            assert both["all_images"][name] != both[name]
        study.SCORED("result", both)

    def test_images_drawn_from_all_hold_training_images(self, monkeypatch):
        few = ArrayDataset("few", ("number",), (600,), np.zeros((600, 64, 64), np.uint8), np.arange(600)[:, None])
        monkeypatch.setattr(data, "load", lambda name: few)
        problem = tasks.draw("few", 0, 300, 300)
        trained = set(range(600)) - set(problem.factors[:, 0])
        _, found = tasks.drawn_from_all("few", 0, 300)
        assert not trained & set(problem.factors[:, 0])
        assert len(trained & set(found[:, 0])) == pytest.approx(150, abs=30)

    def test_equal_time_gives_the_rival_the_time_that_ours_took(self, monkeypatch):
        asked = []

        def train_and_encode(parameters, train, evaluation, seed):
            asked.append(parameters)
            codes = np.random.default_rng(seed).standard_normal((len(evaluation), 10))
            return models.Codes([codes], 0.25, 0.0)

        monkeypatch.setattr(tasks, "train_and_encode", train_and_encode)
        found = tasks.equal_time({**self.shared, "layers": [10, 5], "beta": 4.0, "times": 10}, 0)
        assert asked[0] == {"family": "drkm", "layers": [10, 5]}
        assert asked[1] == {"family": "beta-vae", "beta": 4.0, "device": "cpu", "max_seconds": 2.5}
        assert set(found) == {"drkm", "beta-vae"}

    def test_a_beta_vae_says_how_far_it_got(self):
        parameters = {**self.shared, "family": "beta-vae", "beta": 4.0, "max_steps": 2}
        found = tasks.disentangle(parameters, 0)
        assert found["iterations"] == 2
        assert not found["converged"]
        assert found["device"]

    def test_stability_has_one_entry_per_layer(self):
        found = tasks.stability({**self.shared, "family": "drkm", "layers": [5, 3], "resamples": 2}, 0)
        assert len(found["shared"]) == len(found["angle"]) == 2
        assert found["shared"][0] > found["shared_chance"][0]

    def test_a_deterministic_model_on_the_same_images_is_perfectly_stable(self, monkeypatch):
        rows = np.arange(40)
        monkeypatch.setattr(np.random, "default_rng", lambda seed=None: _Always(rows))
        parameters = {**self.shared, "family": "drkm", "layers": [5], "resamples": 2}
        problem = tasks.TrainingDraw(
            np.random.RandomState(0).randint(0, 255, (40, 64, 64)).astype(np.uint8),
            np.random.RandomState(1).randint(0, 255, (30, 64, 64)).astype(np.uint8),
            np.zeros((30, 1), np.int64),
        )
        monkeypatch.setattr(tasks, "draw", lambda *given: problem)
        found = tasks.stability(parameters, 0)
        assert found["shared"] == pytest.approx([1.0])
        assert found["angle"] == pytest.approx([0.0], abs=1e-4)

    def test_codes_that_do_not_vary_agree_with_nothing(self):
        varied = np.random.RandomState(0).randn(30, 3)
        assert tasks._angles(np.ones((30, 3)), varied) == pytest.approx(np.pi / 2)
        partly = np.column_stack([varied[:, 0], np.zeros((30, 2))])
        assert np.sort(tasks._angles(varied, partly)) == pytest.approx([0, np.pi / 2, np.pi / 2], abs=1e-6)


class _Always:
    def __init__(self, rows):
        self.rows = rows

    def integers(self, *given, **named):
        return self.rows


def test_the_ten_scored_codes_are_those_of_the_layer_of_ten_or_all():
    rng = np.random.default_rng(0)
    ten, five = rng.random((7, 10)), rng.random((7, 5))
    assert models.Codes([ten, five], 0, 0).scored is ten
    assert models.Codes([five, ten], 0, 0).scored is ten
    assert models.Codes([five[:, :2], five[:, :2], ten[:, :6]], 0, 0).scored.shape == (7, 10)


def test_codes_that_are_constant_have_scores_or_none():
    factors = np.random.default_rng(0).integers(0, 3, (60, 2))
    found = tasks.scores_of(np.zeros((60, 10)), factors)
    assert all(value is None or math.isfinite(value) for value in found.values())


def test_agreement_of_constant_codes_is_none():
    assert tasks.agreement(np.zeros((20, 3)), np.random.default_rng(0).random((20, 3))) == 0


def test_an_unknown_family_is_answered_with_what_is_allowed():
    images = np.zeros((2, 64, 64), np.uint8)
    with pytest.raises(ValueError, match="family: unknown name 'gan', allowed are drkm"):
        models.train_and_encode({"family": "gan"}, images, images, 0)


def test_an_unknown_scale_is_answered_with_what_is_allowed():
    with pytest.raises(ValueError, match="scale: unknown name 'huge', allowed are quick"):
        runs_of("components", "huge")
