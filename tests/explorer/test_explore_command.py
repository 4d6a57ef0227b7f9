"""drkm explore: which files it reads, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from command_line import drkm, refused


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with digits and a table, a model of each, and labels of the digits."""
    folder = tmp_path_factory.mktemp("explore")
    digits, iris = load_digits(), load_iris()
    np.save(folder / "digits.npy", digits.images[:70])
    np.save(folder / "new.npy", digits.images[70:90])
    np.save(folder / "labels.npy", digits.target[:70])
    with open(folder / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["digit", "half"], *([f"d{digit}", digit > 4] for digit in digits.target[:70])])
    with open(folder / "iris.csv", "w", newline="") as file:
        names = [iris.target_names[kind] for kind in iris.target]
        head = ["plant", "sl", "sw", "pl", "pw", "species"]
        rows = [[f"p{i}", *row, name] for i, (row, name) in enumerate(zip(iris.data, names, strict=True))]
        csv.writer(file).writerows([head, *rows])
    assert drkm("fit", folder / "digits.npy", "-o", folder / "digits.safetensors", "-c", "4,2").code == 0
    words = ("--id", "plant", "--drop", "species", "--scale", "standard", "-c", "3")
    assert drkm("fit", folder / "iris.csv", "-o", folder / "iris.safetensors", *words).code == 0
    return folder


def record(path) -> dict:
    return json.loads(re.search(r'id="record">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def test_without_data_the_training_samples_are_shown(place):
    done = drkm("explore", place / "digits.safetensors", "-o", place / "plain.html")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"70 samples in {place / 'plain.html'} (")
    shown = record(place / "plain.html")
    assert (shown["title"], shown["count"], shown["training"], shown["live"]) == ("digits", 70, True, False)
    assert (shown["sample"]["kind"], shown["sample"]["shape"]) == ("image", [8, 8, 1])


def test_a_column_of_the_table_labels_its_rows_and_another_names_them(place):
    words = ("explore", place / "iris.safetensors", place / "iris.csv", "--labels", "species")
    assert drkm(*words, "-o", place / "iris.html").code == 0
    shown = record(place / "iris.html")
    assert shown["training"] is True
    assert shown["names"][:2] == ["p0", "p1"]
    assert shown["colours"][0]["classes"] == ["setosa", "versicolor", "virginica"]
    assert [part["name"] for part in shown["colours"]] == ["species", "sl", "sw", "pl", "pw"]


@pytest.mark.parametrize(("name", "found"), [("labels.csv", ["digit", "half"]), ("labels.npy", ["label"])])
def test_labels_have_a_file_of_their_own(name, found, place):
    out = place / f"{name}.html"
    assert drkm("explore", place / "digits.safetensors", "--labels", place / name, "-o", out).code == 0
    assert [part["name"] for part in record(out)["colours"]] == found


@pytest.mark.parametrize("header", [[], ["digit"]])
@pytest.mark.parametrize("letter", ["", "d"])
def test_a_file_of_labels_needs_no_header(header, letter, place, tmp_path):
    entries = [f"{letter}{digit}" for digit in load_digits().target[:70]]
    (tmp_path / "labels.csv").write_text("\n".join([*header, *entries]))
    words = ("--labels", tmp_path / "labels.csv", "-o", tmp_path / "page.html")
    assert drkm("explore", place / "digits.safetensors", *words).code == 0
    (shown,) = record(tmp_path / "page.html")["colours"]
    assert (shown["name"], shown["classes"]) == ((header or ["label"])[0], sorted(set(entries)))


def test_at_most_so_many_samples_are_shown_and_their_labels_with_them(place):
    words = ("explore", place / "digits.safetensors", "--labels", place / "labels.csv", "--most", "20", "--json")
    done = drkm(*words, "-o", place / "few.html")
    told = json.loads(done.out)
    assert told == {
        "out": str(place / "few.html"),
        "samples": 20,
        "bytes": (place / "few.html").stat().st_size,
    }
    shown = record(place / "few.html")
    assert (shown["count"], shown["colours"][0]["values"]["shape"]) == (20, [20])


def test_new_samples_are_shown_beside_training_samples(place):
    assert drkm("explore", place / "digits.safetensors", place / "new.npy", "-o", place / "new.html").code == 0
    shown = record(place / "new.html")
    assert (shown["training"], shown["count"]) == (False, 20)
    assert shown["reference"]["rows"]["shape"] == [70]


PAGE = ["-o", "page.html"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["digits.safetensors"], "out: expected a page to write, as in -o page.html, or --live"),
        (["digits.safetensors", "--live", *PAGE], "out: a live page is served and not written"),
        (["digits.safetensors", "-o", "page.pdf"], "out: page.pdf should end in .html or .htm"),
        (["digits.safetensors", *PAGE, "--drop", "x"], "drop: is for reading DATA, and no data are given"),
        (
            ["digits.safetensors", *PAGE, "--port", "8000"],
            "port: 8000 is for --live, a page that is written needs",
        ),
        (["digits.safetensors", "none.npy", *PAGE], "data: there is no file none.npy"),
        (["digits.safetensors", *PAGE, "--labels", "digit"], "labels: there is no file digit, and no table"),
        (["iris.safetensors", "iris.csv", *PAGE, "--labels", "kind"], "labels: iris.csv has no column 'kind'"),
        (
            ["digits.safetensors", "new.npy", *PAGE, "--labels", "labels.csv"],
            "labels: digit has 70 entries",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_with_one_sentence(words, sentence, place, monkeypatch):
    monkeypatch.chdir(place)
    assert refused("explore", *words).startswith(f"drkm: {sentence}")
    assert not (place / "page.html").exists()


def test_without_the_extra_a_live_page_is_refused_before_the_model_is_read(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = refused("explore", place / "none.safetensors", "--live")
    assert said == "drkm: a live page needs the extra 'web': pip install 'drkm[web]'\n"


def test_a_live_page_is_served_until_ctrl_c(place):
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-u", "-m", "drkm", "explore", str(place / "digits.safetensors"), "--live"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ}, **pipes) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/$", process.stdout.readline().strip())[0]
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"<!doctype html>" in page.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("ended\n")


def test_a_port_that_is_in_use_is_refused_before_the_model_is_read(tmp_path):
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        told = refused("explore", tmp_path / "no.model", "--live", "--port", port)
    assert told == f"drkm: port: {port} is in use, choose another or 0 for any free one\n"


def test_a_model_whose_file_name_is_not_utf_8_is_shown(place, tmp_path):
    name = os.fsdecode(b"caf\xe9.model")
    (tmp_path / name).write_bytes((place / "digits.safetensors").read_bytes())
    assert drkm("explore", tmp_path / name, "-o", tmp_path / "page.html").code == 0
    assert record(tmp_path / "page.html")["title"] == os.fsdecode(b"caf\xe9")
