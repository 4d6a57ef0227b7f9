"""Data files of every dialect are read as they were written."""

import csv
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from drkm.files import (
    Columns,
    Pictures,
    check_folder,
    check_target,
    read_labels,
    read_table,
    write_images,
    write_table,
    write_whole,
)
from drkm.imputation.choice import filling_of
from drkm.inputs.preparation import Preparation
from drkm.machine import memory
from drkm.machine.memory import NotEnoughMemory

VALUES = np.array([[1.5, -2.0], [3.0, 4e-3]])


@pytest.mark.parametrize(
    ("text", "columns", "names"),
    [
        ("1.5,-2\n3,4e-3\n", None, None),
        ("a,b\n1.5,-2\n3,4e-3\n", ("a", "b"), None),
        ("\ufeffa;b\r\n1.5;-2\r\n3;4e-3\r\n", ("a", "b"), None),
        ("a\tb\n1.5\t-2\n\n3\t4e-3", ("a", "b"), None),
        ('"a, or so",b\n"1.5",-2\n3,4e-3\n', ("a, or so", "b"), None),
        # names with more commas than there are semicolons between them
        ("height, cm;weight, kg\n1.5;-2\n3;4e-3\n", ("height, cm", "weight, kg"), None),
        ('"a, b, c";"d, e"\n1.5;-2\n3;4e-3\n', ("a, b, c", "d, e"), None),
        ("a;b;c,d;e\n1.5,-2\n3,4e-3\n", ("a;b;c", "d;e"), None),
        # decimal commas, as spreadsheets write them in much of Europe
        ("a;b\n1,5;-2\n3;4e-3\n", ("a", "b"), None),
        ("1,5;-2,0\n3;0,004\n", None, None),
        ("a\tb\n1,500\t-2\n3\t0,004\n", ("a", "b"), None),
        ("a;b\n1,5;-2\n3;0,004\n;\n;\n", ("a", "b"), None),
        # spreadsheets with an empty column, and rows of nothing at the end
        ("a,b,\n1.5,-2,\n3,4e-3,\n,,\n", ("a", "b"), None),
        # as data frames write unnamed columns, and the names of their rows
        ("0,1\n1.5,-2\n3,4e-3\n", ("0", "1"), None),
        (",a,b\nfirst,1.5,-2\nsecond,3,4e-3\n", ("a", "b"), ("first", "second")),
        (",2019,2020\nfirst,1.5,-2\nsecond,3,4e-3\n", ("2019", "2020"), ("first", "second")),
    ],
)
def test_dialects_of_csv(text, columns, names, tmp_path):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "x.csv")
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.columns == columns
    assert table.names == names


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("named", [False, True])
def test_lines_may_be_longer_than_an_entry_may_be(delimiter, named, tmp_path):
    values = np.random.default_rng(0).standard_normal((3, 20_000))
    names = tuple(f"gene{index}" for index in range(values.shape[1])) if named else None
    header = delimiter.join(names or ())
    np.savetxt(tmp_path / "wide.csv", values, delimiter=delimiter, header=header, comments="", fmt="%.17g")
    assert (tmp_path / "wide.csv").stat().st_size > 3 * csv.field_size_limit()
    table = read_table(tmp_path / "wide.csv")
    np.testing.assert_array_equal(table.values, values)
    assert table.columns == names


