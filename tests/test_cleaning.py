"""Automatic denoising: select without a grid, drkm.denoise, and their commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits

import drkm
from command_line import drkm as command
from command_line import refused
from drkm.inference.eigencomponents import EigenComponents
from drkm.kernels import RBF, Linear
from drkm.selection import automatic, masked, noise, noise_of_region, noise_of_repeats, perturbed, select
from drkm.selection.masked import Masked
from drkm.selection.perturbed import ALPHA, Perturbed

NOISE = 0.3


def plane(n=80, d=6, noise=NOISE, seed=0):
    """Return noisy and clean points of a curved two-dimensional surface."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (n, 2))
    clean = np.column_stack([u, u**2, u[:, :1] * u[:, 1:], np.sin(3 * u)])[:, :d] * 2
    return clean + noise * rng.standard_normal(clean.shape), clean


def error(found, clean):
    return float(((np.asarray(found) - clean) ** 2).mean())


@pytest.fixture(autouse=True)
def one_pair_of_draws(monkeypatch):
    """Score with one pair of draws or one mask, which takes a quarter of the time."""
    monkeypatch.setattr(perturbed, "MOST_PAIRS", 1)
    monkeypatch.setattr(masked, "MOST_TRIALS", 1)


@pytest.fixture(scope="module")
def chosen():
    noisy, clean = plane()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perturbed, "MOST_PAIRS", 1)
        return noisy, clean, select(noisy, noise=NOISE)


def test_cleaning_removes_noise_as_it_is_expected_to(chosen):
    noisy, clean, found = chosen
    left = error(found.denoise(noisy), clean)
    assert left < 0.75 * error(noisy, clean)
    assert abs(found.expected.error - left) < 5 * found.expected.deviation + 0.1 * NOISE**2
    assert found.expected.noise_left == pytest.approx(found.expected.error / NOISE**2)
    assert 0 <= found.expected.sure <= 1
    assert "of the noise, which was given" in found.expected.describe()


def test_the_risk_of_a_denoiser_is_its_error_with_a_little_more_noise():
    errors, risks = [], []
    for seed in range(3):
        noisy, clean = plane(100, seed=seed)
        trials = Perturbed(noisy, NOISE, "these", np.random.default_rng(seed))
        (judged,) = trials.path(RBF(4.0), True, [12.0], ["firm"], 100)
        more, _ = plane(100, noise=NOISE * np.sqrt(1 + ALPHA**2), seed=seed)
        model = drkm.ConstrDRKM(30, sigma2=4.0, center=True, shrink=("firm", 100 * judged.shrink.threshold)).fit(more)
        errors.append(error(model.denoise(more), clean))
        risks.append(judged.risk)
    assert np.mean(risks) == pytest.approx(np.mean(errors), rel=0.1)


def test_thresholds_beyond_the_last_eigenvalue_are_one_candidate(monkeypatch):
    calls = []
    denoise = EigenComponents.denoise
    monkeypatch.setattr(
        EigenComponents, "denoise", lambda self, shrink, points: calls.append(shrink) or denoise(self, shrink, points)
    )
    judge = Perturbed(plane(d=2)[0], NOISE, "these", np.random.default_rng(0))
    judged = judge.path(Linear(), True, [1.0, 2.0, 7.0, 30.0], ["firm"], 40)
    assert [one.rank for one in judged] == [1.0, 2.0, 7.0, 30.0]
    assert len(calls) == 2 * len(judge.trials)
    assert judged[1].risk == judged[2].risk == judged[3].risk != judged[0].risk


def test_the_same_seed_chooses_the_same(chosen):
    noisy, _, found = chosen
    again = select(noisy, noise=NOISE, n_jobs=2, refit=False)
    assert again.best_params == found.best_params
    assert again.best_estimator is None
    assert len(again.table) == len(found.table) > 40


def test_samples_made_with_the_same_seed_are_judged_by_other_noise(monkeypatch):
    """Otherwise noise in X would be mistaken for added noise, and its removal for an error."""
    rng = np.random.default_rng(0)
    added = rng.standard_normal((80, 6))
    seen = []

    class Spied(Perturbed):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen.extend(trial.omega.numpy() for trial in self.trials)

    monkeypatch.setattr(automatic, "Perturbed", Spied)
    select(plane()[1] + NOISE * added, noise=NOISE, random_state=0, refit=False, max_seconds=1e-6)
    assert seen
    for omega in seen:
        assert abs(np.corrcoef(omega.ravel(), added.ravel())[0, 1]) < 0.2


