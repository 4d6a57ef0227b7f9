"""The command in a separate process, as started by a shell."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import refused
from drkm import load
from drkm.runs.store import Store

PROBE = "import sys; from drkm.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"


def drkm(*words, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "drkm", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
    )


def test_fit_and_encode_give_what_python_gives_and_nothing_but_json_on_stdout(tmp_path):
    X = np.random.RandomState(0).randn(60, 5)
    np.save(tmp_path / "X.npy", X)
    fitted = drkm("fit", "X.npy", "-o", "X.safetensors", "-c", "4,2", "--json", cwd=tmp_path)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert json.loads(fitted.stdout)["components"] == [4, 2]
    encoded = drkm("encode", "X.safetensors", "X.npy", "-o", "codes.npy", "--json", cwd=tmp_path)
    assert (encoded.returncode, encoded.stderr) == (0, "")
    assert json.loads(encoded.stdout)["samples"] == 60
    model = load(tmp_path / "X.safetensors")
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), model.transform(X))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "none.csv", "-o", "model"), "data: there is no file none.csv"),
        (("demo", "cats"), "data: unknown name 'cats', allowed are sprites, digits"),
        (("reproduce", "table1", "--only", "cats"), "only: unknown name 'cats', allowed are denoise-cell, "),
        (("reproduce", "table1", "--skip", "drkm,cats"), "skip: unknown name 'cats', allowed are denoise-cell, "),
        (("reproduce", "table1", "table9"), "experiment: unknown name 'table9', allowed are table1, "),
    ],
)
def test_an_error_is_one_sentence_on_stderr_and_comes_before_torch(words, sentence, tmp_path):
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert done.stderr.startswith(f"drkm: {sentence}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_status_does_without_torch(tmp_path):
    with Store(tmp_path / "runs.sqlite"):
        pass
    words = ("status", "--store", tmp_path / "runs.sqlite")
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True)
    assert done.stdout.endswith("computing time\nFalse\n"), done.stderr


@pytest.mark.parametrize("words", [(), ("fit",)], ids=["drkm", "fit"])
def test_help_has_80_columns_and_no_colour_in_a_pipe(words):
    shown = drkm(*words, "--help", FORCE_COLOR="1", COLUMNS="80")
    assert "\x1b" not in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


BY_PRINT = "from drkm.cli import main; from drkm.cli.app import app; app.command('say')(lambda: print('x')); main()"


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "drkm", "--help"),
        ("-m", "drkm", "datasets", "list"),
        # Output that print buffers until the end, and a sentence on stderr.
        ("-c", BY_PRINT, "say"),
        ("-m", "drkm", "fit"),
    ],
)
def test_where_nobody_reads_what_is_printed_the_command_ends_quietly(words):
    reading, writing = os.pipe()
    os.close(reading)
    with_errors = writing if words[-1] == "fit" else subprocess.PIPE
    done = subprocess.run([sys.executable, *words], stdout=writing, stderr=with_errors)
    os.close(writing)
    assert (done.returncode, done.stderr or b"") == (141, b"")


def test_ctrl_c_says_how_to_go_on_and_the_same_command_then_ends(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", np.random.RandomState(0).randn(300, 20))
    words = ["fit", "X.npy", "-o", "X.safetensors", "-c", "20,10", "--sigma2", "5,0.001", "--checkpoint", "X.part"]
    endless = [*words, "--tol", "1e-15", "--max-iter", "1000000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "drkm", *endless],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "X.part").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said.count("\n") == 1
    assert "no model was written: the same command resumes from X.part" in said
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["X.npy", "X.part"]
    monkeypatch.chdir(tmp_path)
    assert "belongs to a fit with other data or parameters" in refused(*words)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["sprites", "digits"])
def test_demo_trains_prints_the_summary_and_draws(data, tmp_path):
    done = drkm("demo", data, "--out", tmp_path, "--n", "120")
    assert (done.returncode, done.stderr) == (0, "")
    assert "converged in" in done.stdout
    assert (tmp_path / f"{data}.png").stat().st_size > 10_000
    assert (tmp_path / f"{data}.safetensors").is_file()
    page = tmp_path / f"{data}.html"
    assert f"open {page.as_uri()} in a browser" in done.stdout
    assert '"kind":"image"' in page.read_text("utf-8")
    again = drkm("explore", tmp_path / f"{data}.safetensors", "-o", tmp_path / "again.html")
    assert again.stdout.startswith("120 samples in ")
    assert '"kind":"image"' in (tmp_path / "again.html").read_text("utf-8")