def test_an_entry_that_is_too_long_is_refused_whatever_separates_the_others(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3," + "x" * (csv.field_size_limit() + 1) + "\n")
    with pytest.raises(ValueError, match=r"x\.csv cannot be read as a table: field larger than field limit"):
        read_table(tmp_path / "x.csv")


def test_texts_with_underscores_are_no_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("sample,a,b\n1_1,1.5,-2\n1_2,3,4e-3\n")
    assert read_table(path, columns=Columns(finds_id=True)).names == ("1_1", "1_2")
    path.write_text("sample,a,b\n1_1,1.5,-2\n1_1,3,4e-3\n")
    with pytest.raises(ValueError, match=r"has text in column sample \(row 1: '1_1'\)"):
        read_table(path)
    path.write_text("a,b\n1.5,-2\n3,4_0\n5,6\n")
    with pytest.raises(ValueError, match=r"has an entry that is no number in row 2 of column 'b': '4_0'"):
        read_table(path)


def test_truth_values_are_1_and_0(tmp_path):
    (tmp_path / "x.csv").write_text("a,ok\n1,True\n2,false\n3,\n")
    table = read_table(tmp_path / "x.csv", columns=Columns(gaps=True))
    np.testing.assert_array_equal(table.values, [[1, 1], [2, 0], [3, np.nan]])
    (tmp_path / "x.csv").write_text("a,ok\n1,True\n2,maybe\n3,\n")
    with pytest.raises(
        ValueError, match=r"has text in column ok \(row 1: 'True'\): leave it out with --drop ok, use it as"
    ):
        read_table(tmp_path / "x.csv", columns=Columns(gaps=True))


def test_decimal_commas_after_thousands_with_points(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1.018,61;2,5\n-1.020.300,5;3\n")
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv").values, [[1018.61, 2.5], [-1020300.5, 3]])


@pytest.mark.parametrize("gap", ["", "NA", "n/a", "n.a.", "#N/A", "<NA>", "NaN", "null", "None", "?", "-", "."])
def test_markers_of_missing_values(gap, tmp_path):
    (tmp_path / "x.csv").write_text(f"a,b\n1.5,{gap}\n3,4\n")
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv", columns=Columns(gaps=True)).values[0], [1.5, np.nan])


def test_a_column_of_gaps_is_not_called_text(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,\n2,\n3,5\n")
    with pytest.raises(ValueError, match="has 2 entries that are no numbers, the first in row 1 of column 'b'"):
        read_table(tmp_path / "x.csv")


def test_columns_are_named_dropped_and_put_in_order(tmp_path):
    (tmp_path / "x.csv").write_text("who,b,kind,a\nu,-2,x,1.5\nv,4e-3,y,3\n")
    for columns in (Columns("who", only=["a", "b"]), Columns("who", only=["a", "b"], drop=["kind"])):
        table = read_table(tmp_path / "x.csv", columns=columns)
        np.testing.assert_array_equal(table.values, VALUES)
        assert table.row_names() == {"who": ("u", "v")}
    table = read_table(tmp_path / "x.csv", columns=Columns(drop=["who", "kind"]))
    assert table.columns == ("b", "a")
    np.testing.assert_array_equal(table.values, VALUES[:, ::-1])
    (tmp_path / "y.csv").write_text("7,1.5,-2\n8,3,4e-3\n")
    np.testing.assert_array_equal(read_table(tmp_path / "y.csv", columns=Columns(drop=["0"])).values, VALUES)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (np.array([123456789, 123456790, 2**53 + 1]), ["123456789", "123456790", "9007199254740993"]),
        (np.array([1.0, -0.0, np.nan]), ["1", "0", "nan"]),
        (np.array([0.1, 1e20, np.inf], dtype=np.float32), ["0.1", "1e+20", "inf"]),
    ],
)
def test_labels_of_arrays_are_exact(entries, expected, tmp_path):
    np.save(tmp_path / "l.npy", entries)
    assert read_labels(tmp_path / "l.npy") == {"label": expected}


def test_a_label_file_needs_no_header_and_is_read_once(tmp_path, monkeypatch):
    opened, plain = [], Path.open
    monkeypatch.setattr(Path, "open", lambda self, *words, **more: opened.append(self) or plain(self, *words, **more))
    (tmp_path / "l.csv").write_text("0\n1\n2\n1")
    assert read_labels(tmp_path / "l.csv") == {"label": ["0", "1", "2", "1"]}
    (tmp_path / "m.csv").write_text("a,b,c\nx,1,u\ny,2,v\n")
    opened.clear()
    assert read_labels(tmp_path / "m.csv") == {"a": ["x", "y"], "b": ["1", "2"], "c": ["u", "v"]}
    # once for its size and once for its entries
    assert len(opened) == 2


def test_the_row_numbers_of_a_data_frame_are_no_data_where_another_column_names_the_rows(tmp_path):
    (tmp_path / "x.csv").write_text(",who,a,b\n0,u,1.5,-2\n1,v,3,4e-3\n")
    table = read_table(tmp_path / "x.csv", columns=Columns("who"))
    np.testing.assert_array_equal(table.values, VALUES)
    assert (table.columns, table.names) == (("a", "b"), ("u", "v"))


def test_all_columns_in_another_order_are_put_in_order(tmp_path):
    (tmp_path / "x.csv").write_text("b,a\n-2,1.5\n4e-3,3\n")
    table = read_table(tmp_path / "x.csv", columns=Columns(only=["a", "b"]))
    np.testing.assert_array_equal(table.values, VALUES)


@pytest.mark.parametrize("lines", ["1.0,,3.0\n4,5,6\n7,8,9\n", "1.0,NA\n4,5\n", "True\nFalse\nTrue\n", "true,?\n4,5\n"])
def test_a_first_line_of_values_and_gaps_is_not_lost_as_names(lines, tmp_path):
    (tmp_path / "x.csv").write_text(lines)
    with pytest.raises(ValueError, match="may be names or a sample: say which with --header or --no-header"):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("first", ["Na,K", "NA,n/a", "x,2019", "0,1"])
def test_a_first_line_that_can_only_be_names_is_not_asked_about(first, tmp_path):
    (tmp_path / "x.csv").write_text(f"{first}\n4.5,5.5\n7,8\n")
    assert read_table(tmp_path / "x.csv").values.shape == (2, 2)


def test_a_first_line_that_may_be_a_sample_is_asked_about(tmp_path):
    (tmp_path / "x.csv").write_text("u,1.5,-2\nv,3,4e-3\n")
    with pytest.raises(ValueError, match="may be names or a sample: say which with --header or --no-header"):
        read_table(tmp_path / "x.csv", columns=Columns("0"))
    table = read_table(tmp_path / "x.csv", columns=Columns("0", header=False))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names == ("u", "v")
    table = read_table(tmp_path / "x.csv", columns=Columns("u", header=True))
    np.testing.assert_array_equal(table.values, VALUES[1:])
    assert table.columns == ("1.5", "-2")


def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"^data: .*x\.csv is not a regular file, save what it holds to one$"):
        read_table(tmp_path / "x.csv")


