"""Codes and factors from files: the same table as from arrays, and one sentence for unreadable files."""

import json
import re

import numpy as np
import pytest

from drkm import metrics
from drkm.datasets._factors import ArrayDataset


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (200, 2))
    return factors + 0.3 * rng.standard_normal(factors.shape), factors


def test_npy_npz_and_csv_give_the_table_of_the_arrays(arrays, tmp_path):
    codes, factors = arrays
    np.save(tmp_path / "codes.npy", codes)
    np.save(tmp_path / "factors.npy", factors)
    np.savez(tmp_path / "both.npz", codes=codes, factors=factors)
    np.savetxt(tmp_path / "codes.csv", codes, delimiter=",", fmt="%.17g")
    np.savetxt(tmp_path / "factors.csv", factors, delimiter=",", fmt="%d", header="shape,size", comments="")
    chosen = {"metrics": ["irs", "mig", "sap"]}
    expected = str(metrics.evaluate(codes, factors, **chosen))
    for pair in (("codes.npy", "factors.npy"), ("both.npz", "both.npz")):
        assert metrics.evaluate_files(*(tmp_path / name for name in pair), **chosen) == expected
    named = str(metrics.evaluate(codes, factors, factor_names=["shape", "size"], **chosen))
    assert metrics.evaluate_files(tmp_path / "codes.csv", tmp_path / "factors.csv", **chosen) == named


def test_classes_may_be_text(arrays, tmp_path):
    codes, factors = arrays
    np.save(tmp_path / "codes.npy", codes)
    kinds = np.array(["mutant", "other", "unknown", "wild type"])[factors[:, 0]]
    rows = [f"{kind},{size}" for kind, size in zip(kinds, factors[:, 1], strict=True)]
    (tmp_path / "factors.csv").write_text("\n".join(["kind,size", *rows]))
    chosen = {"metrics": ["mig", "sap"]}
    expected = str(metrics.evaluate(codes, factors, factor_names=["kind", "size"], **chosen))
    assert metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / "factors.csv", **chosen) == expected
    with pytest.raises(ValueError, match="has text in column kind"):
        metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / "factors.csv", continuous=True)
    (tmp_path / "factors.csv").write_text("\n".join(["kind,size", "3,1", *rows[1:]]))
    with pytest.raises(ValueError, match="has text in column kind"):
        metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / "factors.csv")


def test_factors_keep_the_names_that_an_archive_gives_them(arrays, tmp_path):
    codes, factors = arrays
    np.save(tmp_path / "codes.npy", codes)
    np.savez(tmp_path / "named.npz", images=codes, factors=factors, factor_names=["shape", "size"])
    np.savez(tmp_path / "columns.npz", who=np.arange(200).astype(str), shape=factors[:, 0], size=factors[:, 1])
    expected = str(metrics.evaluate(codes, factors, metrics=["mig"], factor_names=["shape", "size"]))
    for name, id in (("named.npz", None), ("columns.npz", "who")):
        found = metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / name, metrics=["mig"], id=id)
        assert found == expected
    expected = str(metrics.evaluate(codes, factors[:, 1:], metrics=["mig"], factor_names=["size"]))
    for name, drop in (("named.npz", ["shape"]), ("columns.npz", ["who", "shape"])):
        found = metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / name, metrics=["mig"], drop=drop)
        assert found == expected


def test_names_of_columns_that_no_file_has_are_refused(arrays, tmp_path):
    codes, factors = arrays
    np.save(tmp_path / "codes.npy", codes)
    np.savetxt(tmp_path / "factors.csv", factors, delimiter=",", fmt="%d", header="shape,size", comments="")
    files = (tmp_path / "codes.npy", tmp_path / "factors.csv")
    there = f"no column is called 'who', {files[0]} has no names, {files[1]} has shape, size"
    for option, named in (("id", {"id": "who"}), ("drop", {"drop": ["size", "who"]})):
        with pytest.raises(ValueError, match=f"^{option}: {re.escape(there)}$"):
            metrics.evaluate_files(*files, metrics=["mig"], **named)
    with pytest.raises(ValueError, match=r"^header: is for a .csv or .tsv file, not for .*codes.npy and .*codes.npy$"):
        metrics.evaluate_files(files[0], files[0], header=False)


def test_a_saved_dataset_names_its_factors(tmp_path):
    rng = np.random.default_rng(0)
    grid = np.stack(np.unravel_index(np.arange(60), (3, 20)), axis=1)
    images = np.zeros((60, 64, 64), np.uint8)
    ArrayDataset("toy", ["hue", "angle"], [3, 20], images, grid).save_compact(tmp_path / "toy.npz")
    np.save(tmp_path / "codes.npy", rng.normal(size=(60, 3)))
    text = metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / "toy.npz", metrics=["mig"], format="json")
    assert [row["factor"] for row in json.loads(text)["factors"]] == ["hue", "angle"]


def test_json_holds_every_row_and_no_nan(arrays, tmp_path):
    codes, factors = arrays
    np.savez(tmp_path / "both.npz", codes=codes, factors=factors)
    text = metrics.evaluate_files(tmp_path / "both.npz", tmp_path / "both.npz", format="json", metrics=["irs", "mig"])
    found = json.loads(text)
    assert [row["metric"] for row in found["scores"]] == ["irs", "mig"]
    assert found["scores"][1]["score"] == pytest.approx(float(metrics.mig(codes, factors)))
    assert "NaN" not in text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("codes.txt", b"1,2\n", "should end in"),
        ("codes.npy", b"not numpy at all", "cannot be read"),
        ("codes.npz", b"PK\x03\x04 broken", "cannot be read"),
        ("codes.npy", b"\x80\x04\x95\x0c", "cannot be read"),
        ("codes.csv", b"1,2\n3\n", "has 1 entry in row 2"),
        ("codes.csv", b"1,2\n3,x\n", "no number in row 2"),
        ("codes.csv", b"a,b\n", "has no rows"),
        ("codes.csv", b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_bad_files_are_refused(name, content, sentence, arrays, tmp_path):
    np.save(tmp_path / "factors.npy", arrays[1])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        metrics.evaluate_files(tmp_path / name, tmp_path / "factors.npy")
    assert "\n" not in str(caught.value)


def test_missing_files_different_lengths_and_strange_archives_are_named(arrays, tmp_path):
    codes, factors = arrays
    np.save(tmp_path / "codes.npy", codes[:-1])
    np.save(tmp_path / "factors.npy", factors)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.savez(tmp_path / "two.npz", a=codes, b=codes)
    (tmp_path / "folder").mkdir()
    for first, sentence in (
        ("none.npy", "there is no file"),
        ("codes.npy", "as many rows as codes"),
        ("words.npy", "not real numbers"),
        ("two.npz", "holds a, b"),
        ("folder", "codes: .*folder should end in .npy, .npz, .csv, .tsv or .parquet$"),
    ):
        with pytest.raises(ValueError, match=sentence):
            metrics.evaluate_files(tmp_path / first, tmp_path / "factors.npy")
    with pytest.raises(ValueError, match="format: unknown name"):
        metrics.evaluate_files(tmp_path / "codes.npy", tmp_path / "factors.npy", format="xml")
