"""One process of a sharded fit, started by torchrun: worker.py FOLDER OPTIONS, where OPTIONS is one JSON object.

It fits its share of the samples and writes its results to FOLDER/RANK.npz. The options are those of the estimator and a
few more: `exact` (share exact operators, in all fits or one of them), `fits` (a list of options, one fit each), `kill`
(rank and iteration at which that process kills itself), `save` (where to save the last model), `differ` (give every
process another tolerance) and `backend` ("nccl" between GPUs, of which processes may share one).
"""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from benchmarks.sharded import join
from drkm import ConstrDRKM
from drkm.gram import Fourier, Nystroem, Sharded, Tiled
from drkm.training.checkpoint import Checkpoint

INNER = Nystroem(m=60, deep=Fourier(features=60))
#: attributes that must be the same in all processes, and equal to those of one process
COMMON = ("objective_", "stationarity_", "multipliers_", "n_iter_")


def samples(n: int = 300) -> np.ndarray:
    """Smooth functions of three factors, with a little noise."""
    rng = np.random.RandomState(0)
    z, F, b = rng.rand(n, 3), 2 * rng.randn(3, 20), 6.28 * rng.rand(20)
    return np.cos(z @ F + b) @ rng.randn(20, 8) / np.sqrt(20) + 0.05 * rng.randn(n, 8)


def share(n: int, rank: int, size: int) -> slice:
    """Rows of one process: shares of different lengths, so that lengths cannot be mistaken."""
    cuts = (np.linspace(0, 1, size + 1) ** 1.3 * n).round().astype(int)
    return slice(int(cuts[rank]), int(cuts[rank + 1]))


def estimator(gram: Any, options: dict[str, Any]) -> ConstrDRKM:
    sizes = tuple(options.pop("n_components", (4, 3)))
    return ConstrDRKM(sizes, **{"gram": gram, "tol": 1e-8, **options})


def learned(model: ConstrDRKM, new: np.ndarray) -> dict[str, Any]:
    """Return the results that are compared between processes."""
    out = {name: np.asarray(getattr(model, name)) for name in COMMON}
    out["recomputed"] = np.asarray("recomputed for the rows" in model.summary())
    out["bandwidths"] = np.array([kernel.sigma2 for kernel in model.kernels_])
    out["eigenvalues"] = np.concatenate(model.eigenvalues_)
    out["history"] = np.array([[entry["objective"], entry["stationarity"]] for entry in model.history_])
    again = copy.deepcopy(model)
    out |= {"copied": again.transform(new), "copied_denoised": again.denoise(new)}
    out |= {"shrunk": model.denoise(new, shrink=0.3), "moved": model.traverse(1, 0, [0.05], base=0)}
    return out | {"codes": model.codes_, "encoded": model.transform(new), "denoised": model.denoise(new)}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    join(options.pop("backend", "gloo"))
    rank, size = dist.get_rank(), dist.get_world_size()
    X = samples()
    own = X[share(len(X), rank, size)]
    kill, differ = options.pop("kill", None), options.pop("differ", False)
    saved, exact = options.pop("save", None), options.pop("exact", False)
    if "checkpoint" in options:
        options["checkpoint"] = Checkpoint(options["checkpoint"], every=0.0)
    if differ:
        options["tol"] = 10.0 ** -(4 + rank)

    def stop(entry: dict[str, float]) -> None:
        if kill == [rank, entry["iteration"]]:
            os.kill(os.getpid(), signal.SIGKILL)

    for number, more in enumerate(options.pop("fits", [{}])):
        inner = Tiled() if more.pop("exact", exact) else INNER
        model = estimator(Sharded(inner, timeout=60), {**options, **more, "callbacks": stop}).fit(own)
        np.savez(folder / f"{number}.{rank}.npz", **learned(model, X[:20] + 0.01))
    if saved:
        model.save(saved)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