def test_parquet_is_read_through_pandas(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ["u", "v"], "a": VALUES[:, 0], "b": VALUES[:, 1]})
    monkeypatch.setattr(pandas, "read_parquet", lambda file: frame)
    # The file is empty, which pyarrow would report.
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "x.parquet").touch()
    table = read_table(tmp_path / "x.parquet", columns=Columns("who"))
    np.testing.assert_array_equal(table.values, VALUES)
    assert (table.columns, table.names) == (("a", "b"), ("u", "v"))
    with pytest.raises(ValueError, match="has no numbers in column who: leave it out with --drop who"):
        read_table(tmp_path / "x.parquet")
    classes = read_table(tmp_path / "x.parquet", columns=Columns(classes=True))
    np.testing.assert_array_equal(classes.values, np.column_stack([[0, 1], VALUES]))
    assert read_table(tmp_path / "x.parquet", columns=Columns("who", classes=True)).names == ("u", "v")


def test_without_what_reads_parquet_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")

    def missing(file):
        raise ImportError("no engine")

    monkeypatch.setattr(pandas, "read_parquet", missing)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "x.parquet").touch()
    with pytest.raises(ValueError, match="needs pandas and pyarrow to be read: pip install pandas pyarrow"):
        read_table(tmp_path / "x.parquet")


