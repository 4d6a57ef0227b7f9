"""All benchmarks that need no GPU and no data files: python -m benchmarks [name …] [options of that one]."""

from __future__ import annotations

import os
import sys

#: one thread for everybody, set before any of the libraries starts
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def main() -> None:
    if any(os.environ.get(name) != value for name, value in THREADS.items()):
        os.environ.update(THREADS)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    from benchmarks import (
        algorithm_1,
        approximation,
        best_energy,
        datasets,
        denoising_floor,
        encoding,
        imports,
        kernels,
        metrics,
        one_layer,
        preimage,
        refit,
        runner,
        scaling,
        several_starts,
        sharded,
        sharded_model,
        solvers,
        stability,
        tiled,
        warmup,
    )

    runs = {
        "imports": imports.main,
        "one_layer": one_layer.main,
        "kernels": kernels.main,
        "solvers": solvers.main,
        "best_energy": best_energy.main,
        "algorithm_1": algorithm_1.main,
        "warmup": warmup.main,
        "several_starts": several_starts.main,
        "refit": refit.main,
        "stability": stability.main,
        "preimage": preimage.main,
        "denoising_floor": denoising_floor.main,
        "metrics": metrics.main,
        "datasets": datasets.main,
        "runner": runner.main,
        "approximation": approximation.main,
        "tiled": tiled.main,
        "encoding": encoding.main,
        "scaling": scaling.main,
        "sharded": sharded.main,
        "sharded_model": sharded_model.main,
    }
    words = sys.argv[1:]
    first_option = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    names = words[:first_option] or list(runs)
    unknown = [name for name in names if name not in runs]
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}, there are {', '.join(runs)}")
    sys.argv = [sys.argv[0], *words[first_option:]]
    for name in names:
        print(f"\n## {name}\n", flush=True)
        runs[name]()


if __name__ == "__main__":
    main()
