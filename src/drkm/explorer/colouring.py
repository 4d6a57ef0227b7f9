"""Labels of samples by which the map is coloured: classes or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.explorer.packing import packed, quantised
from drkm.wording import as_label

#: numbers with at most this many different values are classes
FEW = 20
#: maximum number of classes with a colour and a shape of their own; rarer ones are merged
MOST_CLASSES = 35
OTHERS = "all others"


def labelled(name: str, entries: Sequence[Any]) -> dict[str, Any]:
    """Return entries in the page's format: classes with their names, or numbers."""
    numbers = _numbers(entries)
    if numbers is not None and len(np.unique(numbers)) > FEW:
        return {"name": str(name), "kind": "numbers", "values": quantised(numbers)}
    texts = [str(entry) for entry in entries] if numbers is None else [as_label(number) for number in numbers]
    classes = _ordered(texts, numbers)
    place = {text: index for index, text in enumerate(classes)}
    last = len(classes)
    values = np.array([place.get(text, last) for text in texts], dtype=np.uint8)
    names = [*classes, OTHERS] if (values == last).any() else classes
    return {"name": str(name), "kind": "classes", "classes": names, "values": packed(values)}


def _numbers(entries: Sequence[Any]) -> np.ndarray | None:
    """Return entries as numbers if all of them are."""
    try:
        return np.array(entries, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _ordered(texts: list[str], numbers: np.ndarray | None) -> list[str]:
    """Return the most frequent classes, in the order of their numbers or names."""
    found, first, counts = np.unique(np.array(texts, dtype=object), return_index=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[: MOST_CLASSES - (len(found) > MOST_CLASSES)]
    order = numbers[first[kept]] if numbers is not None else found[kept]
    return [str(found[kept][index]) for index in np.argsort(order, kind="stable")]
