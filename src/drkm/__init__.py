"""Kernel PCA and deep restricted kernel machines with orthogonality constraints."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from drkm._version import __version__

if TYPE_CHECKING:
    from drkm.anomalies import AnomalyDetector
    from drkm.estimator import ConstrDRKM
    from drkm.imputation import Imputer
    from drkm.kernel_pca import KernelPCA
    from drkm.loading import load
    from drkm.selection import denoise, select

__all__ = ["AnomalyDetector", "ConstrDRKM", "Imputer", "KernelPCA", "__version__", "denoise", "load", "select"]

#: Names are imported on first use: importing scikit-learn eagerly would triple the time of `import drkm`.
_HOMES = {
    "AnomalyDetector": "drkm.anomalies",
    "ConstrDRKM": "drkm.estimator",
    "Imputer": "drkm.imputation",
    "KernelPCA": "drkm.kernel_pca",
    "denoise": "drkm.selection",
    "load": "drkm.loading",
    "select": "drkm.selection",
}
_PACKAGES = (
    *("anomalies", "baselines", "datasets", "experiments", "explorer", "gram", "imputation", "kernels", "loading"),
    *("metrics", "plotting", "runs", "selection", "serving", "solvers", "strange_data"),
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"drkm.{name}")
    raise AttributeError(f"module 'drkm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
