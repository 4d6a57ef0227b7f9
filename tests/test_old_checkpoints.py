"""Checkpoints of version 2 can be read: a fit resumes from them and ends where it would have ended.

Those in `checkpoints_of_version_2` were written by the code of commit 78ea56f, with
`python tests/test_old_checkpoints.py FOLDER`.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM
from drkm.files import container
from drkm.solvers import Penalty
from drkm.training.checkpoint import Checkpoint

FOLDER = Path(__file__).with_name("checkpoints_of_version_2")
#: exact on every machine, because the checkpoints belong to these bits
X = (np.arange(48).reshape(16, 3) ** 2 % 17) / 4.0

#: options of a fit by the name of its file, and how many entries of the history it had shown when it was killed
FITS = {
    "lbfgs": ({}, 4),
    "unequal-weights": ({"eta": (1.0, 50.0)}, 4),
    "three-layers": ({"n_components": (3, 2, 1)}, 5),
    "float32": ({"dtype": "float32", "tol": 1e-4}, 4),
    "second-start": ({"n_init": 2, "solver": "trust-region", "tol": 1e-9}, 22),
    "learned": ({"learn_bandwidth": True}, 20),
    "eigensolver": ({"n_components": 3, "init": "orthogonal"}, 2),
    "trust-region": ({"solver": "trust-region"}, 4),
    "projected-gradient": ({"solver": "projected-gradient"}, 9),
    "augmented-lagrangian": ({"solver": "augmented-lagrangian"}, 9),
    "penalty": ({"solver": Penalty(inner=30), "init": "random"}, 40),
    "penalty-learned": ({"solver": Penalty(inner=30), "init": "random", "learn_bandwidth": True}, 40),
}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def fit(options: dict, path: Path | None = None, *callbacks) -> ConstrDRKM:
    checkpoint = None if path is None else Checkpoint(path, every=0)
    fixed = {"n_components": (3, 2), "eta": 1.0, "random_state": 0, "max_iter": 200}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ConstrDRKM(**{**fixed, **options}, checkpoint=checkpoint, callbacks=callbacks).fit(X)


def write(folder: Path) -> None:
    for name, (options, entries) in FITS.items():
        seen = []

        def kill(entry, seen=seen, entries=entries):
            seen.append(entry)
            if len(seen) == entries:
                raise Killed

        try:
            fit(options, folder / name, kill)
        except Killed:
            print(name, seen[-1])


@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_from_a_checkpoint_of_version_2(name, tmp_path):
    options, entries = FITS[name]
    _, header = container.read(FOLDER / name, "checkpoint", 2)
    assert header["version"] == 2
    (run,) = header["runs"].values()
    iteration = run["scalars"]["iteration"]
    shutil.copy(FOLDER / name, tmp_path / name)
    whole, seen = fit(options), []
    again = fit(options, tmp_path / name, seen.append)
    assert seen[0]["iteration"] == iteration == entries - 2 or name in ("second-start", "learned")
    assert [entry["iteration"] for entry in again.history_] == list(range(again.history_[-1]["iteration"] + 1))
    # The fit began on another machine, so that last digits may differ; without convergence these differences grow.
    close = 1e-2 if not whole.converged_ else 1e-4 if name == "float32" else 1e-7
    assert again.objective_ == pytest.approx(whole.objective_, rel=close)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("curvature: ", lambda tensors, run: tensors.pop("run0.curvature0")),
        ("preconditioner: basis: ", lambda tensors, run: tensors.pop("run0.basis")),
        ("preconditioner: scale: ", lambda tensors, run: tensors.update({"run0.scale": torch.ones(2)})),
        ("lists: ", lambda tensors, run: run["lists"].update(S=-1)),
        ("S: ", lambda tensors, run: run["lists"].update(S=9)),
        ("'S.0': ", lambda tensors, run: run["lists"].update(S=0)),
        ("'more': ", lambda tensors, run: run["scalars"].update(more=1)),
        ("scalars: ", lambda tensors, run: run.update(scalars=None)),
        ("status: ", lambda tensors, run: run["scalars"].update(status="done")),
    ],
)
def test_a_forged_checkpoint_of_version_2_is_refused(part, change, tmp_path):
    tensors, header = container.read(FOLDER / "lbfgs", "checkpoint", 2)
    change(tensors, header["runs"]["0"])
    container.write(tmp_path / "forged", tensors, header)
    with pytest.raises(ValueError, match=rf"checkpoint: .*forged is damaged \(.*{part}") as caught:
        fit(FITS["lbfgs"][0], tmp_path / "forged")
    assert "\n" not in str(caught.value)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
