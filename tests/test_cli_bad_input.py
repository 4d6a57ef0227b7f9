"""Errors that a user can fix are one sentence on stderr and exit code 2, and leave no partial files."""

import errno
import os
import pathlib
import shlex
import sys

import numpy as np
import pytest

from command_line import drkm, refused
from drkm import ConstrDRKM
from drkm.cli._options import columns_of
from drkm.files import container, write_whole
from drkm.persistence.model_file import VERSION

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of five features, its data, and files that are not models."""
    folder = tmp_path_factory.mktemp("bad")
    X = np.random.RandomState(0).randn(30, 5)
    np.save(folder / "X.npy", X)
    ConstrDRKM((3, 2)).fit(X).save(folder / "model")
    (folder / "folder").mkdir()
    whole = (folder / "model").read_bytes()
    (folder / "cut").write_bytes(whole[: len(whole) // 2])
    (folder / "foreign").write_text("{}")
    tensors, header = container.read(folder / "model", "model", VERSION)
    container.write(folder / "newer", tensors, {**header, "version": 99})
    container.write(folder / "checkpoint", tensors, {**header, "kind": "checkpoint"})
    container.write(folder / "damaged", tensors, {**header, "preparation": {"shape": 3}})
    return folder


@pytest.fixture
def here(models, tmp_path, monkeypatch):
    """An empty working folder next to `models`."""
    monkeypatch.chdir(tmp_path)
    yield models
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent", "model: there is no file"),
        ("cut", "cut is truncated or not a drkm model"),
        ("foreign", "foreign is truncated or not a drkm model"),
        ("X.npy", "X.npy is truncated or not a drkm model"),
        ("checkpoint", "checkpoint is not a drkm model"),
        ("newer", f"was written by a newer drkm (format 99, this one reads up to {VERSION}): upgrade drkm"),
        ("folder", "folder is a folder, not a drkm model"),
        (
            "damaged",
            "damaged is damaged, a part of the model is missing or of the wrong kind (columns: expected a list of 5",
        ),
    ],
)
@pytest.mark.parametrize("command", ["encode", "denoise", "traverse"])
def test_files_that_are_no_models(command, name, sentence, here):
    data = [] if command == "traverse" else [here / "X.npy"]
    assert sentence in refused(command, here / name, *data, "-o", "out.npy")


UNUSABLE = {
    "empty.csv": (b"", "empty.csv has no rows"),
    "names.csv": (b"a,b\n", "names.csv has no rows"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "has 1 entry in row 2 and 2 in the first line"),
    "above.csv": (b"# made in 2024\na,b\n1,2\n3,4\n", "leave out what is above the names of the columns"),
    "spaces.csv": (b"a b\n1 2\n3 4\n", "has spaces between numbers: write commas, semicolons or tabs"),
    "bars.csv": (b"a|b\n1|2\n3|4\n", "has vertical bars between numbers: write commas, semicolons or tabs"),
    "word.csv": (b"a,b\n1,2\n3,x\n4,5\n", "no number in row 2 of column 'b': 'x'"),
    "gap.csv": (b"a,b\n1,2\n,3\n", "has an empty entry in row 2 of column 'a'"),
    "text.csv": (b"a,kind,place\n1,x,u\n3,y,v\n", "has text in columns kind, place (row 1: 'x'): leave them out with"),
    "twice.csv": (b"a,a\n1,2\n", "has two columns called 'a': give each column a name of its own"),
    "nan.csv": (b"a,b\n1,2\n3,nan\n", "has nan in row 2 of column 'b' and no finite number in 1 of its 4 entries"),
    "gaps.csv": (b"a,b\n1,2\n,3\n4,5\n6,NA\n", "2 entries that are no numbers, the first in row 2 of column 'a' ('')"),
    "commas.csv": (b"a;b\n1,5;2.5\n3,25;4\n", "has commas in numbers (row 1: '1,5'): write decimal points"),
    "thousands.csv": (
        b'a,b\n"1,500",2\n"3,250",4\n',
        "(row 1: '1,500'): write decimal points, and thousands without commas",
    ),
    "three.csv": (b"a;b\n1,500;2\n3,250;4\n", "(row 1: '1,500'): write decimal points, and thousands without commas"),
    "mixed.csv": (b'kind,b\nx,1\ny,"2,5"\nz,3\n', "has commas in numbers (row 2: '2,5')"),
    "words.csv": (b"a,b\n1,2\nlost,x\n4,5\n", "('lost'): correct them, leave them empty, remove such rows or"),
    "huge.csv": (b"a,b\n1," + 140_000 * b"1" + b"\n", "huge.csv cannot be read as a table: field larger than"),
    "bytes.csv": (b"\xff\xfe\x00", "bytes.csv is not UTF-8 text: save it with that encoding"),
    "broken.npy": (b"\x93NUMPY", "broken.npy cannot be read as .npy"),
    "broken.npz": (b"PK\x03\x04", "broken.npz cannot be read as .npz"),
    "broken.parquet": (b"PAR1", "broken.parquet "),
    "broken.png": (b"\x89PNG", "broken.png cannot be read as an image"),
    "what.xyz": (b"1 2", "should end in .npy, .npz, .csv, .tsv or .parquet, or be an image or a folder of images"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_data_files_that_cannot_be_used(name, here, tmp_path_factory):
    content, sentence = UNUSABLE[name]
    file = tmp_path_factory.mktemp("data") / name
    file.write_bytes(content)
    assert sentence in refused("fit", file, "-o", "out")


def test_advice_can_be_pasted_into_a_shell_and_is_understood(tmp_path):
    names = ["1,2-diol", "the kind"]
    (tmp_path / "names.csv").write_text('a,"1,2-diol",the kind\n1,x,u\n3,y,v\n4,z,w\n')
    told = refused("fit", tmp_path / "names.csv", "-o", tmp_path / "out")
    options = shlex.split(told.split("leave them out with ")[1].split(", use one as row names")[0])
    assert options[0] == "--drop"
    assert columns_of(options[1]) == names
    done = drkm("fit", tmp_path / "names.csv", "-o", tmp_path / "out", "-c", "1", *options)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--resize", "4"], "resize: is for images or a folder of them, not for"),
        (["--grey"], "grey: is for images or a folder of them, not for"),
        (["--array", "a"], "array: is for a .npz file, not for"),
        (["--id", "a"], "id: is for a .csv, .tsv or .parquet file, not for"),
        (["--drop", "a"], "drop: is for a .csv, .tsv or .parquet file, not for"),
        (["--no-header"], "header: is for a .csv or .tsv file, not for"),
    ],
)
def test_options_that_mean_nothing_for_a_file_are_not_passed_over(options, sentence, here):
    assert sentence in refused("fit", here / "X.npy", "-o", "out", *options)
    if options[0] not in ("--resize", "--grey"):
        for command in ("encode", "denoise"):
            assert sentence in refused(command, here / "model", here / "X.npy", "-o", "out.csv", *options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--impute", "mean"], "impute: is for --auto, a model knows how its data were prepared"),
        (["--shape", "7x7"], "shape: is for a folder of images, out.csv is a file"),
    ],
)
def test_options_of_a_chosen_model_are_refused_for_a_given_one(options, sentence, here):
    assert sentence in refused("denoise", here / "model", here / "X.npy", "-o", "out.csv", *options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--components", "9:9"], "components: is for a given model, --auto chooses one by itself"),
        (["--method", "nonsense"], "method: is for a given model, --auto chooses one by itself"),
        (["--device", "banana"], "device: is for a given model, --auto chooses one by itself"),
        (["--sample", "10"], "sample: --auto denoises the rows that it trains on, got 10; 'drkm select"),
    ],
)
def test_options_of_a_given_model_are_refused_for_a_chosen_one(options, sentence, here):
    assert sentence in refused("denoise", here / "X.npy", "-o", "out.csv", "--auto", *options)


def test_more_rows_than_there_are_cannot_be_drawn_to_choose_a_model(here):
    count = len(np.load(here / "X.npy"))
    told = refused("select", here / "X.npy", "--sample", "99999")
    assert f"sample: there are only {count} rows, got 99999" in told


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros((0, 3)), "is empty, its shape is (0, 3)"),
        (np.array(["a"]), "holds <U1, not real numbers"),
        (np.array(1.0), "got a single number"),
        (np.array([[1j]]), "holds complex128, not real numbers"),
        (
            np.array([[1.0, np.inf]]),
            "has inf in row 1 of column 1 and no finite number in 1 of its 2 entries: remove such rows\n",
        ),
        (np.ones((1, 5)), "drkm: data: Found array with 1 sample(s)"),
    ],
)
def test_arrays_that_cannot_be_used(values, sentence, here, tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "X.npy"
    np.save(file, values)
    assert sentence in refused("fit", file, "-o", "out", "-c", "1")


def test_pictures_that_do_not_go_together(here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "notes.txt").write_text("no picture")
    assert "has no images: none of its files ends in .png" in refused("fit", folder, "-o", "out")
    assert "are not read" not in refused("fit", folder, "-o", "out")
    (folder / "2024").mkdir()
    assert ".ppm; folders in it are not read" in refused("fit", folder, "-o", "out")
    Image.new("L", (4, 3)).save(folder / "a.png")
    Image.new("L", (5, 3)).save(folder / "b.png")
    sentence = "which is 3x5 pixels (height by width), a.png 3x4: bring them to one size with --resize 3x4"
    assert sentence in refused("fit", folder, "-o", "out")
    (folder / "b.png").write_bytes(b"cut")
    assert "holds b.png, which cannot be read as an image" in refused("fit", folder, "-o", "out")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-c", "3,x"], "components: expected integers with commas between them, got '3,x'"),
        (["-c", "40"], "drkm: components: 40 components need at least 40 samples, got 30 samples"),
        (["-c", "0"], "drkm: components: expected an integer of at least 1, got 0"),
        (["--kernel", "cat"], "kernel: unknown name 'cat', allowed are rbf"),
        (["--kernel", "rbf,rbf,rbf"], "kernel: expected one per layer, 2 in all, got 3"),
        (["--sigma2", "wide"], "sigma2: unknown rule 'wide', allowed are auto, median, scale"),
        (["--kernel", "linear", "--sigma2", "2"], "sigma2: the kernel linear has no bandwidth"),
        (["--eta", "0"], "eta: expected a positive number"),
        (["--axes", "x"], "axes: got 'x', allowed are ritz, varimax, ica"),
        (["--solver", "magic"], "solver: unknown name 'magic', allowed are auto, lbfgs"),
        (["--device", "tpu9"], "device: 'tpu9' is not available here"),
        (["--dtype", "int"], "dtype: got 'int', allowed are auto, float32, float64"),
        (["--scale", "-1"], "scale: expected a positive number, standard or auto, got '-1'"),
        (["--shape", "2x2"], "shape: 2×2 is 4 values, a row has 5"),
        (["--shape", "two"], "shape: expected a size like 64x48"),
        (["--sample", "31"], "sample: there are only 30 rows, got 31"),
        (["--tol", "small"], "Invalid value for '--tol'"),
        (["--checkpoint", "no/where"], "checkpoint: there is no folder no"),
        (["--wat"], "see drkm fit --help"),
    ],
)
def test_options_of_fit(words, sentence, here):
    assert sentence in refused("fit", here / "X.npy", "-o", "out", *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["encode", "model", "X.npy", "-o", "codes.txt"], "out: codes.txt should end in .npy, .npz or .csv"),
        (["encode", "model", "X.npy", "-o", "no/codes.npy"], "out: there is no folder no"),
        (["encode", "model", "X.npy", "-o", "codes.npy", "--quality"], "quality: codes.npy has no place for it"),
        (["encode", "model", "X.npy"], "Missing option '--out'"),
        (["denoise", "model", "X.npy", "-o", "out"], "shape: the model was not trained on images"),
        (["denoise", "model", "X.npy", "-o", "o.npy", "--components", "3:0"], "components: layers are 1 to 2, got 3"),
        (["denoise", "model", "X.npy", "-o", "o.npy", "--components", "x"], "components: expected layer:index"),
        (["denoise", "model", "X.npy", "-o", "o.npy", "--method", "x"], "method: unknown name 'x'"),
        (["traverse", "model", "-o", "out.png"], "or draw a table with drkm plot --what traversal"),
        (["traverse", "model", "-o", "o.npy", "--base", "30"], "base: expected a training sample from 0 to 29, got 30"),
        (["traverse", "model", "-o", "o.npy", "--base", "x.npy"], "drkm: base: there is no file x.npy"),
        (
            ["traverse", "model", "-o", "o.npy", "--component", "1:3"],
            "drkm: component: layer 1 has indices 0 to 2, got 3",
        ),
        (["traverse", "model", "-o", "o.npy", "--steps", "3", "--values", "1,2"], "drkm: steps: --values 1,2 gives"),
        (["traverse", "model", "-o", "o.npy", "--span", "1", "--values", "1,2"], "drkm: span: --values 1,2 gives"),
        (["traverse", "model", "-o", "o.npy", "--span", "nan"], "drkm: span: expected a finite number, got nan"),
        (["fit", "X.npy", "-o", "m", "--sample", "9", "--seed", "-1"], "Invalid value for '--seed'"),
        (["select", "X.npy", "--seed", "-1"], "Invalid value for '--seed'"),
        (["fit", "X.npy", "-o", "X.npy", "--force"], "X.npy is the file of the data, choose another"),
        (["traverse", "model", "-o", "o.npy", "--values", ""], "values: expected numbers with commas"),
        (["traverse", "model", "-o", "o.npy", "--values", "nan"], "values: expected finite numbers"),
        (["evaluate", "absent.npy", "X.npy"], "codes: there is no file absent.npy"),
        (["reproduce", "table9"], "unknown name 'table9', allowed are table1"),
        (["datasets", "download", "cats"], "unknown name 'cats', allowed are dsprites, noisy_dsprites, cars3d"),
        (["demo", "cats"], "unknown name 'cats', allowed are sprites, digits"),
        (["fly"], "No such command 'fly': see drkm --help"),
    ],
)
def test_options_of_other_commands(words, sentence, here):
    words = [here / word if word in ("model", "X.npy") else word for word in words]
    assert sentence in refused(*words)


def test_data_with_other_columns_than_the_model(here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    np.save(folder / "narrow.npy", np.ones((3, 4)))
    said = refused("encode", here / "model", folder / "narrow.npy", "-o", "codes.npy")
    assert "narrow.npy has 4 columns, the model was trained on 5" in said
    np.savetxt(folder / "named.csv", np.random.RandomState(0).randn(9, 3), delimiter=",", header="a,b,c", comments="")
    assert drkm("fit", folder / "named.csv", "-o", folder / "named.model", "-c", "2").code == 0
    np.savetxt(folder / "other.csv", np.ones((9, 3)), delimiter=",", header="a,b,d", comments="")
    said = refused("encode", folder / "named.model", folder / "other.csv", "-o", "codes.npy")
    assert "other.csv lacks the column c that the model was trained on" in said
    said = refused("encode", folder / "named.model", folder / "named.csv", "-o", "codes.npy", "--id", "who")
    assert "has no column 'who' for --id, its columns are a, b, c" in said
    said = refused("encode", folder / "named.model", folder / "named.csv", "-o", "codes.npy", "--drop", "b")
    assert "named.csv has the column 'b', which the model was trained on: leave it out of --drop" in said


def test_pictures_for_a_model_of_an_array_whose_white_is_not_known(here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("white")
    np.save(folder / "X.npy", np.random.RandomState(0).rand(9, 2, 2))
    assert drkm("fit", folder / "X.npy", "-o", folder / "model", "-c", "2").code == 0
    Image.new("L", (2, 2)).save(folder / "a.png")
    said = refused("encode", folder / "model", folder / "a.png", "-o", "codes.npy")
    assert "a.png holds values from 0 to 255, the model was trained on an array or on floating-point images" in said


def test_what_is_there_is_not_replaced(models, tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    said = refused("fit", models / "X.npy", "-o", tmp_path / "old")
    assert said == f"drkm: out: {tmp_path / 'old'} exists, replace it with --force\n"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    said = refused("denoise", models / "model", models / "X.npy", "-o", tmp_path / "folder", "--force")
    assert "exists and is not empty, choose a new folder" in said
    assert refused("fit", models / "X.npy", "-o", tmp_path / "folder").endswith("is a folder\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "mine.txt", "old"]


@pytest.mark.parametrize(("code", "sentence"), [(errno.ENOSPC, "No space left on device"), (errno.EIO, "error")])
@pytest.mark.parametrize("name", ["out.npy", "out.csv", "out"])
def test_a_full_disk_leaves_nothing_behind(name, code, sentence, models, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(code, os.strerror(code))

    command = ["encode", models / "model"] if name != "out" else ["fit"]
    monkeypatch.setattr(os, "fsync", full)
    said = refused(*command, models / "X.npy", "-o", tmp_path / name, *(["-c", "3,2"] if name == "out" else []))
    assert said.startswith(f"drkm: out: cannot write {tmp_path / name}: ")
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".png", ".npy"])
def test_a_strip_that_cannot_be_written_is_called_out(suffix, models, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / f"strip{suffix}"
    said = refused("traverse", models / "model", "-o", out, "--shape", "5x1", "--steps", "2")
    assert said == f"drkm: out: cannot write {out}: No space left on device\n"


def test_where_no_file_can_be_made_the_option_is_named_before_the_work_begins(here, tmp_path, monkeypatch):
    def read_only(path, *more, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(pathlib.Path, "touch", read_only)
    for words in (["fit", "none.npy", "-o", "out"], ["encode", "none", "none.npy", "-o", "out.npy"]):
        assert refused(*words) == f"drkm: out: cannot write {words[-1]}: Read-only file system\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo", "digits", "-o", "X.npy"], "out: {} is a file, not a folder"),
        (["reproduce", "figure2", "-o", "X.npy"], "out: {}/runs.sqlite cannot be opened or made: "),
        (["reproduce", "figure2", "--store", "X.npy"], "store: {} is not a drkm store"),
        (["report", "--store", "X.npy", "--scale", "huge"], "scale: unknown name 'huge', allowed are quick"),
        (["report", "--store", "nowhere"], "store: there is no file nowhere; 'drkm reproduce' makes one"),
    ],
)
def test_places_for_results_that_are_none_are_called_as_they_were_typed(words, sentence, here):
    words = [here / word if word == "X.npy" else word for word in words]
    assert refused(*words).startswith(f"drkm: {sentence.format(here / 'X.npy')}")


def test_a_page_that_cannot_be_written_is_called_out(tmp_path):
    from drkm.runs.store import Store

    Store(tmp_path / "runs.sqlite").close()
    (tmp_path / "page.html").mkdir()
    said = refused("report", "--store", tmp_path / "runs.sqlite", "-o", tmp_path / "page.html")
    assert said.startswith(f"drkm: out: cannot write {tmp_path / 'page.html'}: ")


def test_a_full_disk_leaves_no_half_of_a_folder(models, tmp_path, monkeypatch):
    saved = []

    def full(image, path, *more, **options):
        if saved:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        saved.append(path)
        path.write_bytes(b"half")

    monkeypatch.setattr(Image.Image, "save", full)
    words = ["denoise", models / "model", models / "X.npy", "-o", tmp_path / "out", "--shape", "5x1"]
    assert refused(*words) == f"drkm: out: cannot write {tmp_path / 'out'}: No space left on device\n"
    assert saved
    assert list(tmp_path.iterdir()) == []


def test_without_pillow_the_extra_is_named(models, here, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("one")
    Image.new("L", (2, 2)).save(folder / "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "images need the extra 'plot': pip install 'drkm[plot]'" in refused("fit", folder, "-o", "out")


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_without_what_reads_parquet_one_sentence_says_what_to_install(module, here, tmp_path_factory, monkeypatch):
    if module == "pyarrow":
        pytest.importorskip("pandas")
        monkeypatch.setitem(sys.modules, "fastparquet", None)
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path_factory.mktemp("data") / "x.parquet"
    file.touch()
    for words in (["fit", file, "-o", "out"], ["evaluate", here / "X.npy", file]):
        told = f"drkm: {'data' if words[0] == 'fit' else 'factors'}: {file} needs pandas and pyarrow to be read: "
        assert refused(*words) == f"{told}pip install pandas pyarrow\n"


def test_without_matplotlib_the_demo_does_not_begin(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "plots need matplotlib: pip install 'drkm[plot]'" in refused("demo", "digits", "-o", "out")


def test_debug_shows_the_traceback_wherever_it_stands(here):
    for words in (["--debug", "fit", "none.npy", "-o", "out"], ["fit", "none.npy", "-o", "out", "--debug"]):
        done = drkm(*words)
        assert done.code == 2
        assert done.err.startswith("Traceback")
        assert done.err.endswith("drkm: data: there is no file none.npy\n")


def test_a_bug_is_called_one_and_ends_with_exit_code_1(here, monkeypatch):
    monkeypatch.setattr("drkm.loading.load_prepared", lambda path, device: {}["oops"])
    done = drkm("encode", here / "model", here / "X.npy", "-o", "codes.npy")
    assert done.code == 1
    assert done.err == "drkm: a bug, please report it with what --debug shows: KeyError: 'oops'\n"


def test_what_does_not_fit_into_memory_says_how_much_it_needs(here, tmp_path_factory, monkeypatch):
    large = tmp_path_factory.mktemp("large") / "X.npy"
    np.save(large, np.zeros((1000, 5000), dtype=np.uint8))
    monkeypatch.setattr("drkm.machine.memory.available", lambda device: 39_000_000)
    assert refused("fit", large, "-o", "out") == (
        "drkm: X: a prepared copy of 5000000 values needs 40 MB of memory, available on cpu are 39 MB\n"
    )


def test_an_allocation_that_fails_is_one_sentence_too(here, monkeypatch):
    def failing(*words, **more):
        raise MemoryError

    monkeypatch.setattr("drkm.loading.load_prepared", failing)
    sentence = refused("encode", here / "model", here / "X.npy", "-o", "codes.npy")
    assert sentence.startswith("drkm: not enough memory: use fewer samples")


def test_ctrl_c_outside_of_training_is_one_word(here, monkeypatch):
    def interrupted(*words, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("drkm.loading.load_prepared", interrupted)
    done = drkm("encode", here / "model", here / "X.npy", "-o", "codes.npy")
    assert (done.code, done.out, done.err) == (130, "", "drkm: interrupted\n")


def test_ctrl_c_in_training_writes_no_model_and_names_a_checkpoint_only_if_there_is_one(here, monkeypatch):
    from drkm.solvers import LBFGS

    def interrupted(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(LBFGS, "step", interrupted)
    done = drkm("fit", here / "X.npy", "-o", "out", "-c", "3,2")
    assert (done.code, done.out) == (130, "")
    assert done.err.startswith("drkm: interrupted after 0 iterations, no model was written: use --checkpoint FILE")
    done = drkm("fit", here / "X.npy", "-o", "out", "-c", "3,2", "--checkpoint", here / "part")
    assert f"no model was written: the same command resumes from {here / 'part'}" in done.err
    (here / "part").unlink()
    monkeypatch.setattr(LBFGS, "prepare", interrupted)
    done = drkm("fit", here / "X.npy", "-o", "out", "-c", "3,2", "--checkpoint", here / "part")
    assert f"no model was written: nothing was written to {here / 'part'} yet, the same command begins anew" in done.err


def test_a_model_that_cannot_be_written_is_still_in_the_checkpoint(models, tmp_path, monkeypatch):
    model, part = tmp_path / "model", tmp_path / "part"

    def full(path, write):
        if path == model:
            raise OSError("path: cannot write model: No space left on device")
        return write_whole(path, write)

    words = ["fit", models / "X.npy", "-o", model, "-c", "3,2", "--checkpoint", part]
    with monkeypatch.context() as patch:
        patch.setattr("drkm.files.container.write_whole", full)
        assert "No space left on device" in refused(*words)
    assert list(tmp_path.iterdir()) == [part]
    # The second time there is nothing left to compute.
    monkeypatch.setattr("drkm.solvers.LBFGS.step", None)
    assert drkm(*words).code == 0
    assert list(tmp_path.iterdir()) == [model]


def test_a_checkpoint_that_cannot_be_read_or_written_is_called_one(models, tmp_path, monkeypatch):
    words = ["fit", models / "X.npy", "-o", tmp_path / "out", "-c", "3,2", "--checkpoint"]
    assert refused(*words, models / "X.npy").startswith(f"drkm: checkpoint: {models / 'X.npy'} is truncated or not")
    assert refused(*words, models / "folder").startswith(f"drkm: checkpoint: {models / 'folder'} is a folder, not")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert refused(*words, tmp_path / "part").startswith(
        f"drkm: checkpoint: cannot write {tmp_path / 'part'}: No space"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_checkpoint_is_not_the_file_of_the_model(here, tmp_path):
    words = ["fit", here / "X.npy", "-o", "out", "--checkpoint", tmp_path / "out"]
    assert "is the file of the model, choose another" in refused(*words)
