"""A sweep for tests to interrupt: python sweep_probes.py STORE --runs 500."""

import argparse
import os
import time

from drkm.runs.configuration import Configuration
from drkm.runs.runner import sweep
from drkm.runs.store import Store


def probes(count, sleep):
    return [Configuration("probe", {"sleep": sleep, "rounds": 5}, seed) for seed in range(count)]


def ends(group):
    """Whether all processes of a group end within a few seconds: the last is a helper of multiprocessing."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--sleep", type=float, default=0.0)
    options = parser.parse_args()
    with Store(options.store) as store:
        sweep(probes(options.runs, options.sleep), store, jobs=2, retry_failed=True)


if __name__ == "__main__":
    main()
