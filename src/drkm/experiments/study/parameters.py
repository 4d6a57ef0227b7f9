"""The parameters of models that a variant of a study can set, and the runs that they affect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drkm.experiments.settings import COUNT, COUNTS, NUMBER, NUMBERS, Kind


@dataclass(frozen=True)
class Parameter:
    """A parameter of some families of models; the family "" is that of tasks that train several."""

    kind: Kind
    families: tuple[str, ...]
    #: it is set only in runs with at least this many layers, if it has an entry per layer
    from_layers: int = 0
    #: options by which a group of runs fixes its value
    own: tuple[str, ...] = ()


WEIGHTS = Kind(lambda text: "auto" if text == "auto" else NUMBERS.read(text), "auto, or one positive number per layer")
PARAMETERS = {
    "beta": Parameter(NUMBER, ("beta-vae", "")),
    "eta": Parameter(WEIGHTS, ("drkm", ""), from_layers=2, own=("deep_eta",)),
    "gamma": Parameter(NUMBER, ("paper",)),
    "layers": Parameter(COUNTS, ("drkm", "paper", ""), from_layers=1),
    "max_steps": Parameter(COUNT, ("beta-vae",)),
    "sigma2": Parameter(NUMBER, ("paper",)),
    "width": Parameter(NUMBER, ("drkm",), own=("width",)),
}


def changed(model: Mapping[str, Any], own: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a run with the changes of a variant, except those in `own`, which its group sets."""
    return {**model, **{name: value for name, value in changes.items() if _is_set(name, value, model, own)}}


def _is_set(name: str, value: Any, model: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    known, family, depth = PARAMETERS[name], model.get("family", ""), len(model.get("layers", ()))
    if family not in known.families or any(option in own for option in known.own) or (not family and name not in model):
        return False
    return not known.from_layers or (depth >= known.from_layers and (value == "auto" or len(value) == depth))
