import json
import subprocess
import sys

import numpy as np
import pytest


def drkm(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "drkm", *map(str, words)], capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=200) for size in (3, 4)], axis=1)
    np.save(tmp_path / "factors.npy", factors)
    np.save(tmp_path / "codes.npy", factors @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(200, 3)))
    return tmp_path


def test_evaluate_prints_every_metric_beside_its_chance_level(files):
    done = drkm("evaluate", files / "codes.npy", files / "factors.npy")
    assert done.returncode == 0, done.stderr
    assert "chance" in done.stdout
    for name in ("IRS", "MIG", "SAP", "DCI", "FactorVAE"):
        assert name in done.stdout


def test_datasets_are_listed_with_their_licence_and_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    done = drkm("datasets", "list")
    assert done.returncode == 0, done.stderr
    assert "cars3d" in done.stdout
    assert "Apache-2.0" in done.stdout
    assert str(tmp_path) in done.stdout
    assert drkm("datasets", "verify", "cars3d").returncode == 0


def test_evaluate_writes_json_for_scripts(files):
    done = drkm("evaluate", files / "codes.npy", files / "factors.npy", "--json")
    scores = json.loads(done.stdout)["scores"]
    assert len(scores) >= 10


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("evaluate", "missing.npy", "missing.npy"), "there is no file missing.npy"),
        (("reproduce", "table9"), "unknown name 'table9', allowed are table1"),
        (("datasets", "download", "cats"), "takes dsprites, noisy_dsprites, cars3d, smallnorb, got 'cats'"),
        (("demo", "cats"), "unknown name 'cats', allowed are sprites, digits"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence_and_exit_code_2(words, sentence, tmp_path):
    done = drkm(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("data", ["sprites", "digits"])
def test_demo_trains_prints_the_summary_and_draws(data, tmp_path):
    done = drkm("demo", data, "--out", tmp_path, "--n", "120")
    assert done.returncode == 0, done.stderr
    assert "converged in" in done.stdout
    assert (tmp_path / f"{data}.png").stat().st_size > 10_000
    assert (tmp_path / f"{data}.safetensors").is_file()
