"""Several processes of one thread each against one: the time of a whole fit, and what an iteration exchanges.

python -m benchmarks.sharded                        1 and 2 processes in turn, three times, n = 50,000
python -m benchmarks.sharded --processes 1 4 16     other numbers of processes
python -m benchmarks.sharded --n 5000 --repeats 1   a quick run
python -m benchmarks.sharded --exact --n 10000      exact operators, against gram="auto" in one process
python -m benchmarks.sharded --exact --n 10000 --sizes 10    the same for one layer
python -m benchmarks.sharded --exact --n 10000 --alone dense    against the stored matrix in one process
python -m benchmarks.sharded --exact --n 300000 --sizes 10 --device cuda    on GPUs, in float32, by NCCL

The data are the structured set (64 features), the model has s = (10, 5) components with the default bandwidths. The
time is that of the whole `fit` (landmarks, features, start, warm-up, 25 iterations, axes, preparation of the encoder)
from the moment all processes have their samples. Memory is the peak of the largest process above its value before the
fit, on a GPU that of its tensors, samples included. The processor time of the busiest process is printed too: on a
machine with other work it says more than wall-clock time. Processes that outnumber the GPUs share them: two on one GPU
show what exchanges cost, and not that two GPUs are faster than one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from typing import Any

import torch
import torch.distributed as dist
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import SIZES, structured


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        _worker(argparse.Namespace(**json.loads(sys.argv[2])))
        return
    options = _options()
    runs: dict[int, list[dict[str, Any]]] = {processes: [] for processes in options.processes}
    for _ in range(options.repeats):
        for processes, found in runs.items():
            found.append(_launch(processes, options))
            print(f"# {processes} processes: {found[-1]}", file=sys.stderr, flush=True)
    _table(runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Several processes of one thread each against one.")
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--m", type=int, default=1000, help="landmarks of the first layer")
    parser.add_argument("--features", type=int, default=1000, help="Fourier features of the second layer")
    parser.add_argument("--max-iter", type=int, default=25, help="iterations of a fit, after the start and the warm-up")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--exact", action="store_true", help="exact operators instead of features")
    parser.add_argument("--alone", default="auto", help="exact operator of a single process")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="cuda: float32, and exchanges by NCCL")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="components of each layer")
    return parser.parse_args()


def _launch(processes: int, options: argparse.Namespace) -> dict[str, Any]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [*launch, "-m", "benchmarks.sharded", "worker", json.dumps(vars(options))]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _worker(options: argparse.Namespace) -> None:
    from drkm import ConstrDRKM
    from drkm.distributed import collectives
    from drkm.gram import Fourier, Nystroem, Sharded

    torch.set_num_threads(1)
    # These fits stop at their maximum number of iterations on purpose.
    warnings.simplefilter("ignore", ConvergenceWarning)
    on_gpu = options.device == "cuda"
    join("nccl" if on_gpu else "gloo")
    rank, processes = dist.get_rank(), dist.get_world_size()
    dtype = torch.float32 if on_gpu else torch.float64
    X = structured(options.n).tensor_split(processes)[rank].to(options.device, dtype, copy=True)
    counts: list[tuple[int, int]] = []

    def count(entry: dict[str, float]) -> None:
        shards: Any = collectives.current()
        counts.append((shards.exchanges, shards.bytes) if shards else (0, 0))

    gram: Any = Sharded(Nystroem(options.m, deep=Fourier(options.features)))
    if options.exact:
        gram = "sharded" if processes > 1 else options.alone
    sizes = tuple(options.sizes)
    tol = 1e-4 if on_gpu else 1e-6
    warm = ConstrDRKM(sizes, eta=1.0, gram=gram, max_iter=2, tol=tol, device=options.device).fit(X[:300])
    model = warm.set_params(max_iter=options.max_iter, callbacks=count)
    before = 0.0 if on_gpu else _resident()
    dist.barrier()
    clock, work = time.perf_counter(), time.process_time()
    model.fit(X)
    held = (torch.cuda.max_memory_allocated() / 1e6 if on_gpu else _resident()) - before
    spent = [time.perf_counter() - clock, time.process_time() - work, held]
    largest = torch.tensor(spent, device=options.device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    if rank == 0:
        iterations = max(1, len(counts) - 1)
        found = {
            "seconds": round(float(largest[0]), 2),
            "processor": round(float(largest[1]), 2),
            "megabytes": round(float(largest[2])),
            "iterations": model.n_iter_,
            "evaluations": model.fitted_.result.n_evaluations,
            "exchanges": round((counts[-1][0] - counts[0][0]) / iterations, 1),
            "bytes": round((counts[-1][1] - counts[0][1]) / iterations),
            "objective": model.objective_,
        }
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def join(backend: str) -> None:
    """Join the group of processes, with a GPU of this process if the backend is NCCL."""
    if backend == "nccl":
        gpus = torch.cuda.device_count()
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % gpus)
        if gpus < int(os.environ["LOCAL_WORLD_SIZE"]):
            # NCCL wants a GPU for each process of a machine: those that share one seem to be on machines of their own.
            os.environ |= {"NCCL_HOSTID": os.environ["RANK"], "NCCL_SOCKET_IFNAME": "lo"}
    dist.init_process_group(backend)


def _resident() -> float:
    """Return the peak of the resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _table(runs: dict[int, list[dict[str, Any]]]) -> None:
    heads = ["processes", "seconds, best", "median", "faster, best", "median", "processor seconds", "faster"]
    heads += ["MB per process", "exchanges an iteration", "bytes an iteration and process", "iterations", "J"]
    print(f"| {' | '.join(heads)} |\n|" + "---:|" * len(heads))
    first = next(iter(runs.values()))
    best, middle, work = (_of(first, *kind) for kind in KINDS)
    for processes, found in runs.items():
        own_best, own_middle, own_work = (_of(found, *kind) for kind in KINDS)
        last = found[-1]
        print(
            f"| {processes} | {own_best:.1f} | {own_middle:.1f} | {best / own_best:.2f} | {middle / own_middle:.2f} "
            f"| {own_work:.1f} | {work / own_work:.2f} | {last['megabytes']} | {last['exchanges']} | {last['bytes']} "
            f"| {last['iterations']} | {last['objective']:.8f} |"
        )


KINDS: tuple[tuple[str, Any], ...] = (("seconds", min), ("seconds", statistics.median), ("processor", min))


def _of(found: list[dict[str, Any]], name: str, which: Any) -> float:
    return which(run[name] for run in found)


if __name__ == "__main__":
    main()
