"""Chance levels, and the table of all metrics."""

import csv
import io

import numpy as np
import pytest

from drkm import metrics
from metrics.golden_cases import golden


def noise(n=600, m=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), np.stack([rng.integers(size, size=n) for size in (4, 6)], axis=1)


def test_chance_is_the_score_of_shuffled_rows():
    z, y = noise()
    result = metrics.chance(metrics.mig, z, y, repeats=4, random_state=7)
    rng = np.random.default_rng(7)
    expected = [float(metrics.mig(z[rng.permutation(len(z))], y)) for _ in range(4)]
    assert result.values.tolist() == expected
    assert float(result) == pytest.approx(np.mean(expected))
    assert result.sd == pytest.approx(np.std(expected, ddof=1))


def test_noise_scores_its_chance_level():
    z, y = noise()
    for name in ("irs", "mig", "sap", "modularity", "factor_vae"):
        level = metrics.chance(name, z, y)
        assert abs(float(getattr(metrics, name)(z, y)) - float(level)) < 5 * level.sd


def test_informative_codes_score_above_chance():
    case = golden("p06_vae_like_dsprites_4000")
    for metric in (metrics.irs, metrics.mig, metrics.sap):
        level = metrics.chance(metric, case.codes, case.factors, repeats=5)
        assert float(metric(case.codes, case.factors)) > float(level) + 10 * level.sd


def test_chance_takes_names_options_and_any_function():
    z, y = noise()
    raw = metrics.chance("irs", z, y, repeats=2, bins=None)
    assert float(raw) == float(metrics.chance(lambda a, b: metrics.irs(a, b, bins=None), z, y, repeats=2))


def test_chance_of_unsupervised_is_that_of_independent_codes():
    z, y = noise()
    copied = np.concatenate([z, z + 0.01 * noise(seed=1)[0]], axis=1)
    level = metrics.chance("unsupervised", copied, y, repeats=3)
    assert float(level) < 0.2 < float(metrics.unsupervised(copied))


@pytest.fixture(scope="module")
def table():
    case = golden("p01_identity_small")
    return metrics.evaluate(case.codes, case.factors, repeats=2)


def test_evaluate_has_all_metrics_beside_their_chance_level(table):
    assert {row.metric for row in table} == set(table.results)
    assert len(table) == 13
    for row in table:
        assert np.isfinite([row.score, row.chance, row.chance_sd]).all()
        assert row.repeats == 2
        if row.better == "high" and row.name != "explicitness":
            assert row.score > row.chance + 0.1, row
    assert table["mig"].score == pytest.approx(0.995, abs=1e-3)
    assert table["DCI completeness"].metric == "dci"
    with pytest.raises(KeyError, match="nothing: expected one of IRS, MIG"):
        table["nothing"]


@pytest.mark.parametrize("name", ["sap", "dci", "factor_vae", "beta_vae", "explicitness"])
def test_the_seed_of_evaluate_is_that_of_splits_and_samples(name):
    z, y = noise(120)
    found = metrics.evaluate(z, y, metrics=name, repeats=1, random_state=3)
    assert found[name].score == float(getattr(metrics, name)(z, y, random_state=3))


def test_the_printed_table_is_aligned(table):
    lines = str(table).splitlines()
    assert len({len(line) for line in lines[: len(table) + 2]}) == 1
    assert lines[0].split() == ["metric", "score", "chance", "±", "sd", "above", "shuffles"]
    assert repr(table) == str(table)


def test_the_table_comes_as_csv_markdown_and_dictionaries(table, tmp_path):
    text = table.to_csv(tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["score"]) for row in rows] == [row.score for row in table]
    assert [row["above_chance"] for row in table.to_dicts()] == [row.above_chance for row in table]
    assert len(table.to_markdown().partition("\n\n")[0].splitlines()) == len(table) + 2


def test_a_markdown_table_explains_its_stars():
    random = np.random.default_rng(0)
    codes, factors = 0.01 * random.standard_normal((90, 2)), random.integers(0, 3, (90, 2))
    text = metrics.evaluate(codes, factors, metrics=["irs"], repeats=2).to_markdown()
    assert "| IRS ↑ * |" in text
    assert "\n- *: depends on the scale of codes" in text