def test_a_file_of_which_only_a_part_could_be_written_is_none(tmp_path):
    def cut(file):
        file.write(b"half")
        raise OSError("3000 requested and 496 written")

    with pytest.raises(OSError, match=r"x\.npy: is the disk full\? \(3000 requested and 496 written\)"):
        write_whole(tmp_path / "x.npy", cut)
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_images_become_rows_and_keep_their_shape(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "x.npz", images=images, labels=[0, 1])
    table = read_table(tmp_path / "x.npz", array="images")
    np.testing.assert_array_equal(table.values, images.reshape(2, 12))
    assert table.shape == (3, 4)
    np.savez(tmp_path / "y.npz", data=images, labels=[0, 1])
    np.testing.assert_array_equal(read_table(tmp_path / "y.npz").values, table.values)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_tables_come_back_to_the_last_bit(suffix, tmp_path):
    values = np.random.RandomState(0).randn(5, 3)
    path = write_table(tmp_path / f"x{suffix}", values, ["a", "b", "c"], before={"file": list("uvwxy")})
    table = read_table(path, columns=Columns("file"))
    np.testing.assert_array_equal(table.values, values)
    if suffix == ".csv":
        assert table.row_names() == {"file": tuple("uvwxy")}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("codes", "codes_"),
        ("allow_pickle", "allow_pickle_"),
        ("anomaly", "anomaly_"),
        ("file", "files"),
        ("who", "who"),
    ],
)
def test_row_names_are_kept_whatever_their_column_is_called(title, expected, tmp_path):
    path, after = tmp_path / "x.npz", {"anomaly": np.arange(2.0)}
    write_table(path, VALUES, ["a", "b"], name="codes", before={title: ["u", "v"]}, after=after)
    with np.load(path) as held:
        assert set(held) == {"codes", "anomaly", expected}
        assert held[expected].tolist() == ["u", "v"]
        np.testing.assert_array_equal(held["codes"], VALUES)


class TestPictures:
    @pytest.fixture(autouse=True)
    def _library(self):
        self.Image = pytest.importorskip("PIL.Image")

    def save(self, folder, name, pixels):
        self.Image.fromarray(pixels).save(folder / name)

    def test_grey_pictures_come_in_the_order_of_their_names(self, tmp_path):
        rng = np.random.RandomState(0)
        images = rng.randint(0, 256, (3, 4, 5)).astype(np.uint8)
        for name, image in zip(("b.png", "a.bmp", "c.tif"), images, strict=True):
            self.save(tmp_path, name, image)
        (tmp_path / ".hidden.png").write_bytes(b"")
        (tmp_path / "labels.txt").write_text("no picture")
        table = read_table(tmp_path)
        assert table.names == ("a.bmp", "b.png", "c.tif")
        np.testing.assert_array_equal(table.values.reshape(3, 4, 5), images[[1, 0, 2]])

    def test_one_colour_among_grey_makes_all_colour_unless_grey_is_asked_for(self, tmp_path):
        grey = np.full((2, 2), 80, np.uint8)
        colour = np.zeros((2, 2, 4), np.uint8)
        colour[..., 0] = colour[..., 3] = 255
        self.save(tmp_path, "a.png", grey)
        self.save(tmp_path, "b.png", colour)
        table = read_table(tmp_path)
        assert table.shape == (2, 2, 3)
        np.testing.assert_array_equal(table.values[0], 80)
        np.testing.assert_array_equal(table.values[1].reshape(4, 3), [[255, 0, 0]] * 4)
        table = read_table(tmp_path, pictures=Pictures(grey=True))
        assert table.shape == (2, 2)
        # luma of pure red
        np.testing.assert_array_equal(table.values[1], round(0.299 * 255))
        with pytest.raises(ValueError, match=r"holds b.png, which is in colour, the model takes grey"):
            read_table(tmp_path, pictures=Pictures(shape=(2, 2)))

    def test_sixteen_bits_are_brought_to_the_range_of_eight(self, tmp_path):
        self.save(tmp_path, "a.png", np.array([[0, 65535], [257, 514]], np.uint16))
        np.testing.assert_allclose(read_table(tmp_path).values, [[0, 255, 1, 2]])

    def test_sixteen_bits_can_be_resized(self, tmp_path):
        self.save(tmp_path, "a.png", np.full((4, 4), 514, np.uint16))
        np.testing.assert_allclose(read_table(tmp_path, pictures=Pictures(size=(2, 3))).values, np.full((1, 6), 2.0))

    def test_photographs_are_turned_as_the_camera_was_held(self, tmp_path):
        image = self.Image.fromarray(np.array([[10, 20, 30]], np.uint8))
        turned = image.getexif()
        turned[0x0112] = 6  # orientation: the top is to the right
        image.save(tmp_path / "a.png", exif=turned)
        table = read_table(tmp_path)
        assert table.shape == (3, 1)
        np.testing.assert_array_equal(table.values, [[10, 20, 30]])

    def test_names_that_are_not_utf_8_can_be_written(self, tmp_path):
        (tmp_path / "in").mkdir()
        self.save(tmp_path / "in", os.fsdecode(b"caf\xe9.png"), np.zeros((2, 2), np.uint8))
        table = read_table(tmp_path / "in")
        assert table.names == ("caf\\xe9.png",)
        path = write_table(tmp_path / "x.csv", table.values, list("abcd"), before=table.row_names())
        assert read_table(path, columns=Columns("file")).names == table.names

    @pytest.mark.parametrize("rule", [Pictures(), Pictures(shape=(2, 2))])
    def test_the_first_of_another_size_is_refused_before_the_others_are_read(self, rule, tmp_path):
        self.save(tmp_path, "a.png", np.zeros((2, 2), np.uint8))
        self.save(tmp_path, "b.png", np.zeros((2, 3), np.uint8))
        (tmp_path / "c.png").write_bytes(b"never looked at")
        with pytest.raises(ValueError, match=r"holds b.png, which is 2x3 pixels"):
            read_table(tmp_path, pictures=rule)

    def test_pictures_are_written_and_read_back(self, tmp_path):
        values = np.random.RandomState(0).uniform(-20, 300, (3, 12))
        write_images(tmp_path / "out", values, (2, 2, 3), ["x.jpg", "y.jpg", "y.png"])
        table = read_table(tmp_path / "out")
        assert table.names == ("0_x.png", "1_y.png", "2_y.png")
        np.testing.assert_array_equal(table.values, np.rint(np.clip(values, 0, 255)))


