"""Run tests under the code paths that the linear algebra takes on other machines, one row per run.

    python tests/code_paths.py            tests that touch linear algebra; settings of different libraries share a run
    python tests/code_paths.py --quick    the part of them that fits into five minutes on two cores, one run per setting
    python tests/code_paths.py --whole    all tests, one run per setting

Settings are environment variables of each run, with one thread unless they say otherwise; one run per core is active,
in several processes where there are more cores than runs.
Inputs at other addresses and in other orders are tested by `test_same_bits.py`, which is among the tests. The exit
status is the number of runs that fail.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = [
    {"ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
    {"MKL_CBWR": "COMPATIBLE"},
    {"MKL_CBWR": "AVX2"},
    {"MKL_CBWR": "AVX2,STRICT"},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"OMP_NUM_THREADS": "1"},
    {"OMP_NUM_THREADS": "2"},
]
#: the same settings in fewer runs: each is read by one library, which does not know those of the others
SHARED = [
    {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "OPENBLAS_CORETYPE": "Prescott"},
    {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "OPENBLAS_CORETYPE": "Haswell"},
    {"MKL_CBWR": "AVX2,STRICT"},
    {"OMP_NUM_THREADS": "1"},
    {"OMP_NUM_THREADS": "2"},
]
QUICK = ["test_descent.py", "test_eigen.py", "test_preimage.py", "test_stiefel.py"]
LINEAR_ALGEBRA = [
    *QUICK,
    "gram",
    "kernels",
    "solvers",
    "test_approximate_models.py",
    "test_axes.py",
    "test_bad_input.py",
    "test_checkpoint.py",
    "test_coupling.py",
    "test_encoder.py",
    "test_energy.py",
    "test_estimator.py",
    "test_kernel_pca.py",
    "test_lanczos.py",
    "test_learning.py",
    "test_race.py",
    "test_same_bits.py",
    "test_selection.py",
    "test_shrinkage.py",
    "test_starts.py",
    "test_to_torch.py",
    "test_weights.py",
]
#: words in the names of slow tests among them, or of their files, which are about other matters: Triton's interpreter,
#: memory, threads, kills, clocks and texts
OTHER_MATTERS = ["test_fused", "test_split", "test_budget_measured", "keep_to_one_thread", "killed_at_random"]
OTHER_MATTERS += ["out_of_time", "summary", "schedule_ended"]


def run(setting: dict[str, str], tests: list[str], processes: int) -> bool:
    """Run tests under a setting, print its row and the failures, and return whether all passed."""
    clock = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "-rfE", *tests]
    command += ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **setting}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    counts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    closing = done.stdout.strip().rpartition("\n")[2]
    counts |= {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", closing) if word != "in"}
    name = ", ".join(f"{key}={value}" for key, value in setting.items())
    wrong = counts["failed"] + counts["error"]
    seconds = time.perf_counter() - clock
    print(f"| {name} | {counts['passed']} | {wrong} | {counts['skipped']} | {seconds:.0f} |", flush=True)
    passed = done.returncode == 0 and counts["passed"] > 0
    if not passed:
        print(done.stdout[-20000:], done.stderr[-2000:], file=sys.stderr, flush=True)
    return passed


def main() -> int:
    """Print a table of all settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quick", action="store_const", dest="tests", const=QUICK)
    how_much.add_argument("--whole", action="store_const", dest="tests", const=["."])
    chosen = parser.parse_args().tests
    tests = [str(Path("tests", name)) for name in chosen or LINEAR_ALGEBRA]
    if not chosen:
        tests += ["-k", f"not ({' or '.join(OTHER_MATTERS)})"]
    runs, cores = SETTINGS if chosen else SHARED, os.cpu_count() or 1
    print("| setting | passed | failed | skipped | seconds |\n|---|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(cores) as pool:
        each = partial(run, tests=tests, processes=math.ceil(cores / len(runs)))
        return sum(not passed for passed in pool.map(each, runs))


if __name__ == "__main__":
    sys.exit(main())
