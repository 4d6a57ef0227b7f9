"""Real processes: two and three of them agree with one to 1e-6, and the loss of one is survived by the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drkm
from sharded.worker import COMMON, INNER, estimator, learned, samples, share

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")
PATH = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests", ""))
FITS: list[dict[str, Any]] = [
    {},
    {"init": "random", "random_state": 3},
    {"init": "orthogonal", "random_state": 3, "axes": "varimax"},
    {"n_init": 6, "random_state": 0, "axes": "ica"},
    {"center": True, "solver": "trust-region"},
    {"n_components": [5]},
]

NUMBERS = ("multipliers_", "bandwidths", "eigenvalues")


def torchrun(processes: int, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": PATH}
    environment |= {"OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [*launch, str(WORKER), str(folder), json.dumps(options)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def results(folder: Path, number: int, processes: int) -> list[dict[str, np.ndarray]]:
    return [dict(np.load(folder / f"{number}.{rank}.npz")) for rank in range(processes)]


def assert_same(folder: Path, number: int, processes: int, options: dict[str, Any], gram: Any = INNER) -> None:
    """Compare the results of all processes with a fit of one process without shards."""
    X = samples()
    expected = learned(estimator(gram, dict(options)).fit(X), X[:20] + 0.01)
    found = results(folder, number, processes)
    for rank, result in enumerate(found):
        for name in (*COMMON, "history"):
            assert np.array_equal(result[name], found[0][name]), f"{name} of process {rank} differs from the first's"
        assert result["objective_"] == pytest.approx(float(expected["objective_"]), rel=1e-6)
        for name in (*NUMBERS, "encoded", "copied", "denoised", "copied_denoised", "shrunk"):
            assert_close(result[name], expected[name], name)
        if rank == 0:
            # The first sample of all is the first process's.
            assert_close(result["moved"], expected["moved"], "moved")
        assert_close(result["codes"], expected["codes"][share(len(X), rank, processes)], "codes")


def assert_close(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    assert np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max(), name


EXACT_FIT = {"n_components": [5], "center": True, "tol": 1e-13}


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    """The results of two processes, started only once, because starting takes longer than their fits."""
    folder = tmp_path_factory.mktemp("two")
    done = torchrun(2, folder, fits=[{}, {"exact": True, **EXACT_FIT}, {"encoder": "projection"}])
    assert done.returncode == 0, done.stderr
    return folder


def test_two_processes_give_the_result_of_one(of_two):
    assert_same(of_two, 0, 2, {})


def test_two_processes_give_the_codes_of_one_by_the_formulas_of_the_paper(of_two):
    assert_same(of_two, 2, 2, {"encoder": "projection"})


def test_two_processes_that_share_exact_operators_give_kernel_pca_to_1e_10(of_two):
    X = samples()
    expected = learned(estimator("dense", dict(EXACT_FIT)).fit(X), X[:20] + 0.01)
    for rank, result in enumerate(results(of_two, 1, 2)):
        assert float(result["objective_"]) == pytest.approx(float(expected["objective_"]), rel=1e-12)
        np.testing.assert_allclose(result["eigenvalues"], expected["eigenvalues"], rtol=1e-10)
        np.testing.assert_allclose(result["codes"], expected["codes"][share(len(X), rank, 2)], atol=1e-10)
        np.testing.assert_allclose(result["encoded"], expected["encoded"], atol=1e-10)


def test_two_processes_recompute_k_1_as_on_gpus_to_the_accuracy_of_float32(tmp_path, monkeypatch):
    pytest.importorskip("triton", minversion="3.7")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    X, options = samples(), {"n_components": [5], "center": True, "tol": 1e-5}
    done = torchrun(2, tmp_path, exact=True, dtype="float32", device="cpu", **options)
    assert done.returncode == 0, done.stderr
    expected = learned(estimator("dense", options).fit(X), X[:20] + 0.01)
    for rank, result in enumerate(results(tmp_path, 0, 2)):
        assert result["recomputed"]
        codes = expected["codes"][share(len(X), rank, 2)]
        np.testing.assert_allclose(result["eigenvalues"], expected["eigenvalues"], rtol=1e-5)
        np.testing.assert_allclose(np.abs(result["codes"]), np.abs(codes), atol=1e-4)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("processes", [2, 3])
def test_every_kind_of_exact_fit_gives_the_result_of_one_process(tmp_path, processes):
    done = torchrun(processes, tmp_path, fits=FITS, exact=True, save=str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    for number, options in enumerate(FITS):
        assert_same(tmp_path, number, processes, options, "dense")
    model = drkm.load(tmp_path / "model")
    codes = np.concatenate([result["codes"] for result in results(tmp_path, len(FITS) - 1, processes)])
    np.testing.assert_allclose(model.codes_, codes, atol=1e-12)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("processes", [2, 3])
def test_every_kind_of_fit_gives_the_result_of_one_process(tmp_path, processes):
    done = torchrun(processes, tmp_path, fits=FITS, save=str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    for number, options in enumerate(FITS):
        assert_same(tmp_path, number, processes, options)
    # The file holds the codes of all processes and is read by one.
    model = drkm.load(tmp_path / "model")
    codes = np.concatenate([result["codes"] for result in results(tmp_path, len(FITS) - 1, processes)])
    np.testing.assert_allclose(model.codes_, codes, atol=1e-12)
    np.testing.assert_allclose(model.transform(samples()[:5]), codes[:5], atol=1e-6)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("processes", "killed"), [(2, 1), (2, 0), (4, 2)])
def test_a_killed_process_ends_the_others_with_one_sentence_and_the_checkpoint_intact(
    tmp_path, processes, killed, exact
):
    path = tmp_path / "state"
    lost = torchrun(processes, tmp_path, exact=exact, checkpoint=str(path), kill=[killed, 8 if exact else 25])
    assert lost.returncode != 0
    for rank in range(processes):
        sentence = f"gram: process {rank} of {processes} cannot go on, because another process of the group was lost"
        said = [line for line in lost.stderr.splitlines() if sentence in line]
        assert len(said) == (0 if rank == killed else 1), lost.stderr
        assert all(f"the last checkpoint is {path}, fit again to go on from it" in line for line in said)
    assert not list(tmp_path.glob("*.npz"))
    assert len(list(tmp_path.glob("state.*-of-*"))) == 2 * processes
    again = torchrun(processes, tmp_path, exact=exact, checkpoint=str(path))
    assert again.returncode == 0, again.stderr
    assert_same(tmp_path, 0, processes, {}, "dense" if exact else INNER)
    history = results(tmp_path, 0, processes)[0]["history"]
    assert not list(tmp_path.glob("state*"))
    # Bit for bit the result of a fit without the interruption.
    whole = tmp_path / "whole"
    whole.mkdir()
    assert torchrun(processes, whole, exact=exact).returncode == 0
    assert np.array_equal(history, results(whole, 0, processes)[0]["history"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_processes_with_different_parameters_say_so(tmp_path):
    done = torchrun(2, tmp_path, differ=True)
    assert done.returncode != 0
    assert "gram: the processes of a sharded fit were given different parameters" in done.stderr


#: a process of a fit without torchrun, which would end the others; it needs its rank, the rendezvous, and its rows
ALONE = """
import sys
import numpy as np
import torch.distributed as dist
from drkm import ConstrDRKM
from sharded.worker import samples

