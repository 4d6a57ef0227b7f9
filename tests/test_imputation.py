from __future__ import annotations

import csv
import json
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from command_line import drkm, refused
from drkm import ConstrDRKM, Imputer
from drkm.cli._options import IMPUTE
from drkm.files import container
from drkm.imputation import Filling, filling_of
from drkm.imputation.filling import HOW, Member
from drkm.imputation.linear import LinearFill
from drkm.kernels import RBF, Matern
from drkm.loading import load_prepared
from drkm.machine import memory
from drkm.machine.memory import NotEnoughMemory
from drkm.persistence import model_file
from drkm.problem.shrinkage import Shrinkage


@parametrize_with_checks([Imputer(), Imputer(add_indicator=True, keep_empty_features=True, missing_values=-1.0)])
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)


def with_gaps(X, share=0.2, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


WINE = standard(load_wine().data)
GAPPY = with_gaps(WINE)
#: a filling for few columns, with components of both kinds
SOME = Filling(
    np.zeros(13),
    np.ones(13),
    LinearFill.of(GAPPY, 0.1),
    LinearFill.of(GAPPY, 0.1).fill(GAPPY),
    (Member(RBF(10.0), Shrinkage(0.5, "firm"), 0.5), Member(Matern(1.5, 20.0), Shrinkage(0.5), 0.25)),
)


def test_only_gaps_change_and_new_rows_are_filled_one_by_one():
    imputer = Imputer().fit(GAPPY[:120])
    new = GAPPY[120:]
    filled = imputer.transform(new)
    known = ~np.isnan(new)
    np.testing.assert_array_equal(filled[known], new[known])
    assert np.isfinite(filled).all()
    alone = np.vstack([imputer.transform(row[None]) for row in new[:5]])
    np.testing.assert_allclose(alone, filled[:5], rtol=1e-8, atol=1e-8)


def test_a_reference_of_more_samples_than_fit_is_refused_before_their_square_is_formed(monkeypatch):
    reference = np.random.default_rng(0).normal(size=(100_000, 2))
    filling = Filling(np.zeros(2), np.ones(2), None, reference, (Member(RBF(1.0), Shrinkage(0.5), 1.0),))
    monkeypatch.setattr(memory, "available", lambda device: 10**9)
    with pytest.raises(NotEnoughMemory, match=r"of 100000 samples needs .* GB of memory.*a smaller max_samples"):
        filling.fill(np.array([[1.0, np.nan]]))


def test_gaps_are_filled_better_than_by_neighbours_and_means():
    gaps = np.isnan(GAPPY)

    def error(imputer):
        return np.mean((imputer.fit_transform(GAPPY) - WINE)[gaps] ** 2)

    assert error(Imputer()) < 0.95 * min(error(KNNImputer(n_neighbors=k)) for k in (5, 10, 20)) < 0.8


def test_the_linear_kernel_ends_where_cleaning_changes_nothing_and_that_is_the_conditional_mean():
    fill = LinearFill.of(GAPPY, 0.1)
    filled = fill.fill(GAPPY)
    noisy = fill.covariance + 0.1 * np.eye(13)
    cleaned = fill.mean + (filled - fill.mean) @ fill.covariance @ np.linalg.inv(noisy)
    gaps = np.isnan(GAPPY)
    np.testing.assert_allclose(cleaned[gaps], filled[gaps], atol=1e-8)
    # The most likely values, by a density from elsewhere: any other value makes the row less likely.
    row = int(np.argmax(gaps.sum(axis=1)))
    density = multivariate_normal(fill.mean, noisy)
    for place in np.flatnonzero(gaps[row]):
        moved = np.stack([filled[row], filled[row], filled[row]])
        moved[1:, place] += (0.01, -0.01)
        best, *others = density.logpdf(moved)
        assert best > max(others)


def test_the_answer_depends_on_neither_units_nor_order_of_columns():
    imputer, order = Imputer(), np.random.default_rng(1).permutation(13)
    filled = imputer.fit_transform(GAPPY)
    scale, offset = np.geomspace(1e-3, 1e3, 13), np.linspace(-50, 50, 13)
    other = imputer.fit_transform(GAPPY * scale + offset)
    np.testing.assert_allclose((other - offset) / scale, filled, atol=1e-6)
    # Other entries are masked, so that the choice may differ.
    turned = imputer.fit_transform(GAPPY[:, order])
    assert np.mean((turned - filled[:, order]) ** 2) < 0.1 * np.mean((filled - WINE) ** 2)


def test_empty_features_indicators_and_other_marks_are_as_in_simple_imputer():
    X = GAPPY[:40, :4].copy()
    X[:, 2] = np.nan
    plain = Imputer().fit(X)
    assert plain.get_feature_names_out().tolist() == ["x0", "x1", "x3"]
    kept = Imputer(keep_empty_features=True, add_indicator=True).fit(X)
    names = ["x0", "x1", "x2", "x3", *(f"missingindicator_x{i}" for i in range(4))]
    assert kept.get_feature_names_out().tolist() == names
    out = kept.transform(X)
    np.testing.assert_array_equal(out[:, 4:], np.isnan(X))
    np.testing.assert_array_equal(out[:, [0, 1, 3]], plain.transform(X))
    np.testing.assert_array_equal(out[:, 2], 0)
    marked = np.where(np.isnan(X), -9.0, X)
    np.testing.assert_array_equal(Imputer(missing_values=-9.0).fit_transform(marked), plain.transform(X))


def test_numbers_in_a_feature_that_had_none_in_fit_are_kept_as_by_simple_imputer():
    X, new = GAPPY[:40, :4].copy(), GAPPY[40:60, :4]
    X[:, 2] = np.nan
    assert np.isnan(new[:, 2]).any()
    ours, theirs = (kind(keep_empty_features=True).fit(X).transform(new) for kind in (Imputer, SimpleImputer))
    np.testing.assert_array_equal(ours[:, 2], theirs[:, 2])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_gaps_are_found_in_the_precision_of_the_data(dtype):
    X = np.where(np.isnan(GAPPY[:40]), -99.9, GAPPY[:40]).astype(dtype)
    blank = np.where(np.isnan(GAPPY[:40]), np.nan, X)
    np.testing.assert_array_equal(Imputer(missing_values=-99.9).fit_transform(X), Imputer().fit_transform(blank))
    np.testing.assert_array_equal(Imputer(missing_values=-1e300).fit_transform(X), X)


def test_a_frame_keeps_its_names_and_rows():
    frame = pd.DataFrame(GAPPY, columns=load_wine().feature_names, index=[f"w{i}" for i in range(len(GAPPY))])
    out = Imputer().set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == frame.columns.tolist()
    assert out.index.tolist() == frame.index.tolist()


@pytest.mark.parametrize("shape", [(3, 2), (30, 1), (12, 40)])
def test_few_rows_one_column_and_wide_tables_are_filled(shape):
    X = with_gaps(np.random.default_rng(0).normal(size=shape))
    X[0] = np.nan
    X[1] = 1.0
    assert np.isfinite(Imputer().fit_transform(X)).all()


def test_a_row_without_a_number_gets_the_means():
    X = np.vstack([GAPPY, np.full((1, 13), np.nan)])
    imputer = Imputer().fit(GAPPY)
    np.testing.assert_allclose(imputer.transform(X)[-1], imputer.statistics_, atol=0.6)


def test_large_sets_are_filled_against_some_of_their_rows():
    X = with_gaps(np.random.default_rng(0).normal(size=(300, 5)) @ np.random.default_rng(1).normal(size=(5, 5)))
    imputer = Imputer(max_samples=50).fit(X)
    reference = imputer.filling_.reference
    assert reference is None or reference.shape == (50, 5)
    assert np.isfinite(imputer.transform(X)).all()


@pytest.mark.parametrize(
    ("imputer", "X", "words"),
    [
        (Imputer(), np.full((4, 2), np.nan), "X: expected at least one number"),
        (Imputer(max_samples=1), GAPPY, "max_samples: .*2"),
        (Imputer(add_indicator="yes"), GAPPY, "add_indicator: "),
        (Imputer(), np.where(np.isnan(GAPPY), np.inf, GAPPY), "infinity"),
    ],
)
def test_what_cannot_be_filled_is_refused(imputer, X, words):
    with pytest.raises((TypeError, ValueError), match=words):
        imputer.fit(X)


def test_gaps_by_numbers_of_the_same_seed_leave_entries_to_choose_by():
    X = standard(load_breast_cancer().data[:400])
    gone = np.random.RandomState(0).rand(*X.shape) < 0.1
    imputer = Imputer(random_state=0)
    filled = imputer.fit_transform(np.where(gone, np.nan, X))
    assert imputer.filling_.members
    # 0.28 without any choice, 0.18 with another seed.
    assert np.square(filled - X)[gone].mean() < 0.22


def test_rows_of_one_number_each_are_filled_with_care_and_without_a_warning():
    columns = np.random.default_rng(0).integers(0, 2, 80)
    X = np.where(np.eye(2)[columns] > 0, np.random.default_rng(1).normal(size=(80, 2)), np.nan)
    filled = Imputer().fit_transform(X)
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_numbers_whose_squares_are_none_are_filled_like_others(scale):
    filled = Imputer().fit_transform(scale * GAPPY)
    np.testing.assert_allclose(filled / scale, Imputer().fit_transform(GAPPY), rtol=1e-6, atol=1e-6)


def test_an_entry_far_from_all_samples_leaves_the_mean_beside_it():
    filled = Imputer().fit(GAPPY).transform(np.append(np.full(12, 1e300), np.nan)[None])
    assert filled[0, 12] == pytest.approx(np.nanmean(GAPPY[:, 12]))


def test_a_fit_that_fails_leaves_the_imputer_as_it_was():
    imputer = Imputer().fit(GAPPY)
    filled = imputer.transform(GAPPY)
    with pytest.raises(ValueError, match="got 12 gaps"):
        imputer.fit(np.full((3, 4), np.nan))
    assert imputer.transform(GAPPY).tobytes() == filled.tobytes()


def test_masked_entries_are_not_taken_for_known_ones():
    with pytest.raises(ValueError, match=r"^X: contains masked values"):
        Imputer().fit(np.ma.array(WINE, mask=np.isnan(GAPPY)))


@pytest.mark.parametrize("mark", [None, "?", np.inf])
def test_marks_of_gaps_are_numbers(mark):
    with pytest.raises((TypeError, ValueError), match=r"^missing_values: expected a (finite )?number"):
        Imputer(missing_values=mark).fit(GAPPY)


def test_the_model_refuses_gaps_and_names_who_fills_them():
    with pytest.raises(ValueError, match=r"X: contains NaN.*drkm\.Imputer"):
        ConstrDRKM(3).fit(GAPPY)


@pytest.mark.parametrize("how", ["fill", "mean", "median"])
def test_what_was_learned_can_be_taken_apart_and_put_together(how):
    learned = SOME if how == "fill" else filling_of(GAPPY, how)
    tensors, plain = learned.parts()
    again = Filling.from_parts(tensors, json.loads(json.dumps(plain)), 13)
    np.testing.assert_array_equal(again.fill(GAPPY), learned.fill(GAPPY))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(learned)).fill(GAPPY), learned.fill(GAPPY))
    if how != "fill":
        middle = np.nanmean if how == "mean" else np.nanmedian
        gap = np.argwhere(np.isnan(GAPPY))[0]
        assert learned.fill(GAPPY)[tuple(gap)] == pytest.approx(middle(GAPPY, axis=0)[gap[1]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors, plain: tensors.pop("covariance"), "covariance"),
        (lambda tensors, plain: tensors.pop("reference"), "reference"),
        (lambda tensors, plain: plain.update(how="guess"), "how"),
        (lambda tensors, plain: plain["members"][0].update(weight="all"), "weight"),
        (lambda tensors, plain: plain["members"][0].update(kernel={"type": "Linear", "parameters": {}}), "members"),
        (lambda tensors, plain: tensors["scale"].zero_(), "scale"),
    ],
)
def test_parts_that_are_damaged_are_refused(change, words):
    tensors, plain = SOME.parts()
    tensors, plain = {name: tensor.clone() for name, tensor in tensors.items()}, json.loads(json.dumps(plain))
    change(tensors, plain)
    with pytest.raises((TypeError, ValueError), match=words):
        Filling.from_parts(tensors, plain, 13)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A csv with a column of names, gaps of several kinds and a column of text."""
    path = tmp_path_factory.mktemp("gaps") / "plants.csv"
    marks, iris = ("", "NA", "nan", " ? "), load_iris()
    gaps = np.random.default_rng(0).random(iris.data.shape) < 0.1
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["plant", "sl", "sw", "pl", "pw", "species"])
        for i, (row, gap) in enumerate(zip(iris.data, gaps, strict=True)):
            entries = [marks[i % 4] if empty else repr(float(value)) for value, empty in zip(row, gap, strict=True)]
            writer.writerow([f"p{i}", *entries, "setosa"])
    return path, np.where(gaps, np.nan, iris.data)


READ = ("--id", "plant", "--drop", "species")


def test_fill_writes_the_table_with_its_names_and_every_gap_filled(table, tmp_path):
    path, X = table
    out = tmp_path / "whole.csv"
    done = drkm("fill", path, "-o", out, *READ, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["filled"] == np.isnan(X).sum()
    frame = pd.read_csv(out)
    assert frame.columns.tolist() == ["plant", "sl", "sw", "pl", "pw", "species"]
    assert frame["plant"].tolist() == [f"p{i}" for i in range(150)]
    np.testing.assert_allclose(frame.iloc[:, 1:5], Imputer().fit_transform(X), rtol=1e-6)
    told = drkm("fill", path, "-o", tmp_path / "m.npy", *READ, "--impute", "median")
    assert f"{np.isnan(X).sum()} gaps of 150 samples filled (9% of all entries)" in told.out
    np.testing.assert_allclose(np.load(tmp_path / "m.npy"), filling_of(X, "median").fill(X))


def test_the_command_line_offers_every_way_to_fill_gaps():
    assert IMPUTE == HOW


@pytest.mark.parametrize("named", [True, False])
def test_fill_returns_the_same_table_but_for_its_gaps(named, tmp_path):
    lines = [["mon" if i % 2 else "tue", str(i), "x", str(i % 3 == 0), f"{i}.50", "1999"] for i in range(20)]
    lines[6][1], lines[8][4] = "", "NA"
    header = ["day", "a", "kind", "ok", "b", "year"] if named else [f"x{i}" for i in range(6)]
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("\n".join(map(",".join, [header, *lines] if named else lines)) + "\n")
    options = ("--drop", "year") if named else ("--drop", "5", "--no-header")
    done = drkm("fill", path, "-o", out, "--impute", "median", *options)
    assert done.code == 0, done
    assert f"text in columns {'day, kind' if named else '0, 2'}: not used as data, written as it is" in done.err
    first, *found = [line.split(",") for line in out.read_text().splitlines()]
    assert first == header
    assert [(row, column) for row in range(20) for column in range(6) if lines[row][column] != found[row][column]] == [
        (6, 1),
        (8, 4),
    ]
    assert (found[6][1], found[8][4]) == ("10.0", "10.5")


def test_fill_returns_a_parquet_table_with_its_text(tmp_path, monkeypatch):
    frame = pd.DataFrame({"kind": ["x", None, "x"], "a": [1.0, np.nan, 2.0], "b": [3, 4, 5]})
    monkeypatch.setattr(pd, "read_parquet", lambda file: frame)
    # The file is empty, which pyarrow would report.
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "in.parquet").write_bytes(b"")
    done = drkm("fill", tmp_path / "in.parquet", "-o", tmp_path / "out.csv", "--impute", "mean")
    assert done.code == 0, done
    assert (tmp_path / "out.csv").read_text() == "kind,a,b\nx,1.0,3\n,1.5,4\nx,2.0,5\n"


def test_fill_keeps_names_and_text_in_an_archive_but_not_in_an_array(tmp_path):
    (tmp_path / "in.csv").write_text("data,a,who,b,year\nx,1,u,3,99\ny,,v,4,98\nx,2,w,5,97\n")
    words = ("fill", tmp_path / "in.csv", "--impute", "mean", "--drop", "year")
    done = drkm(*words, "-o", tmp_path / "out.npz")
    assert done.code == 0, done
    assert "text in column data: not used as data, written as it is" in done.err
    with np.load(tmp_path / "out.npz") as held:
        found = {name: held[name].tolist() for name in held}
    assert found == {
        "data": [[1, 3], [1.5, 4], [2, 5]],
        "data_names": ["a", "b"],
        "data_": ["x", "y", "x"],
        "who": ["u", "v", "w"],
        "year": ["99", "98", "97"],
    }
    done = drkm(
        "fit", tmp_path / "out.npz", "-o", tmp_path / "m.safetensors", "--components", "1", "--scale", "standard"
    )
    assert done.code == 0, done
    assert "columns a, b" in drkm("info", tmp_path / "m.safetensors").out
    done = drkm(*words, "-o", tmp_path / "out.npy")
    assert "text in column data: not used as data, left out, npy has no place for it" in done.err
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), found["data"])


@pytest.mark.parametrize("first", ["", "plant"])
def test_fill_keeps_names_of_rows_in_an_archive(first, tmp_path):
    (tmp_path / "in.csv").write_text(f"{first},a,b\nu,1,3\nv,,4\nw,2,5\n")
    done = drkm("fill", tmp_path / "in.csv", "--impute", "mean", "-o", tmp_path / "out.npz")
    assert done.code == 0, done
    assert np.load(tmp_path / "out.npz")[first or "name"].tolist() == ["u", "v", "w"]


def test_fill_takes_an_archive_with_names(tmp_path):
    np.savez(tmp_path / "x.npz", data=[[1.0, np.nan], [2.0, 3.0]], data_names=["a", "b"])
    done = drkm("fill", tmp_path / "x.npz", "-o", tmp_path / "out.csv", "--impute", "mean")
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "out.csv").read_text() == "a,b\n1.0,3.0\n2.0,3.0\n"
    assert drkm("fill", tmp_path / "x.npz", "-o", tmp_path / "out.npz", "--impute", "mean").code == 0
    assert np.load(tmp_path / "out.npz")["data_names"].tolist() == ["a", "b"]


def test_fill_takes_no_images(tmp_path):
    (tmp_path / "photos").mkdir()
    told = refused("fill", tmp_path / "photos", "-o", tmp_path / "m.csv")
    assert told.endswith("photos should end in .npy, .npz, .csv, .tsv or .parquet\n")


@pytest.mark.parametrize("how", ["fill", "mean", "median"])
def test_a_model_remembers_how_gaps_were_filled_and_fills_those_of_new_data(table, tmp_path, how):
    path, X = table
    model, codes, clean = tmp_path / "m.safetensors", tmp_path / "codes.csv", tmp_path / "clean.csv"
    done = drkm("fit", path, "-o", model, "-c", "3", *READ, "--impute", how, "--scale", "standard")
    assert done.code == 0, done.err
    assert "gaps filled" in done.out
    loaded, preparation = load_prepared(model)
    expected = filling_of(X, how).fill(X)
    rows = preparation.apply(X)
    np.testing.assert_allclose(preparation.undo(rows), expected, rtol=1e-6)
    np.testing.assert_allclose(rows.std(axis=0), 1)
    assert drkm("encode", model, path, "-o", codes, "--drop", "species").code == 0
    np.testing.assert_allclose(pd.read_csv(codes).iloc[:, 1:], loaded.transform(rows), atol=1e-7)
    assert drkm("denoise", model, path, "-o", clean, "--drop", "species", "--json").code == 0
    assert np.isfinite(pd.read_csv(clean).iloc[:, 1:]).all().all()


def test_gaps_without_a_way_to_fill_them_are_refused_and_the_way_is_named(table, tmp_path):
    path, X = table
    told = refused("fit", path, "-o", tmp_path / "m", *READ)
    assert told.endswith("remove such rows, fill them in with --impute fill or leave columns out as with --drop pl\n")
    np.save(tmp_path / "x.npy", X)
    told = refused("fit", tmp_path / "x.npy", "-o", tmp_path / "m")
    assert told.endswith("remove such rows or fill them in with --impute fill\n")
    whole = ConstrDRKM(2).fit(pd.DataFrame(np.nan_to_num(X), columns=["sl", "sw", "pl", "pw"]))
    whole.save(tmp_path / "whole")
    told = refused("encode", tmp_path / "whole", path, "-o", tmp_path / "codes.csv", "--id", "plant")
    advice = "remove such rows, fill them in with drkm fill or fit the model with --impute fill\n"
    assert told.endswith(advice)
    assert refused("encode", tmp_path / "whole", tmp_path / "x.npy", "-o", tmp_path / "codes.csv").endswith(advice)
    said = refused("fit", path, "-o", tmp_path / "m", *READ, "--impute", "guess")
    assert "impute: unknown way 'guess', allowed are fill, mean, median" in said
    assert "impute: " in refused("fill", path, "-o", tmp_path / "m.csv", *READ, "--impute", "guess")
    X[:, 1] = np.nan
    np.save(tmp_path / "empty.npy", X)
    assert "no number in column '1'" in refused("fill", tmp_path / "empty.npy", "-o", tmp_path / "m.csv")
    X[0, 0] = np.inf
    np.save(tmp_path / "infinite.npy", X)
    assert "inf in row 1" in refused("fill", tmp_path / "infinite.npy", "-o", tmp_path / "m.csv")


def test_a_damaged_filling_in_a_file_is_refused(table, tmp_path):
    path, _ = table
    model = tmp_path / "m.safetensors"
    assert drkm("fit", path, "-o", model, "-c", "2", *READ, "--impute", "fill").code == 0
    tensors, header = container.read(model, model_file.KIND, model_file.VERSION)
    del tensors["preparation.gaps.scale"]
    container.write(model, tensors, header)
    assert "damaged" in refused("encode", model, path, "-o", tmp_path / "c.csv", "--drop", "species")
