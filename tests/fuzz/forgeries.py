"""Forged files: contents with right checksums and wrong parts, the same for the same seed."""

import copy
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

DEEP: Any = 1
for _ in range(300):
    DEEP = [DEEP]
ODD_VALUES = (None, True, False, "", "text", "auto", [], [1], {}, {"a": 1}, DEEP, "x" * 10_000)
ODD_NUMBERS = (0, -1, 1, 3, 10**9, 2**31, 2**63, 10**25, 10**400, -0.5, 1e-300, 1e300, math.nan, math.inf, -math.inf)
ODD_DTYPES = (torch.float16, torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64, torch.bfloat16)


#: parts that are a number or null: both are valid, and nothing else in a file contradicts them
OPTIONAL_NUMBERS = ("shrink",)


@dataclass
class Forgery:
    """The content of a file, what was done to it, and whether all parts still have valid types and may be read."""

    tensors: dict[str, Tensor]
    header: dict[str, Any]
    what: str = ""
    plausible: bool = False


def forgeries(tensors: dict[str, Tensor], header: dict[str, Any], count: int, seed: int = 0) -> Iterator[Forgery]:
    """Yield contents with one forged part each."""
    source = random.Random(seed)
    for _ in range(count):
        made = Forgery(dict(tensors), copy.deepcopy(header))
        if source.random() < 0.6:
            _forge_header(made, source)
        else:
            _forge_tensor(made, source)
        yield made


def forged_objects(header: dict[str, Any], count: int, seed: int = 0) -> Iterator[Forgery]:
    """Yield JSON objects with one forged part each."""
    source = random.Random(seed)
    for _ in range(count):
        made = Forgery({}, copy.deepcopy(header))
        _forge_header(made, source)
        yield made


def _forge_header(made: Forgery, source: random.Random) -> None:
    """Walk down to a part, and replace, remove, rename or repeat it."""
    place, name = made.header, "header"
    while True:
        key = source.choice(list(place)) if isinstance(place, dict) else source.randrange(len(place))
        name += f".{key}"
        if not (isinstance(place[key], dict | list) and place[key]) or source.random() < 0.15:
            break
        place = place[key]
    way = source.choice(("replace", "replace", "replace", "remove", "rename", "repeat"))
    if way == "replace":
        old = place[key]
        number = type(old) in (int, float) and source.random() < 0.7
        place[key] = source.choice(ODD_NUMBERS if number else (*ODD_VALUES, *ODD_NUMBERS))
        same = _kind(old) == _kind(place[key]) and _kind(old) != "group"
        made.plausible = same or (key in OPTIONAL_NUMBERS and _kind(place[key]) == "number")
        made.what = f"{name} = {repr(place[key])[:40]}"
        return
    made.what = f"{way} {name}"
    if isinstance(place, list):
        entry = place.pop(key)
        place[key:key] = [entry] * (0 if way == "remove" else 2)
    else:
        entry = place.pop(key)
        place |= {} if way == "remove" else {key + "x" if way == "rename" else f"{key}0": entry}


def _kind(value: Any) -> str:
    """Return the JSON type of a value; numbers that are not finite have none."""
    if isinstance(value, list | dict):
        return "group"
    if type(value) in (int, float):
        return "number" if abs(value) < math.inf else "none"
    return "choice" if value is None or isinstance(value, bool | str) else "none"


def _forge_tensor(made: Forgery, source: random.Random) -> None:
    """Remove, rename or exchange a tensor, or change its type, its shape or its numbers."""
    name, other = (source.choice(list(made.tensors)) for _ in range(2))
    old = made.tensors[name]
    way = source.choice(("remove", "rename", "exchange", "type", "shape", "shape", "spoil", "spoil", "numbers"))
    made.what = f"{way} {name}"
    if way == "remove":
        del made.tensors[name]
    elif way == "rename":
        made.tensors[name + source.choice(("x", "0", "."))] = made.tensors.pop(name)
    elif way == "exchange":
        made.tensors[name], made.tensors[other] = made.tensors[other], old
        made.plausible = made.tensors[name].shape == old.shape and made.tensors[name].dtype == old.dtype
    elif way == "type":
        made.tensors[name] = old.to(source.choice([dtype for dtype in ODD_DTYPES if dtype != old.dtype]))
    elif way == "shape":
        shapes = (old[:-1], torch.cat([old, old[:1]]), old.flatten()[:0], old[None], old.flatten()[:1].reshape(()))
        made.tensors[name] = source.choice((*shapes, *([] if old.shape == old.T.shape else [old.T])))
    elif way == "spoil":
        made.tensors[name] = _with_entry(old, source.choice((math.nan, math.inf, -math.inf)), source)
    else:
        made.tensors[name] = source.choice((old * 1e30, old * 0, -old, _with_entry(old, 1e30, source)))
        made.plausible = True


def _with_entry(tensor: Tensor, value: float, source: random.Random) -> Tensor:
    changed = tensor.clone()
    changed.view(-1)[source.randrange(changed.numel())] = value
    return changed
