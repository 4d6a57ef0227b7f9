"""One exact layer with many samples on a CPU, within a memory budget: python -m benchmarks.large.

python -m benchmarks.large [--samples 50000 100000] [--models KernelPCA ConstrDRKM] [--dtype float64] [--memory 1.5e9]

Smooth functions of three uniform factors with a little noise, as in `benchmarks.kernel_pca`; d = 30, 10 components.
`gram="auto"` uses tiles if the kernel matrix does not fit; here their budget is given, so that the table does not
depend on the memory of the machine. One process per cell; memory is that of the whole process, libraries included.
Seconds are wall-clock time, which includes waiting for other work on the machine, and processor time, which does not.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.kernel_pca import cpu, samples

SAMPLES, MODELS, FEATURES, COMPONENTS = (50_000, 100_000), ("KernelPCA", "ConstrDRKM"), 30, 10


def fitted(model: str, dtype: str, memory: float, X: Any) -> Any:
    from drkm import ConstrDRKM, KernelPCA
    from drkm.gram import Tiled

    options: dict[str, Any] = {"gram": Tiled(memory=memory), "dtype": dtype}
    if model == "KernelPCA":
        return KernelPCA(COMPONENTS, kernel="rbf", **options).fit(X)
    return ConstrDRKM(COMPONENTS, **options).fit(X)


def cell(model: str, n: int, dtype: str, memory: float) -> dict[str, Any]:
    """Return time and memory of one fit."""
    import torch

    from drkm.gram import TiledGram

    products: list[int] = []
    matmul = TiledGram.matmul

    def counted(self: TiledGram, A: Any) -> Any:
        products.append(A.shape[1])
        return matmul(self, A)

    TiledGram.matmul = counted  # type: ignore[method-assign]
    X = samples(n, FEATURES)
    clock, used = time.perf_counter(), time.process_time()
    fitted(model, dtype, memory, X)
    return {
        "threads": torch.get_num_threads(),
        "seconds": time.perf_counter() - clock,
        "processor": time.process_time() - used,
        "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "products": len(products),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="one exact layer at many samples on a CPU")
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--dtype", nargs="+", default=["float64"])
    parser.add_argument("--memory", type=float, default=1.5e9, help="bytes that a fit may take")
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        model, n, dtype, memory = options.cell
        print(json.dumps(cell(model, int(n), dtype, float(memory))))
        return
    print(f"{cpu()}\n\n| model | n | precision | threads | s | of the processor | products with K | process, GB |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for model in options.models:
        for n in options.samples:
            for dtype in options.dtype:
                words = [model, str(n), dtype, str(options.memory)]
                command = [sys.executable, "-m", "benchmarks.large", "--cell", *words]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                times = f"{found['threads']} | {found['seconds']:.0f} | {found['processor']:.0f}"
                memory = f"{found['products']} | {found['peak'] / 1e9:.2f}"
                print(f"| {model} | {n} | {dtype} | {times} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
