"""One cell of the scaling benchmark, in a separate process: an operator at one number of samples.

python -m benchmarks.scaling_cell tiled 2000 [--device cuda] [--data images] [--limit 120]

Prints one line of JSON at every stage; the caller reads the last one, also after a timeout. Operators are those of
`drkm.gram` by name, with parameters as in "tiled:memory=1.5e9,keep=0"; "KernelPCA" is scikit-learn's. "sharded" is
started by torchrun: each process takes its part of the samples, and the first one reports its own numbers.
"""

from __future__ import annotations

import argparse
import ast
import json
import resource
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from benchmarks.images import write_sprites
from benchmarks.problems import SIZES, structured
from drkm import ConstrDRKM
from drkm import gram as grams
from drkm.gram import NotEnoughMemory
from drkm.inference.first_gram import energy_of

TOL = 1e-4
KERNEL_PCA = "KernelPCA"
SHARDED = "sharded"


def operator(text: str) -> Any:
    """Return a name, or an object for a name with parameters."""
    name, _, settings = text.partition(":")
    if not settings:
        return name
    pairs = (pair.split("=", 1) for pair in settings.split(","))
    return grams.NAMES[name](**{key: _literal(value) for key, value in pairs})


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def clock(device: str) -> float:
    """Return processor seconds for one thread, which exclude other work on the machine, else wall-clock seconds."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.process_time() if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter()


def peak(device: str) -> int:
    """Return the peak memory of the process, or of the GPU, so far in bytes."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def warm_up(device: str) -> None:
    """Fit something tiny, so that lazily loaded libraries do not count as memory of the fit."""
    ConstrDRKM((2, 1), tol=1e-2, device=device).fit(np.random.RandomState(0).randn(300, 5))


def run(text: str, n: int, device: str, data: str, limit: float, folder: Path, **options: Any) -> None:
    path = folder / "samples.npy"
    if data == "images":
        write_sprites(path, n)
    else:
        np.save(path, structured(n).numpy())
    X = np.load(path, mmap_mode="r")
    warm_up(device)
    if text == SHARDED:
        dist.init_process_group("gloo")
        X = np.array_split(X, dist.get_world_size())[dist.get_rank()]
    facts: dict[str, Any] = {"operator": text, "n": n, "d": X.shape[1], "device": device, "data": data}
    speaks = not dist.is_initialized() or dist.get_rank() == 0
    facts |= {"threads": torch.get_num_threads(), "baseline": peak(device), "status": "started", **options}
    begin = clock(device)

    def say(**more: Any) -> None:
        facts.update(more, seconds=clock(device) - begin, peak=peak(device))
        if speaks:
            print(json.dumps(facts), flush=True)

    say()
    try:
        (_kernel_pca if text == KERNEL_PCA else _fit)(text, X, device, limit, say, **options)
    except NotEnoughMemory as error:
        say(status=str(error))
    except (MemoryError, torch.OutOfMemoryError):
        say(status="out of memory")


def _kernel_pca(text: str, X: np.ndarray, device: str, limit: float, say: Any, **options: Any) -> None:
    from sklearn.decomposition import KernelPCA

    from drkm.kernels.bandwidth import resolve_bandwidth

    samples = np.asarray(X, dtype=np.float64)
    gamma = 0.5 / resolve_bandwidth("median", torch.from_numpy(samples), layer=1)
    model = KernelPCA(sum(SIZES), kernel="rbf", gamma=gamma, eigen_solver="randomized", random_state=0).fit(samples)
    say(status="converged", objective=-0.5 * float(model.eigenvalues_.sum()))


def _fit(text: str, X: np.ndarray, device: str, limit: float, say: Any, **options: Any) -> None:
    def watch(entry: dict[str, float]) -> None:
        if watch.last is None or time.perf_counter() - watch.last > 1:  # type: ignore[attr-defined]
            watch.last = time.perf_counter()  # type: ignore[attr-defined]
            say(status="unfinished", stationarity=entry["stationarity"], objective=entry["objective"])

    watch.last = None  # type: ignore[attr-defined]
    settings = {"tol": TOL, "max_seconds": limit, "device": device, "callbacks": watch, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConstrDRKM(SIZES, eta=1.0, gram=operator(text), **settings).fit(X)
    result, energy = model.fitted_.result, energy_of(model.fitted_)
    say(
        status="converged" if model.converged_ else "time limit",
        stationarity=model.stationarity_,
        objective=model.objective_,
        evaluations=result.n_evaluations,
        solving=result.seconds,
        gradient=_gradient_seconds(energy, result.H),
        chosen=energy.strategy.describe(),
        model_bytes=energy.cost.bytes,
        model_flops=energy.cost.flops,
    )


def _gradient_seconds(energy: Any, H: torch.Tensor, repeats: int = 3) -> float:
    """Best time of one gradient of all layers."""
    best = float("inf")
    for _ in range(repeats):
        begin = clock(H.device.type)
        energy.value_and_gradient(H)
        best = min(best, clock(H.device.type) - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operator")
    parser.add_argument("n", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", choices=("images", "structured"), default="images")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--dtype", default="auto")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        run(asked.operator, asked.n, asked.device, asked.data, asked.limit, where, dtype=asked.dtype)


if __name__ == "__main__":
    main()
