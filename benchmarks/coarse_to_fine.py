"""Two layers from coarse to fine: fit to some samples, encode the others, continue with all; against one fit to all.

python -m benchmarks coarse_to_fine

n = 3,000, d = 50, equal weights, to 1e-4; the structured set and Gaussian noise.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.kernel_pca import samples
from drkm import ConstrDRKM

N, D, PARTS = 3000, 50, (300, 1000)
SIZES = (10, 5)
OPTIONS: dict[str, Any] = {"eta": 1.0, "tol": 1e-4, "device": "cpu"}
#: tolerance of the fit to some samples
LOOSE = 1e-3


def main() -> None:
    warnings.simplefilter("ignore")
    print("| samples | first fitted | evaluations with these | with all | J |")
    print("|---|---:|---:|---:|---:|")
    for name, X in (("structured", samples(N, D)), ("Gaussian noise", np.random.RandomState(0).randn(N, D))):
        whole = ConstrDRKM(SIZES, **OPTIONS).fit(X)
        print(f"| {name} | – | – | {whole.fitted_.result.n_evaluations} | {whole.objective_:.1f} |", flush=True)
        for part in PARTS:
            some = ConstrDRKM(SIZES, **{**OPTIONS, "tol": LOOSE}).fit(X[:part])
            codes = some.transform(X)
            codes[:part] = some.codes_
            model = ConstrDRKM(SIZES, init=codes, **OPTIONS).fit(X)
            counts = [fit.fitted_.result.n_evaluations for fit in (some, model)]
            print(f"| {name} | {part} | {counts[0]} | {counts[1]} | {model.objective_:.1f} |", flush=True)


if __name__ == "__main__":
    main()
