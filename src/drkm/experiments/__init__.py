"""The tables and figures of the paper, one module each: those about denoising and those about disentanglement.

An experiment is a module with `TITLE`, `configurations(scale)`, which returns its runs, and `section(results, scale)`,
which returns what they show. `drkm.experiments.reproduce` runs them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

#: name of an experiment → its module
NAMES: dict[str, str] = {
    "table1": "drkm.experiments.denoising.table1",
    "figure1": "drkm.experiments.denoising.figure1",
    "figure2": "drkm.experiments.denoising.figure2",
    "figure3": "drkm.experiments.denoising.figure3",
    "digits": "drkm.experiments.denoising.digits",
    "components": "drkm.experiments.disentanglement.components",
    "layers": "drkm.experiments.disentanglement.layers",
    "training_points": "drkm.experiments.disentanglement.training_points",
    "hyperparameters": "drkm.experiments.disentanglement.hyperparameters",
    "gamma": "drkm.experiments.disentanglement.gamma",
    "table2": "drkm.experiments.disentanglement.table2",
    "variance": "drkm.experiments.disentanglement.variance",
    "sample_efficiency": "drkm.experiments.disentanglement.sample_efficiency",
    "deep_layer": "drkm.experiments.disentanglement.deep_layer",
    "stability": "drkm.experiments.disentanglement.stability",
}

#: names by which runs can be chosen: tasks, and families of models; written down here, because asking all experiments
#: for their runs takes seconds
CHOICES = (
    *("denoise-cell", "denoise-panels", "digits", "disentangle", "equal_time", "stability"),
    *("paper", "drkm", "beta-vae"),
)


def check_name(name: str) -> None:
    """Refuse a name that no experiment has."""
    if name not in NAMES:
        raise ValueError(f"experiment: unknown name {name!r}, allowed are {', '.join(NAMES)} and all")


def module_of(name: str) -> ModuleType:
    """Return the module of an experiment."""
    check_name(name)
    return importlib.import_module(NAMES[name])
