"""Figure 2: a square and a spiral, denoised by one component at a time."""

from __future__ import annotations

from pathlib import Path

from drkm.experiments._panels import run_components


def run(
    scale: str = "quick",
    out: str | Path = "results",
    *,
    seed: int = 2,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> list[Path]:
    """Draw the figure into `out`/figure2 and return the files; parameters as in `table1.run`."""
    return run_components("figure2", "square_spiral", scale, out, seed, verbose)