rank, meeting, begin, end, spoil = sys.argv[1:]
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=2)
X = samples()[int(begin) : int(end)]
X[:1] = np.nan if spoil == "True" else X[:1]
try:
    print(ConstrDRKM(3, gram="sharded").fit(X).objective_)
except ValueError as error:
    print(error)
"""


def two_processes(folder: Path, cut: int, *, spoil: bool = False) -> list[str]:
    """Return the output of two processes that share 300 samples, split at row `cut`; the second may have a gap."""
    environment = {**os.environ, "PYTHONPATH": PATH}
    parts = [("0", str(folder / "meeting"), "0", str(cut), "False")]
    parts += [("1", str(folder / "meeting"), str(cut), "300", str(spoil))]
    command = [sys.executable, "-W", "ignore", "-c", ALONE]
    started = [
        subprocess.Popen([*command, *part], env=environment, stdout=subprocess.PIPE, text=True) for part in parts
    ]
    try:
        return [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()


def test_a_process_may_have_one_sample(tmp_path):
    expected = drkm.ConstrDRKM(3).fit(samples()).objective_
    assert [float(said) for said in two_processes(tmp_path, 299)] == pytest.approx([expected] * 2, rel=1e-9)


@pytest.mark.parametrize(("cut", "why"), [(150, "X: contains NaN"), (300, "X: Found array with 0 sample")])
def test_a_process_without_samples_does_not_leave_the_others_waiting(tmp_path, cut, why):
    first, second = two_processes(tmp_path, cut, spoil=True)
    assert first.startswith("gram: process 1 of 2 was given samples that it cannot take")
    assert second.startswith(why)
