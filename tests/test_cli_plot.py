"""drkm plot: figures of models of images and of tables."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from command_line import drkm, refused

Image = pytest.importorskip("PIL.Image")
NAMES = ["spectrum", "codes", "reconstructions", "traversal", "convergence"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    np.save(folder / "digits.npy", load_digits().images[:70])
    np.save(folder / "labels.npy", load_digits().target[:70])
    wine = load_wine()
    with open(folder / "wine.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*wine.feature_names, "cultivar"])
        writer.writerows([*row, f"kind {kind}"] for row, kind in zip(wine.data, wine.target, strict=True))
    made = [
        drkm("fit", folder / "digits.npy", "-o", folder / "digits.model", "-c", "4,2"),
        drkm(
            "fit",
            folder / "wine.csv",
            "-o",
            folder / "wine.model",
            "-c",
            3,
            "--drop",
            "cultivar",
            "--scale",
            "standard",
        ),
    ]
    assert [one.code for one in made] == [0, 0], made
    return folder


def test_a_folder_gets_every_figure(place):
    done = drkm("plot", place / "digits.model", "--labels", place / "labels.npy", "-o", place / "all")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"5 figures written to {place / 'all'}: {', '.join(NAMES)}\n"
    for name in NAMES:
        with Image.open(place / "all" / f"{name}.png") as image:
            assert min(image.size) > 200


def test_a_file_is_one_figure_of_a_table(place):
    target = place / "codes.svg"
    words = ("--labels", "cultivar", "--what", "codes", "-o", target, "--json")
    done = drkm("plot", place / "wine.model", place / "wine.csv", *words)
    assert json.loads(done.out) == {"out": str(target), "figures": ["codes"]}
    assert all(f"kind {kind}" in target.read_text() for kind in range(3))


def test_columns_of_a_table_have_their_names(place):
    target = place / "moved.svg"
    assert drkm("plot", place / "wine.model", "--what", "traversal", "-o", target).code == 0
    assert all(name in target.read_text() for name in load_wine().feature_names)


def test_rows_have_the_names_that_the_file_gives_them(place):
    with open(place / "wine.csv") as file, open(place / "bottles.csv", "w") as named:
        for row, line in enumerate(file):
            named.write(f"{'bottle' if row == 0 else f'b{row}'},{line}")
    target = place / "reconstructions.svg"
    words = ("--what", "reconstructions", "--id", "bottle", "-o", target)
    assert drkm("plot", place / "wine.model", place / "bottles.csv", *words).code == 0
    assert ">b" in target.read_text()
    assert "row " not in target.read_text()


def test_images_are_drawn_between_black_and_the_white_of_their_files(place):
    from drkm.cli._options import Reading
    from drkm.cli.plot import _drawing

    folder = place / "dim"
    folder.mkdir()
    for row, image in enumerate(load_digits().images[:20]):
        Image.fromarray((image * 4).astype(np.uint8)).save(folder / f"{row:02}.png")
    assert drkm("fit", folder, "-o", place / "dim.model", "-c", 2).code == 0
    drawing = _drawing(place / "dim.model", folder, None, Reading(), None, "cpu")
    assert drawing.limits == (0.0, 1.0)
    assert drawing.names is not None
    assert drawing.names[3] == "03.png"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--what", "nothing", "-o", "x.png"), "what: expected some of spectrum, codes, recon"),
        (("-o", "x.png"), "what: x.png holds one figure, name one of spectrum, codes"),
        (("--what", "codes", "-o", "x.txt"), "out: x.txt should end in .png, .svg or .pdf"),
        (("--labels", "cultivar", "-o", "x"), "labels: there is no file cultivar, and no table of data"),
        (("--drop", "nope", "-o", "x"), "drop: is for reading DATA, and no data are given"),
        (("--id", "zz", "-o", "x"), "id: is for reading DATA, and no data are given"),
        (("--array", "q", "-o", "x"), "array: is for reading DATA, and no data are given"),
        (("--labels", "labels.npy", "--no-header", "-o", "x"), "header: is for reading DATA, and no data are given"),
        (("--labels", "labels.npy", "-o", "x"), "labels: label has 70 entries, there are 178 samples"),
    ],
)
def test_what_cannot_be_drawn_is_refused(place, words, sentence, monkeypatch):
    monkeypatch.chdir(place)
    assert refused("plot", "wine.model", *words).startswith(f"drkm: {sentence}")
    assert not list(place.glob("x*"))


def test_a_model_without_its_samples_asks_for_data(place):
    from drkm import ConstrDRKM
    from drkm.gram import Nystroem

    ConstrDRKM(3, gram=Nystroem(m=20)).fit(load_digits().data[:70]).save(place / "landmarks")
    told = "data: the model was saved without its samples, give data to show"
    assert told in refused("plot", place / "landmarks", "-o", place / "y")
    assert told in refused("explore", place / "landmarks", "-o", place / "y.html", "--most", 10)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_is_the_same_file(place, suffix, monkeypatch):
    for epoch, name in ((1, "first"), (10**9, "second")):
        # What matplotlib takes for the current time.
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(epoch))
        drkm("plot", place / "wine.model", "--what", "spectrum", "-o", place / f"{name}.{suffix}")
    assert (place / f"first.{suffix}").read_bytes() == (place / f"second.{suffix}").read_bytes()
