"""Benchmarks that need neither a GPU nor data files: python -m benchmarks [name …] [options of that one].

Those that choose their own threads or measure memory are run by themselves, as python -m benchmarks.NAME.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

#: one thread for all libraries, set before any of them is imported
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
#: in the order in which they run
NAMES = (
    *("imports", "one_layer", "kernels", "solvers", "best_energy", "algorithm_1", "warmup", "coarse_to_fine"),
    *("several_starts", "refit", "stability", "preimage", "denoising_floor", "shrinkage_floor", "plane_curves"),
    *("metrics", "datasets", "runner", "explorer", "approximation", "tiled", "encoding", "scaling", "sharded"),
    "sharded_model",
)


def listing() -> str:
    """Return what the benchmarks measure, by name, without running any."""
    sources = {name: (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8") for name in NAMES}
    about = [f"{name:<16} {source.splitlines()[0].strip(chr(34))}" for name, source in sources.items()]
    return "\n".join([str(__doc__), *about, "", "Options of one: python -m benchmarks NAME --help"])


def main() -> None:
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(listing())
        return
    if any(os.environ.get(name) != value for name, value in THREADS.items()):
        os.environ.update(THREADS)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    words = sys.argv[1:]
    first_option = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    names = words[:first_option] or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}, there are {', '.join(NAMES)}")
    sys.argv = [sys.argv[0], *words[first_option:]]
    for name in names:
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