def test_a_short_time_still_chooses_something(chosen):
    noisy, clean, found = chosen
    quick = select(noisy, noise=NOISE, max_seconds=1e-6)
    assert len(quick.table) < len(found.table)
    assert error(quick.denoise(noisy), clean) < error(noisy, clean)


def test_new_points_are_cleaned_by_a_model_for_them():
    noisy, _ = plane(100)
    found = select(noisy, noise=NOISE, for_="new", max_seconds=1e-6)
    new, clean = plane(100, seed=7)
    assert error(found.denoise(new), clean) < 0.85 * error(new, clean)


def test_one_call_answers_in_kind_and_without_the_noise():
    noisy, clean = plane(120)
    frame = pd.DataFrame(noisy, columns=list("abcdef"), index=[f"r{i}" for i in range(len(noisy))])
    cleaned, found = drkm.denoise(frame, return_selection=True, max_seconds=1e-6)
    assert list(cleaned.columns) == list("abcdef")
    assert list(cleaned.index) == list(frame.index)
    assert error(cleaned, clean) < 0.85 * error(noisy, clean)
    assert not found.expected.noise_given
    assert NOISE < found.noise < 2 * NOISE
    tensor = drkm.denoise(torch.from_numpy(noisy), max_seconds=1e-6)
    assert isinstance(tensor, torch.Tensor)


def test_columns_may_have_noise_of_their_own():
    rng = np.random.default_rng(0)
    _, clean = plane(150)
    levels = np.array([0.05, 0.05, 0.05, 0.6, 0.6, 0.6])
    noisy = clean + levels * rng.standard_normal(clean.shape)
    trials = Perturbed(noisy, levels, "these", rng).trials
    np.testing.assert_allclose(trials[0].omega.std(dim=0), levels, rtol=0.2)
    found = select(noisy, noise=levels, max_seconds=1e-6)
    assert found.noise == pytest.approx(np.sqrt(np.mean(levels**2)))
    assert error(found.denoise(noisy), clean) < 0.8 * error(noisy, clean)


def test_what_is_chosen_for_too_much_noise_says_that_it_is_too_much():
    rng = np.random.default_rng(0)
    noisy = 2 * rng.standard_normal((200, 2)) @ np.eye(2, 8) + 0.2 * rng.standard_normal((200, 8))
    for presumed in (0.2, 0.28):
        trials = Perturbed(noisy, presumed, "these", np.random.default_rng(1))
        judged = trials.path(Linear(), True, [1, 2, 3, 5, 8], ["firm"], 200)
        best = min(judged, key=lambda one: one.risk)
        assert best.passed.mean() == pytest.approx(2 / 8, abs=0.05)
        assert trials.consistent_noise(best) == pytest.approx(0.2, rel=0.1)


def test_an_estimate_that_may_be_too_large_is_corrected_and_no_other(monkeypatch):
    noisy, _ = plane(120)
    monkeypatch.setattr(noise, "estimated_level", lambda samples: noise.Level(1.8 * NOISE, may_be_less=True))
    corrected = select(noisy, refit=False, max_seconds=1e-6)
    assert NOISE < corrected.noise < 1.6 * NOISE
    monkeypatch.setattr(noise, "estimated_level", lambda samples: noise.Level(1.8 * NOISE))
    assert select(noisy, refit=False, max_seconds=1e-6).noise == pytest.approx(1.8 * NOISE)
    assert select(noisy, noise=1.8 * NOISE, refit=False, max_seconds=1e-6).noise == pytest.approx(1.8 * NOISE)


