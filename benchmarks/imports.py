"""The cost of starting: python -m benchmarks imports.

`import drkm` compared with `import torch`; a process that fits a kernel PCA and transforms its samples; and one that
loads a fitted kernel PCA and transforms one point: with ours, with ours as `to_numpy` writes it, and with
scikit-learn's. The minimum for an estimator is `import sklearn.base`, and for one on torch `import torch,
sklearn.base`. Processor seconds, the least of several processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REPEATS, SAMPLES, FEATURES, COMPONENTS = 7, 1000, 30, 10
FIT = "import numpy as np; from {module} import KernelPCA; X = np.load('samples.npy'); "
FIT += "KernelPCA({count}, kernel='rbf').fit(X).transform(X)"
LOADING, FITTING = "scikit-learn: load, transform", "scikit-learn: fit, transform"
CODE = {
    "import numpy": "import numpy",
    "import torch": "import torch",
    "import torch, then drkm": "import torch, drkm",
    "import sklearn.base": "import sklearn.base",
    "import torch, sklearn.base": "import torch, sklearn.base",
    "sklearn.decomposition": "from sklearn.decomposition import KernelPCA",
    FITTING: FIT.replace("{module}", "sklearn.decomposition"),
    "KernelPCA: fit, transform": FIT.replace("{module}", "drkm"),
    LOADING: "import joblib, numpy as np; joblib.load('rival').transform(np.ones((1, {d})))",
    "KernelPCA: load, transform": "import drkm, numpy as np; drkm.load('own').transform(np.ones((1, {d})))",
    "KernelPCA: load, transform many": ("import drkm, numpy as np; drkm.load('own').transform(np.ones((1000, {d})))"),
    "ConstrDRKM: load, transform": "import drkm, numpy as np; drkm.load('layer').transform(np.ones((1, {d})))",
    "KernelPCA.to_numpy: load, transform": (
        "import drkm, numpy as np; drkm.load('served').transform(np.ones((1, {d})))"
    ),
    "ConstrDRKM.to_numpy: load, transform": (
        "import drkm, numpy as np; drkm.load('layer.served').transform(np.ones((1, {d})))"
    ),
    "torch.export: load, call": (
        "import torch; torch.export.load('exported.pt2').module()(torch.ones((1, {d}), dtype=torch.float64))"
    ),
}


def write_models(folder: Path) -> None:
    import joblib
    import torch
    from sklearn.decomposition import KernelPCA as Theirs

    from drkm import ConstrDRKM, KernelPCA

    X = np.random.RandomState(0).randn(SAMPLES, FEATURES)
    np.save(folder / "samples.npy", X)
    joblib.dump(Theirs(COMPONENTS, kernel="rbf").fit(X), folder / "rival")
    own = KernelPCA(COMPONENTS, kernel="rbf").fit(X)
    own.save(folder / "own")
    own.to_numpy().save(folder / "served")
    rows = ({0: torch.export.Dim("rows")},)
    torch.export.save(
        torch.export.export(own.to_torch(), (torch.from_numpy(X[:8]),), dynamic_shapes=rows), folder / "exported.pt2"
    )
    layer = ConstrDRKM(COMPONENTS, center=True).fit(X)
    layer.save(folder / "layer")
    layer.to_numpy().save(folder / "layer.served")


def seconds(code: str, folder: Path) -> float:
    """Return the processor time of a process that runs this code."""
    started = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], cwd=folder)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise RuntimeError(f"{code} ended with {started.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    least = dict.fromkeys(CODE, float("inf"))
    with tempfile.TemporaryDirectory() as name:
        write_models(Path(name))
        for _ in range(REPEATS):
            for what, code in CODE.items():
                words = code.format(d=FEATURES, count=COMPONENTS)
                least[what] = min(least[what], seconds(words, Path(name)))
    print("| process | s of the processor | / scikit-learn |\n|---|---:|---:|")
    for what, used in least.items():
        rival = least[FITTING if "fit," in what else LOADING]
        print(f"| {what} | {used:.2f} | {used / rival:.2f} |")


if __name__ == "__main__":
    main()
