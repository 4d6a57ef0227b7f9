"""Kills fits at random moments, resumes them, and compares their codes with those of undisturbed fits.

python tests/kill_fits.py KILLS [OPTIONS], with the options of each fit as a list in JSON; by default every solver in
float32 and float64, each with this many kills. Prints one report for each fit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.kernels import RBF
from drkm.solvers import Penalty
from drkm.training.checkpoint import Checkpoint

SOLVERS: list[dict[str, Any]] = [
    {"solver": "lbfgs"},
    {"solver": "trust-region"},
    {"solver": "projected-gradient", "max_iter": 40},
    {"solver": "augmented-lagrangian", "max_iter": 40},
    {"solver": "penalty", "inner": 20, "learn_bandwidth": True, "init": "random"},
    {"solver": "auto", "n_components": [9], "n_init": 20, "init": "random"},
    {"solver": "lbfgs", "learn_bandwidth": True, "max_iter": 20},
    {"solver": "lbfgs", "n_init": 2},
]
EVERY_SOLVER = [{**options, "dtype": dtype} for options in SOLVERS for dtype in ("float32", "float64")]
#: maximum number of kills of one fit
MOST = 4
X, NEW = load_digits().data[:80] / 16, load_digits().data[80:90] / 16


def fit(options: dict[str, Any], **more: Any) -> ConstrDRKM:
    """Fit a model with the options of a report."""
    options = {"n_components": [6, 3], "random_state": 7, **options}
    if "inner" in options:
        options["solver"] = Penalty(inner=options.pop("inner"))
    kernel = [RBF(2.0), RBF(0.02)][: len(options["n_components"])]
    return ConstrDRKM(kernel=kernel, **options, **more).fit(X)


def answers(model: ConstrDRKM) -> np.ndarray:
    """Return the codes of old and new samples."""
    return np.vstack([model.codes_, model.transform(NEW)])


class Victim:
    """One fit in a separate folder, restarted in new processes."""

    def __init__(self, options: dict[str, Any], folder: Path):
        self.options = options
        self.path, self.codes = folder / "checkpoint", folder / "codes.npy"
        self.kills = self.resumed = 0

    def run(self, kills: int, chance: random.Random) -> None:
        """Run it to its end with this many kills, or fewer if it ends earlier."""
        status, done = None, 0
        while status is None or os.WIFSIGNALED(status):
            before = self._stamp()
            child = self._start()
            # Only the first kill may come before a write; otherwise the fit would make no progress.
            if done < kills and (done == 0 or self._writes(child, before)):
                time.sleep(chance.uniform(0, 0.1))
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            done += os.WIFSIGNALED(status)
            self.resumed += before is not None
        self.kills += done
        if os.WEXITSTATUS(status) != 0:
            raise RuntimeError(f"{self.options} ended with an error")

    def _start(self) -> int:
        child = os.fork()
        if child:
            return child
        try:
            checkpoint = Checkpoint(self.path, every=0)
            model = fit(self.options, checkpoint=checkpoint, callbacks=lambda entry: time.sleep(0.002))
            np.save(self.codes, answers(model))
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)

    def _writes(self, child: int, before: int | None) -> bool:
        """Wait for a write; False if the process ends without one."""
        while self._stamp() == before:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return False
            time.sleep(0.001)
        return True

    def _stamp(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None


def report(options: dict[str, Any], kills: int, chance: random.Random) -> dict[str, Any]:
    """Kill fits until there were this many kills, and return the outcome."""
    expected = answers(fit(options))
    equal, left, fits = True, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        victim = Victim(options, Path(folder))
        while victim.kills < kills or not fits:
            victim.run(min(MOST, kills - victim.kills), chance)
            equal &= np.array_equal(np.load(victim.codes), expected)
            left += len([entry for entry in Path(folder).iterdir() if entry != victim.codes])
            fits += 1
    return {"fits": fits, "kills": victim.kills, "resumed": victim.resumed, "equal": bool(equal), "left": left}


def main(kills: int, several: list[dict[str, Any]]) -> None:
    """Print a report of each fit."""
    torch.set_num_threads(1)
    chance = random.Random(0)
    print(json.dumps([report(options, kills, chance) for options in several]))


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else EVERY_SOLVER)