def test_masked_entries_judge_by_what_other_columns_tell_and_by_no_noise_level():
    rng = np.random.default_rng(0)
    clean = 2 * rng.standard_normal((100, 2)) @ rng.standard_normal((2, 8))
    noisy = clean + 0.5 * rng.standard_normal(clean.shape)
    judge, other = (Masked(noisy, presumed, np.random.default_rng(1)) for presumed in (0.1, 2.0))
    one, two, four, seven = (
        judged.risk for judged in judge.path(RBF(2000.0), True, [1.5, 2.5, 4.5, 7.5], ["hard"], 100)
    )
    assert two < min(one, four) < seven
    (trial,), (same,) = judge.trials, other.trials
    assert torch.equal(trial.samples, same.samples)
    assert trial.masked.double().mean() == pytest.approx(0.1, abs=0.03)
    assert not (trial.samples == trial.before)[trial.masked].any()
    assert torch.equal(trial.samples[~trial.masked], trial.before[~trial.masked])


def test_a_choice_by_masked_entries_cleans_and_says_what_to_expect():
    noisy, clean = plane(100, noise=0.8)
    found = select(noisy, criterion="masked", noise=0.8, max_seconds=1e-6)
    assert found.criterion == "masked"
    left = error(found.denoise(noisy), clean)
    assert left < 0.85 * error(noisy, clean)
    assert found.expected.error == pytest.approx(left, abs=5 * found.expected.deviation + 0.1 * 0.8**2)


def test_what_is_expected_of_an_estimated_level_is_less_sure():
    noisy, _ = plane(60)
    wishes = {"max_seconds": 1e-6, "refit": False}
    estimated = select(noisy, **wishes)
    given = select(noisy, noise=estimated.noise, **wishes)
    # An error of a tenth in the level is one of a fifth in the variance.
    assert given.expected.deviation < estimated.expected.deviation < 0.2 * estimated.noise**2 + given.expected.deviation


def test_noise_is_found_in_repeats_and_in_an_empty_region():
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.5])
    x = rng.standard_normal((2000, 2))
    repeats = [x + levels * rng.standard_normal(x.shape) for _ in range(3)]
    np.testing.assert_allclose(noise_of_repeats(*repeats), levels, rtol=0.05)
    assert noise_of_region(np.array([5, 8]) + 0.2 * rng.standard_normal((2000, 2))) == pytest.approx(0.2, rel=0.05)
    with pytest.raises(ValueError, match=r"^repeats: expected arrays of one shape"):
        noise_of_repeats(x, x[:5])
    with pytest.raises(
        ValueError, match=r"^values: expected the region of at least 2 samples as rows, got shape \(1, 2\)"
    ):
        noise_of_region(x[:1])
    for wrong in (x[:, 0], np.where(x > 2, np.nan, x)):
        with pytest.raises(ValueError, match=r"^X: expected at least 2 samples as rows of finite numbers"):
            noise.estimate_noise(wrong)


def test_the_chosen_parameters_are_those_of_the_fitted_model(monkeypatch):
    # With more samples than kernels are compared on, weights are refined on all of them.
    monkeypatch.setattr(automatic, "SOME", 60)
    noisy, _ = plane(150)
    found = select(noisy, noise=NOISE, max_seconds=60)
    assert found.best_params["shrink"] == found.best_estimator.shrink
    assert found.best_params["n_components"] == found.best_estimator.n_components
    assert found.best_params["kernel"] == found.best_estimator.kernels_[0]
    assert "nan" not in found.to_markdown()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"noise": -1}, "noise: expected a positive number"),
        ({"noise": "much"}, "noise: expected a positive number"),
        (
            {"noise": [1.0, 2.0]},
            r"noise: expected a positive number, one per .* got an array of shape \(2,\) for 6 col",
        ),
        ({"noise": [1.0] * 5 + [-1.0]}, "noise: expected a positive number, one per column, .* got -1.0"),
        ({"noise": [1.0] * 5 + [np.nan]}, "noise: expected a positive number, one per column, .* got nan"),
        ({"noise": [0.0] * 6}, "noise: expected a positive number, one per column, .* got zeros alone"),
        ({"validation": "rubbish"}, "validation: this option needs a grid, got 'rubbish'"),
        ({"method": "gradient"}, "method: this option needs a grid, got 'gradient'"),
        ({"holdout": 0.5}, "holdout: this option needs a grid, got 0.5"),
        ({"grid": {"n_components": [2]}, "for_": "new"}, "for_: this option is for a search without a grid, got 'new'"),
        ({"for_": "all"}, "for_: got 'all', allowed are these, new"),
        ({"criterion": "reconstruction"}, "criterion: unknown name 'reconstruction', allowed are risk, masked"),
        ({"criterion": "masked", "for_": "new"}, "for_: got 'new', allowed are these"),
        ({"max_seconds": 0}, "max_seconds: expected a positive number"),
        ({"noise": 1e10}, "noise: expected that of the samples, which vary by 1.* at most, got 1e"),
        ({"random_state": 1.5}, "random_state: expected an integer of at least 0, got 1.5"),
        (
            {"random_state": np.random.RandomState(0)},
            "random_state: expected an integer of at least 0, got RandomState",
        ),
        ({"grid": {1: [2]}}, "grid: unknown parameter 1, allowed are"),
    ],
)
def test_other_wishes_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        select(plane(30)[0], **options)


