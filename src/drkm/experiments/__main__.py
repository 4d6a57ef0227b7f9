"""Run experiments by name: python -m drkm.experiments NAME [NAME ...]."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from drkm.experiments import NAMES, SCALES, by_name


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run the experiments and say what was written."""
    parser = argparse.ArgumentParser(prog="python -m drkm.experiments", description="Tables and figures of the paper.")
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--scale", choices=SCALES, default="quick", help="quick (about a minute) or paper")
    parser.add_argument("--out", default="results", help="folder for figures and tables (default: results)")
    parser.add_argument("--seed", type=int, default=2, help="seed of the data (default: 2)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes, -1 for all processors (default)")
    parser.add_argument("--points", type=int, help="table1: training points, instead of those of the scale")
    options = parser.parse_args(arguments)
    for name in options.names:
        more = {"points": options.points} if name == "table1" else {}
        for path in by_name(name)(options.scale, options.out, seed=options.seed, n_jobs=options.jobs, **more):
            print(path)


if __name__ == "__main__":
    main()
