"""Time and memory against the number of samples: every operator, and scikit-learn's KernelPCA.

python -m benchmarks.scaling                                        CPU: n = 500 … as far as two minutes per fit allow
python -m benchmarks.scaling --device cuda --operators fused --samples 2000 20000 100000
python -m benchmarks.scaling --figure                               table and figure again, from existing cells

Every cell runs in a separate process (`benchmarks.scaling_cell`), which reports its peak memory and has a time limit;
an operator that did not finish is not run with more samples. Cells are kept in results/scaling/cells.jsonl, so that
runs on several machines can be combined; existing cells are not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scaling_cell import KERNEL_PCA, SHARDED
from drkm import gram as grams
from drkm.experiments.output import save_figure, save_table, write_text
from drkm.gram.cost import in_bytes, in_flops
from drkm.plotting import COLOURS, MARKERS, style

SAMPLES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
TITLE = "Time and memory against the number of samples"
#: processes of a sharded cell
PROCESSES = 2
NAMES = {KERNEL_PCA: "scikit-learn's KernelPCA"}
IDENTITY = ("operator", "n", "device", "data", "dtype")
Cell = dict[str, Any]


def measure(operator: str, n: int, device: str, data: str, dtype: str, limit: float) -> Cell:
    """Run one cell and return its last message, and why it ended."""
    python = [sys.executable]
    if operator == SHARDED:
        python += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(PROCESSES)]
    command = [*python, "-m", "benchmarks.scaling_cell", operator, str(n), "--device", device]
    command += ["--data", data, "--limit", str(limit), "--dtype", dtype]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # A fit obeys the limit itself, but KernelPCA and starts have none.
        text, errors = process.communicate(timeout=2 * limit + 60)
        reason = f"ended with code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        # Terminated, not killed, so that torchrun can end its processes.
        process.terminate()
        text, errors = process.communicate()
        reason = "time limit"
    sys.stderr.write(errors[-2000:])
    lines = [line for line in text.splitlines() if line.startswith("{")]
    cell = json.loads(lines[-1]) if lines else {"seconds": 2 * limit + 60, "peak": 0, "baseline": 0}
    cell |= {"operator": operator, "n": n, "device": device, "data": data, "dtype": dtype}
    return {**cell, "status": reason} if reason else cell


def collect(cells: list[Cell], path: Path, asked: argparse.Namespace) -> None:
    """Run the cells that are missing, each operator until it no longer finishes."""
    for operator in asked.operators:
        for n in asked.samples:
            wanted = (operator, n, asked.device, asked.data, asked.dtype)
            cell = next((c for c in cells if tuple(c[key] for key in IDENTITY) == wanted), None)
            if cell is None:
                cell = measure(operator, n, asked.device, asked.data, asked.dtype, asked.limit)
                cells.append(cell)
                write_text(path, "".join(json.dumps(entry) + "\n" for entry in cells))
                print(" | ".join(map(str, row(cell).values())), flush=True)
            if cell["status"] != "converged":
                break


def series_of(cell: Cell) -> str:
    """Return the operator together with the settings that distinguish its series."""
    parts = [NAMES.get(cell["operator"]) or str(cell["operator"])]
    if cell["operator"] == SHARDED:
        parts.append(f"{PROCESSES} processes")
    if cell["device"] != "cpu":
        parts.append(cell["device"])
    elif cell["dtype"] != "auto":
        parts.append(cell["dtype"])
    if cell.get("threads", 1) > 1:
        parts.append(f"{cell['threads']} threads")
    return ", ".join(parts)


def row(cell: Cell) -> Cell:
    """Return a line of the table."""
    known = "model_bytes" in cell
    return {
        "operator": series_of(cell),
        "n": cell["n"],
        "seconds": round(cell["seconds"], 2),
        "gradient, ms": round(1e3 * cell["gradient"], 2) if "gradient" in cell else "",
        "model": in_flops(cell["model_flops"]) if known else "",
        "Gflop/s": round(cell["model_flops"] / cell["gradient"] / 1e9, 1) if known else "",
        "memory": in_bytes(cell["peak"] - cell["baseline"]),
        "model's memory": in_bytes(cell["model_bytes"]) if known else "",
        "J": round(cell["objective"], 4) if "objective" in cell else "",
        "ended": cell["status"],
    }


def draw(cells: Sequence[Cell], out: Path) -> None:
    """Draw time and memory against n: one colour per operator, dashes for a GPU, hollow marks for unfinished cells."""
    series: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: cell["n"]):
        series.setdefault(series_of(cell), []).append(cell)
    with style() as plt:
        figure, (time_axes, memory_axes) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
        operators = list(dict.fromkeys(points[0]["operator"] for points in series.values()))
        for name, points in series.items():
            i = operators.index(points[0]["operator"])
            colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
            line = "-" if points[0]["operator"] == SHARDED or "," not in name else "--" if "cuda" in name else ":"
            for axes, value in ((time_axes, _seconds), (memory_axes, _memory)):
                done = [cell for cell in points if cell["status"] == "converged"]
                rest = [cell for cell in points if cell["status"] != "converged" and value(cell) > 0]
                xs, ys = [cell["n"] for cell in done], list(map(value, done))
                axes.plot(xs, ys, marker=marker, color=colour, linestyle=line, label=name)
                axes.scatter([c["n"] for c in rest], list(map(value, rest)), marker=marker, edgecolors=colour, c="none")
        for axes, label in ((time_axes, "seconds from samples to codes"), (memory_axes, "memory, MB")):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("samples")
            axes.set_ylabel(label)
        figure.legend(*time_axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save_figure(figure, out, "scaling")


def _seconds(cell: Cell) -> float:
    return float(cell["seconds"])


def _memory(cell: Cell) -> float:
    return float(cell["peak"] - cell["baseline"]) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", default=[KERNEL_PCA, *grams.NAMES])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", choices=("images", "structured"), default="images")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES, help="numbers of samples, ascending")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a fit")
    parser.add_argument("--out", type=Path, default=Path("results/scaling"))
    parser.add_argument("--figure", action="store_true", help="run nothing")
    asked = parser.parse_args()
    path = asked.out / "cells.jsonl"
    cells = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if not asked.figure:
        collect(cells, path, asked)
    if not cells:
        sys.exit(f"no cells in {path}")
    order = sorted(cells, key=lambda cell: (cell["device"], cell["operator"], cell["n"]))
    for made in save_table([row(cell) for cell in order], asked.out, "scaling", TITLE):
        print(made)
    draw(cells, asked.out)


if __name__ == "__main__":
    main()