def test_a_grid_takes_one_noise_level():
    with pytest.raises(ValueError, match="noise: expected one number with a grid, got 6"):
        select(plane(30)[0], {"n_components": [2]}, noise=np.ones(6))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_denoiser_that_leaves_all_as_it_is_tells_no_noise_level():
    # Some columns vary 100,000 times as much as others.
    X = load_breast_cancer().data[:100]
    cleaned, found = drkm.denoise(X, return_selection=True, max_seconds=1)
    assert np.isfinite(cleaned).all()
    assert found.noise > 0


def test_samples_too_large_for_the_squares_of_errors_are_refused():
    for scale in (1e80, 1e300):
        with pytest.raises(ValueError, match=r"^X: values are too large for their squares, divide them"):
            drkm.denoise(scale * plane(30)[0])


def test_samples_without_noise_have_nothing_to_clean():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30))
    with pytest.raises(ValueError, match="noise: none was found in X"):
        drkm.denoise(X)


def write_table(path, values):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", *"abcdef"])
        writer.writerows([f"p{number}", *row] for number, row in enumerate(values))


def test_a_table_is_cleaned_by_one_command(tmp_path):
    noisy, clean = plane()
    write_table(tmp_path / "noisy.csv", noisy * 10 + 5)
    out, figure = tmp_path / "clean.csv", tmp_path / "figure.png"
    words = ("--auto", "--id", "patient", "--noise", "3", "--figure", figure, "--max-seconds", "0.001")
    done = command("denoise", tmp_path / "noisy.csv", "-o", out, *words)
    assert done.code == 0, done.err
    assert "chosen: " in done.out
    assert "expected mean squared error" in done.out
    assert figure.stat().st_size > 1000
    with open(out, newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["patient", *"abcdef"]
    assert [row[0] for row in rows[:2]] == ["p0", "p1"]
    found = np.array([row[1:] for row in rows], dtype=float)
    assert error(found, clean * 10 + 5) < 0.8 * error(noisy * 10 + 5, clean * 10 + 5)


def test_a_model_that_is_selected_cleans_by_its_file(tmp_path):
    noisy, _ = plane()
    write_table(tmp_path / "noisy.csv", noisy)
    model = tmp_path / "m.safetensors"
    done = command(
        *("select", tmp_path / "noisy.csv", "--id", "patient", "-o", model, "--for", "new", "--json"),
        *("--noise", NOISE, "--scale", "1", "--max-seconds", "0.001"),
    )
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["noise"] == pytest.approx(NOISE)
    assert told["noise_left"] < 0.9
    assert drkm.load(model).shrink == (tuple(told["shrink"]) if isinstance(told["shrink"], list) else told["shrink"])
    write_table(tmp_path / "new.csv", plane(50, seed=3)[0])
    done = command("denoise", model, tmp_path / "new.csv", "-o", tmp_path / "new_clean.csv")
    assert done.code == 0, done.err
    found = pd.read_csv(tmp_path / "new_clean.csv", index_col="patient").to_numpy()
    assert error(found, plane(50, seed=3)[1]) < error(plane(50, seed=3)[0], plane(50, seed=3)[1])


def test_a_folder_of_images_is_cleaned_by_one_command(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    clean = 60 + load_digits().images[:90] * 8
    noisy = np.clip(clean + 30 * rng.standard_normal(clean.shape), 0, 255).astype(np.uint8)
    (tmp_path / "noisy").mkdir()
    for number, image in enumerate(noisy):
        Image.fromarray(image).save(tmp_path / "noisy" / f"{number:02d}.png")
    figure = tmp_path / "f.png"
    words = ("--auto", "--noise", "30", "--max-seconds", "0.001", "--figure", figure, "--json")
    done = command("denoise", tmp_path / "noisy", "-o", tmp_path / "clean", *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["samples"] == 90
    found = np.stack([np.asarray(Image.open(tmp_path / "clean" / f"{i:02d}.png"), dtype=float) for i in range(90)])
    assert error(found, clean) < 0.8 * error(noisy.astype(float), clean)
    assert figure.stat().st_size > 1000


@pytest.mark.parametrize("scale", ["auto", "4", "standard"])
def test_a_figure_shows_images_in_their_greys_whatever_white_is(scale, tmp_path, monkeypatch):
    from drkm import plotting

    pytest.importorskip("PIL")
    images = load_digits().images[:30] + 3 * np.random.default_rng(0).standard_normal((30, 8, 8))
    np.save(tmp_path / "noisy.npy", images)
    drawn, draw = [], plotting.image_grid
    monkeypatch.setattr(plotting, "image_grid", lambda pictures, *more: drawn.append(pictures) or draw(pictures, *more))
    words = ("--auto", "--noise", "3", "--max-seconds", "0.001", "--scale", scale, "--figure", tmp_path / "f.png")
    done = command("denoise", tmp_path / "noisy.npy", "-o", tmp_path / "clean.npy", *words)
    assert done.code == 0, done.err
    assert ("errors are of prepared data" in done.out) == (scale != "auto")
    shown = np.linspace(0, 29, 10).round().astype(int)
    expected = [pictures[shown] for pictures in (images, np.load(tmp_path / "clean.npy"))]
    np.testing.assert_allclose(drawn[0], np.clip(np.stack(expected) / images.max(), 0, 1), atol=1e-9)


def test_images_with_gaps_are_cleaned_to_a_folder(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    images = load_digits().images[:30] + 3 * np.random.default_rng(0).standard_normal((30, 8, 8))
    images[3, 4, 4] = np.nan
    np.save(tmp_path / "noisy.npy", images)
    words = ("--auto", "--noise", "3", "--max-seconds", "0.001", "--impute", "mean")
    done = command("denoise", tmp_path / "noisy.npy", "-o", tmp_path / "clean", *words)
    assert done.code == 0, done.err
    found = np.stack([np.asarray(Image.open(file)) for file in sorted((tmp_path / "clean").iterdir())])
    assert error(found * np.nanmax(images) / 255, np.nan_to_num(images)) < 20


@pytest.mark.parametrize("words", [("select",), ("denoise", "--auto", "-o", "clean.csv")])
def test_commands_take_one_noise_level(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(Path("t.csv"), plane(30)[0])
    told = refused(words[0], "t.csv", *words[1:], "--id", "patient", "--noise", "1,5")
    assert "noise: expected a positive number or auto, got '1,5'" in told


def test_commands_say_what_they_lack(tmp_path):
    write_table(tmp_path / "t.csv", plane(30)[0])
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    assert "data: expected MODEL and DATA" in refused("denoise", table, "-o", out)
    assert "auto: expected the data alone" in refused("denoise", table, table, "-o", out, "--auto")
    assert "noise: is for --auto" in refused("denoise", table, table, "-o", out, "--noise", "1")
    assert "noise: expected" in refused("denoise", table, "-o", out, "--auto", "--id", "patient", "--noise", "-1")
    assert "for: got 'all'" in refused("select", table, "--id", "patient", "--for", "all")
    assert "criterion: unknown name 'magic'" in refused("select", table, "--id", "patient", "--criterion", "magic")
    assert "the data are not images" in refused(
        "denoise", table, "-o", tmp_path / "folder", "--auto", "--id", "patient"
    )


@pytest.mark.gpu
def test_samples_on_a_gpu_are_cleaned_there():
    noisy = torch.from_numpy(plane()[0]).cuda()
    cleaned, found = drkm.denoise(noisy, noise=NOISE, return_selection=True)
    assert cleaned.device == noisy.device
    assert all(isinstance(values, np.ndarray) for values in found.spectra)
