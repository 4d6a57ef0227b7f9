"""What new users encounter: facts about a model, detected names of rows, data of another kind."""

import csv
import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from command_line import drkm, refused
from drkm import ConstrDRKM
from drkm.files import Columns, read_table
from drkm.inputs.preparation import Preparation
from drkm.loading import load_prepared
from drkm.wording import for_terminal

Image = pytest.importorskip("PIL.Image")


def write_iris(path, *, names=lambda number: f"p{number}"):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["plant", "sl", "sw", "pl", "pw"])
        writer.writerows([names(number), *row] for number, row in enumerate(load_iris().data[:60]))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table with row names, images, and the model and output of a fit without options."""
    folder = tmp_path_factory.mktemp("first")
    write_iris(folder / "iris.csv")
    (folder / "photos").mkdir()
    for number, size in enumerate([(5, 7), (6, 9)]):
        Image.fromarray(np.zeros(size, dtype=np.uint8)).save(folder / "photos" / f"{number}.png")
    done = drkm("fit", folder / "iris.csv", "-o", folder / "iris.model", "-c", "3", "--scale", "standard")
    assert done.code == 0, done
    (folder / "said").write_text(done.err)
    return folder


def test_a_column_of_unique_text_names_the_rows_and_is_said_to(place):
    said = (place / "said").read_text()
    assert "iris.csv: column 'plant' has a different text in every row: used as row names, not as data" in said
    model, preparation = load_prepared(place / "iris.model")
    assert preparation.id == "plant"
    assert model.n_features_in_ == 4
    done = drkm("encode", place / "iris.model", place / "iris.csv", "-o", place / "codes.csv")
    assert done.code == 0, done
    first, second, *_ = (place / "codes.csv").read_text().splitlines()
    assert (first.split(",")[0], second.split(",")[0]) == ("plant", "p0")


@pytest.mark.parametrize("first", [0, 1])
def test_a_first_column_that_counts_the_rows_is_pointed_out(first, tmp_path):
    rows = [f"{i + first},{i % 3},{i % 5}" for i in range(20)]
    (tmp_path / "x.csv").write_text("\n".join(["row no,a,b", *rows]))
    told = drkm("fit", tmp_path / "x.csv", "-o", tmp_path / "m", "-c", 2).err
    said = (
        "column 'row no' counts the rows and is used as data: leave it out with --drop 'row no', or use it as row names"
    )
    assert said in told
    assert "counts" not in drkm("fit", tmp_path / "x.csv", "-o", tmp_path / "n", "-c", 2, "--id", "row no").err


def test_warnings_of_a_fit_call_columns_by_their_names(tmp_path):
    rows = [f"{i * 7 % 11},{i * 5 % 13},{1000 * (i * 3 % 17)}" for i in range(40)]
    (tmp_path / "x.csv").write_text("\n".join(["width,height,proline", *rows]))
    told = drkm("fit", tmp_path / "x.csv", "-o", tmp_path / "m", "-c", 2).err
    assert "warning: data: column 'proline' (of 3) has 100.0% of the squared distances" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", [("fit", "-c", 2), ("fill",), ("select", "--max-seconds", 0.001)])
def test_numbers_that_stand_for_missing_values_are_pointed_out(command, tmp_path):
    rows = [[f"{i * 7 % 11}", f"{i * 5 % 13}", f"{i * 3 % 17}"] for i in range(40)]
    rows[8][1] = "-9999"
    name, *more = command
    (tmp_path / "x.csv").write_text("\n".join(["a,the b,c", *map(",".join, rows)]))
    done = drkm(name, tmp_path / "x.csv", "-o", tmp_path / "one.csv", *more)
    assert done.code == 0, done
    one = "has an entry far from the rest of its column in row 9 of column 'the b': -9999; correct it, or leave it"
    assert one in done.err
    rows[4][2] = "1e6"
    (tmp_path / "x.csv").write_text("\n".join(["a,the b,c", *map(",".join, rows)]))
    several = "has 2 entries far from the rest of their columns, the first in row 5 of column 'c': 1e+06; correct them"
    assert several in drkm(name, tmp_path / "x.csv", "-o", tmp_path / "two.csv", *more).err


def test_folders_in_a_folder_of_images_are_said_not_to_be_read(tmp_path):
    (tmp_path / "photos" / "2024").mkdir(parents=True)
    for number in range(6):
        Image.fromarray(np.full((3, 4), 40 * number, dtype=np.uint8)).save(tmp_path / "photos" / f"{number}.png")
    told = "photos: images in the folder 2024 are not read"
    assert told in drkm("fit", tmp_path / "photos", "-o", tmp_path / "m", "-c", 2).err
    assert told in drkm("encode", tmp_path / "m", tmp_path / "photos", "-o", tmp_path / "codes.csv").err
    (tmp_path / "photos" / "2024").rmdir()
    assert "not read" not in drkm("encode", tmp_path / "m", tmp_path / "photos", "-o", tmp_path / "c.csv").err


def test_filling_keeps_such_names(place, tmp_path):
    done = drkm("fill", place / "iris.csv", "-o", tmp_path / "full.csv")
    assert "column 'plant'" in done.err
    assert (tmp_path / "full.csv").read_text().splitlines()[1].startswith("p0,5.1")


@pytest.mark.parametrize(
    "text",
    [
        "who,a,b\nu,1,2\nu,3,4\n",
        "who,place,a\nu,x,2\nv,y,4\n",
        "who,a\nu,1\n,2\n",
        'who,a\n"1,5",1\n"1,6",2\n',
    ],
    ids=["twice", "two such columns", "empty", "decimal commas"],
)
def test_text_that_may_be_something_else_is_asked_about(text, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=r"has text in|commas in numbers|are no numbers|is no number|empty entry"):
        read_table(tmp_path / "x.csv", columns=Columns(finds_id=True))


def test_names_are_looked_for_only_where_that_was_asked_for(tmp_path):
    (tmp_path / "x.csv").write_text("who,a\nu,1\nv,2\n")
    with pytest.raises(ValueError, match="has text in column who"):
        read_table(tmp_path / "x.csv")
    found = read_table(tmp_path / "x.csv", columns=Columns(finds_id=True))
    assert (found.found_id, found.row_names(), found.columns) == (True, {"who": ("u", "v")}, ("a",))


def test_unique_text_of_a_parquet_file_names_the_rows_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"who": ["u", "v"], "a": [1.0, 2.0]}).to_parquet(tmp_path / "x.parquet")
    found = read_table(tmp_path / "x.parquet", columns=Columns(finds_id=True))
    assert (found.found_id, found.row_names(), found.columns) == (True, {"who": ("u", "v")}, ("a",))


@pytest.mark.parametrize(("data", "what"), [("photos", "a folder of images"), ("photos/0.png", "an image")])
def test_photographs_given_to_a_model_of_tables_are_refused_as_just_that(data, what, place):
    said = refused("encode", place / "iris.model", place / data, "-o", place / "new.csv")
    assert f"{data} is {what}, the model was trained on a table with the columns sl, sw, pl, pw" in said


def test_info_says_what_a_model_learned_and_which_data_it_takes(place):
    done = drkm("info", place / "iris.model")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{place / 'iris.model'}, ")
    assert "ConstrDRKM: 60 samples, 4 features, 3 components in 1 layer" in done.out
    assert done.out.splitlines()[-3:] == [
        "takes tables with the columns sl, sw, pl, pw",
        "rows are named by the column 'plant', if present",
        "data are prepared as for training: columns standardised",
    ]


def test_a_narrow_terminal_gets_lines_that_go_on_at_a_word_and_a_pipe_gets_whole_ones(place, monkeypatch):
    model = load_prepared(place / "iris.model")[0]
    assert for_terminal(model.summary()) == model.summary()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    told = for_terminal(model.summary())
    assert max(map(len, model.summary().splitlines())) > 80
    assert max(map(len, told.splitlines())) <= 80
    assert told.split() == model.summary().split()
    assert told.splitlines()[2].startswith("    ")


def test_select_reads_a_table_once_and_says_in_words_what_it_chose(place):
    done = drkm("select", place / "iris.csv", "--max-seconds", "1e-6")
    assert done.code == 0, done
    assert done.err.count("column 'plant'") == 1
    assert re.search(r", shrink (\w+ )?[\d.e-]+$|, shrink None$", done.out.splitlines()[0]), done.out
    assert "errors are of prepared data: columns standardised" in done.out


def test_select_chooses_by_a_sample_of_the_rows(place):
    done = drkm("select", place / "iris.csv", "--max-seconds", "1e-6", "--sample", "40", "--json")
    assert json.loads(done.out)["samples"] == 40


@pytest.mark.parametrize(
    ("preparation", "takes"),
    [
        (None, "takes arrays with rows of 4 numbers"),
        (Preparation(shape=(2, 2)), "takes images of 2x2"),
        (Preparation(shape=(2, 2), resize=True), "takes images of 2x2, others are brought to that size"),
    ],
    ids=["arrays", "images", "images of any size"],
)
def test_info_names_arrays_and_images(preparation, takes, tmp_path):
    ConstrDRKM(2).fit(load_iris().data[:20]).save(tmp_path / "model", preparation=preparation)
    assert takes in drkm("info", tmp_path / "model").out.splitlines()


def test_info_writes_json_for_scripts(place):
    found = json.loads(drkm("info", place / "iris.model", "--json").out)
    assert (found["samples"], found["components"], found["id"]) == (60, [3], "plant")
    assert found["columns"] == ["sl", "sw", "pl", "pw"]
    assert found["bytes"] == (place / "iris.model").stat().st_size


def test_info_of_what_is_no_model_is_refused(place):
    assert "iris.csv" in refused("info", place / "iris.csv")