def test_only_an_empty_folder_or_none_is_a_place_for_pictures(tmp_path):
    assert check_folder(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "old").mkdir()
    assert check_folder(tmp_path / "old") == tmp_path / "old"
    (tmp_path / "old" / "file").touch()
    with pytest.raises(ValueError, match="exists and is not empty"):
        check_folder(tmp_path / "old")
    with pytest.raises(ValueError, match="/dev/null is not a regular file"):
        check_target(Path("/dev/null"), force=True)
    with pytest.raises(ValueError, match="there is no folder"):
        check_target(tmp_path / "no" / "file.npy")


def test_a_preparation_finds_the_columns_of_a_frame_by_name():
    pandas = pytest.importorskip("pandas")
    made = Preparation.standardizing(VALUES, columns=("a", "1"))
    frame = pandas.DataFrame({1: VALUES[:, 1], "kind": ["x", "y"], "a": VALUES[:, 0]})
    np.testing.assert_array_equal(made.apply(frame), made.apply(VALUES))
    with pytest.raises(ValueError, match="values: lacks a of the columns that the model was trained on"):
        made.apply(frame.drop(columns="a"))


def test_columns_that_are_constant_but_for_rounding_are_not_blown_up():
    values = np.column_stack([np.arange(200.0), np.full(200, 1e-3), np.full(200, 7.1)])
    assert values.std(axis=0).all()
    assert Preparation.standardizing(values).scale[1:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [0.1, 0.7, -1e10 / 3, 1e300 / 7, 2.6e-84])