def test_a_table_that_cannot_be_written_leaves_the_old_one(table, tmp_path, monkeypatch):
    (tmp_path / "scores.csv").write_text("old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        table.to_csv(tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text() == "old"


def test_evaluate_takes_continuous_factors():
    z, _ = noise()
    factors = z[:, :2] + 0.1 * noise(seed=1)[0][:, :2]
    table = metrics.evaluate(z, factors, continuous=True, repeats=2, metrics=["irs", "mig", "sap", "dci"])
    assert all(row.score > row.chance + 0.05 for row in table)


def test_evaluate_says_when_codes_are_too_small_for_factor_vae():
    z, y = noise()
    table = metrics.evaluate(z / 1000, y, metrics=["factor_vae"], repeats=1)
    assert "standardize the codes" in str(table)
    assert "standardize" not in str(metrics.evaluate(z / 1000, y, metrics=["factor_vae"], repeats=1, standardize=True))


def test_what_metrics_say_of_each_factor_stands_beside_its_name_and_chance():
    z, y = noise()
    table = metrics.evaluate(z, y, metrics=["irs", "mig", "explicitness"], repeats=2, factor_names=["shape", "size"])
    assert [(row.factor, row.metric) for row in table.by_factor] == [
        *(("shape", "mig"), ("size", "mig")),
        *(("shape", "explicitness"), ("size", "explicitness")),
    ]
    assert [row.score for row in table.by_factor[:2]] == metrics.mig(z, y).per_factor.tolist()
    assert np.mean([row.chance for row in table.by_factor[:2]]) == pytest.approx(table["mig"].chance)
    shown = str(table).split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in shown] == ["factor", len(shown[0]) * "-", "shape", "size", "in"]
    assert shown[0].split() == ["factor", "MIG", "explicitness"]
    assert len({len(line) for line in shown[:-1]}) == 1


def test_factors_are_called_by_the_columns_of_a_frame_or_by_their_number():
    pandas = pytest.importorskip("pandas")
    z, y = noise()
    for factors, names in ((y, ["factor 0", "factor 1"]), (pandas.DataFrame(y, columns=["a", "b"]), ["a", "b"])):
        for continuous in (False, True):
            table = metrics.evaluate(z, factors, metrics=["mig"], repeats=1, continuous=continuous)
            assert [row.factor for row in table.by_factor] == names
    with pytest.raises(ValueError, match="factor_names: one name per factor is needed, 2, got 1"):
        metrics.evaluate(z, y, factor_names=["a"])
    with pytest.raises(ValueError, match=r"needs integer labels, b \(column 1\) holds 0.5"):
        metrics.evaluate(z, y / [1, 2], factor_names=["a", "b"])


def test_evaluate_leaves_out_what_one_factor_cannot_give():
    z, y = noise()
    table = metrics.evaluate(z, y[:, :1], repeats=1)
    assert {"factor_vae", "beta_vae", "modularity"}.isdisjoint(row.metric for row in table)
    assert np.isnan(table["DCI disentanglement"].score)
    assert "–" in str(table)


@pytest.mark.parametrize(
    ("scale", "standardize", "starred"), [(0.02, False, True), (0.02, True, False), (1, False, False)]
)
def test_scores_that_depend_on_the_scale_of_codes_say_so_where_it_is_far_from_1(scale, standardize, starred):
    rng = np.random.default_rng(0)
    codes, factors = scale * rng.normal(size=(90, 2)), rng.integers(0, 3, size=(90, 2))
    table = metrics.evaluate(codes, factors, metrics=["mig", "sap"], repeats=1, standardize=standardize)
    assert table.unscaled == (("sap",) if starred else ())
    assert ("SAP ↑ *" in str(table)) == starred
    assert "MIG ↑ *" not in str(table)
    assert any("depends on the scale of codes" in note for note in table.notes) == starred
