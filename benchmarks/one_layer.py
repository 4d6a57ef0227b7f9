"""One layer against scikit-learn's KernelPCA, n = 4000, 15 components, from the samples to the codes.

python -m benchmarks one_layer
"""

from __future__ import annotations

import time

import numpy as np
import torch
from sklearn.decomposition import KernelPCA

from benchmarks.problems import structured
from drkm import ConstrDRKM
from drkm.kernels import RBF

SIGMA2, COMPONENTS, REPEATS = 50.0, 15, 3


def main() -> None:
    torch.set_num_threads(1)
    X = structured(4000).numpy()
    model = ConstrDRKM(COMPONENTS, kernel=RBF(SIGMA2), center=True)
    rivals = {
        solver: KernelPCA(COMPONENTS, kernel="rbf", gamma=0.5 / SIGMA2, eigen_solver=solver, random_state=0)
        for solver in ("arpack", "randomized", "dense")
    }
    times: dict[str, list[float]] = {}
    for repeat in range(REPEATS):
        for name, estimator in {"drkm": model, **rivals}.items():
            if name == "dense" and repeat:
                continue
            clock = time.perf_counter()
            estimator.fit(X)
            times.setdefault(name, []).append(time.perf_counter() - clock)
    ours = min(times["drkm"])
    print("| solver | time / ours | largest relative difference of an eigenvalue |")
    print("|---|---:|---:|")
    print(f"| **drkm** | 1 ({ours:.2f} s) | |")
    for name, rival in rivals.items():
        difference = np.max(np.abs(model.eigenvalues_[0] / rival.eigenvalues_ - 1))
        print(f"| KernelPCA, {name} | {min(times[name]) / ours:.1f} | {difference:.0e} |", flush=True)


if __name__ == "__main__":
    main()