@pytest.mark.parametrize("count", [3, 100, 10_000])
def test_constant_columns_become_0_however_many_rows_round_their_mean(value, count):
    values = np.column_stack([np.full(count, value), np.arange(count)])
    made = Preparation.standardizing(values)
    assert (made.offset[0], made.scale[0]) == (value, 1.0)
    if abs(value) < 1e100:
        # The squares of larger numbers overflow there.
        assert StandardScaler().fit(values).scale_[0] == 1.0
    filling = filling_of(np.vstack([values, [[np.nan, 1.0]]]))
    assert (filling.offset[0], filling.scale[0]) == (value, 1.0)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-170, 1e-140, 1e-100, 1e140, 1e160, 1e306])
def test_columns_of_any_size_get_mean_0_and_variance_1(size):
    ordinary = np.random.RandomState(0).randn(50, 2) + 3.0
    values = np.column_stack([ordinary[:, 0] * size, ordinary[:, 1], np.full(50, 7.1 * size)])
    made = Preparation.standardizing(values)
    prepared = made.apply(values)
    np.testing.assert_allclose(prepared.mean(axis=0)[:2], 0, atol=1e-3 if size < 1e-310 else 1e-12)
    np.testing.assert_allclose(prepared.std(axis=0)[:2], 1, rtol=1e-3 if size < 1e-310 else 1e-12)
    # Columns beside them keep their bits.
    assert made.scale[1:].tolist() == [np.column_stack([ordinary[:, 1]] * 3).std(axis=0)[1], 1.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int64, bool])
@pytest.mark.parametrize("shape", [(3000, 1), (300, 40)])
def test_ordinary_columns_have_the_mean_and_deviation_of_numpy(dtype, shape):
    rows = np.random.RandomState(0).randn(*shape) * 50 + 100
    for values in (
        rows.astype(dtype),
        np.asfortranarray(rows.astype(dtype)),
        np.repeat(rows.astype(dtype), 2, 1)[:, ::2],
    ):
        made = Preparation.standardizing(values)
        np.testing.assert_array_equal(made.offset, values.mean(axis=0, dtype=np.float64))
        if dtype is not bool:
            np.testing.assert_array_equal(made.scale, values.std(axis=0, dtype=np.float64))


def test_a_preparation_is_undone_and_written_down():
    rng = np.random.RandomState(0)
    values = np.column_stack([rng.randn(50) * 7 + 3, np.full(50, 4.0)])
    made = Preparation.standardizing(values, columns=("a", "b"), shape=None)
    prepared = made.apply(values)
    np.testing.assert_allclose(prepared.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(prepared.std(axis=0), [1, 0], atol=1e-12)
    np.testing.assert_allclose(made.undo(prepared), values)
    again = Preparation.from_parts(*made.parts(), 2)
    np.testing.assert_array_equal(again.apply(values), prepared)
    assert again.columns == ("a", "b")
    plain = Preparation(scale=255.0, shape=(2, 1), white=255.0)
    assert Preparation.from_parts(*plain.parts(), 2) == plain
    assert plain.describe() == "values divided by 255, images of 2x1"


def test_the_standardisation_of_one_column_is_described_in_the_same_way_after_loading():
    made = Preparation.standardizing(VALUES[:, :1])
    again = Preparation.from_parts(*made.parts(), 1)
    assert made.describe() == again.describe() == "columns standardised"


#: pixels that take 40 MB as numbers of eight bytes
PIXELS = np.arange(5_000_000, dtype=np.uint64).astype(np.uint8).reshape(-1, 50)


@pytest.mark.parametrize("made", [Preparation(scale=255.0), Preparation(np.ones(50), np.full(50, 3.0))])
def test_prepared_values_are_copied_once(made):
    expected = (PIXELS.astype(np.float64) - made.offset) / made.scale
    tracemalloc.start()
    try:
        found = made.apply(PIXELS)
        made.undo(found)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found, expected)
    assert peak < 1.05 * 2 * found.nbytes


@pytest.mark.parametrize("use", [Preparation().apply, Preparation().undo, Preparation.standardizing])
def test_values_that_do_not_fit_into_memory_are_refused_before_they_are_copied(use, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 39_000_000)
    with pytest.raises(NotEnoughMemory, match="X: a prepared copy of 5000000 values needs 40 MB of memory, available"):
        use(PIXELS)
