from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from drkm.experiments import NAMES, by_name, digits, table1
from drkm.experiments import __main__ as command
from drkm.experiments import _denoising as shared
from drkm.experiments._output import markdown, save_table, write_bytes
from drkm.experiments._protocol import FIRST_MEASURE, best, candidates

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

TINY = replace(
    shared.SIZES["quick"],
    n_train=60,
    n_validation=30,
    widths=(12.0,),
    deep_widths=(12.0,),
    keep=(5, 10),
    layers=(5,),
    fractions=(0.4, 1.0),
    protocol=(0.02, 0.5),
    rival_points=60,
    rival_components=(5,),
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(shared.SIZES, "quick", TINY)
    small = replace(
        digits.SIZES["quick"], n_train=60, n_validation=20, n_test=20, keep=(5, 10), layers=(5,), widths=(1.0,)
    )
    monkeypatch.setitem(digits.SIZES, "quick", small)
    monkeypatch.setattr(table1, "NOISES", (0.1,))
    monkeypatch.setattr(table1, "DATASETS", {"square": "Square", "half_circle": "Half circle"})


def problem(noise: float = 0.1, n: int = 400) -> shared.Problem:
    return shared.make_problem("square", noise, n, 100, seed=3)


@pytest.mark.parametrize("name", [name for name in ("figure1", "figure2", "figure3", "digits") if name in NAMES])
def test_every_experiment_writes_figures_and_tables(name, tiny, tmp_path, capsys):
    command.main([name, "--out", str(tmp_path), "--jobs", "1"])
    written = {path.suffix for path in (tmp_path / name).iterdir()}
    assert written == {".png", ".svg", ".csv", ".md"}
    assert str(tmp_path / name) in capsys.readouterr().out
    assert not [path for path in (tmp_path / name).iterdir() if path.name.startswith(".")]


def test_table1_has_a_row_for_every_method_and_cell(tiny, tmp_path):
    command.main(["table1", "--out", str(tmp_path), "--jobs", "1"])
    assert {path.suffix for path in (tmp_path / "table1").iterdir()} == {".png", ".svg", ".csv", ".md"}
    with open(tmp_path / "table1" / "errors-quick.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(table1.ROW_ORDER)
    bound = [row for row in rows if row["method"] == "Bayes posterior mean"]
    assert {float(row["relative to Bayes"]) for row in bound} == {1.0}
    with open(tmp_path / "table1" / "ratios-quick.csv", newline="") as file:
        ratios = list(csv.DictReader(file))
    assert [row["Square (published)"] for row in ratios] == ["1.09"]


def test_the_posterior_mean_is_better_than_the_noisy_points_and_any_other_method():
    here = problem()
    bound = shared.mean_squared_error(shared.posterior_mean(here, here.train), here.clean)
    for method in (shared.noisy_points, shared.mean_shift, shared.one_layer):
        found = method(here, TINY, 0.1)
        assert shared.mean_squared_error(found.points, here.clean) > bound


def test_problems_depend_on_the_seed_alone():
    one, same, other = (shared.make_problem("square", 0.1, 50, 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.train, same.train)
    assert not np.array_equal(one.train, other.train)
    assert one.validation.shape == (20, 2)


def test_the_protocol_takes_the_bandwidth_of_least_validation_error():
    found = candidates(problem(n=80), (0.02, 0.5))
    chosen = best(found, "deep", FIRST_MEASURE)
    rivals = [c for c in found if c.model == "deep" and not c.normalized and c.steps is None]
    assert len(rivals) == 4
    assert chosen.validation[FIRST_MEASURE] == min(c.validation[FIRST_MEASURE] for c in rivals)


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
    assert (tmp_path / "t.md").read_text() == "title\n\n" + markdown(rows)
    assert "| 0.3333 | x |" in markdown(rows)


def test_salt_and_pepper_sets_pixels_to_black_or_white():
    images = digits.load_images(0)[:50]
    noisy = digits.corrupt(images, 0.2, gaussian=False, seed=0)
    changed = noisy != images
    assert set(np.unique(noisy[changed])) <= {0.0, 1.0}
    assert 0.05 < changed.mean() < 0.2


def test_unknown_names_get_one_clear_sentence(tmp_path):
    with pytest.raises(ValueError, match="experiment: unknown name 'table9', allowed are table1"):
        by_name("table9")
    with pytest.raises(ValueError, match="scale: unknown name 'huge', allowed are quick, paper"):
        table1.run("huge", tmp_path)
