"""Subjects to test the explorer with: images, and a table in which every text is hostile."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_wine

from drkm import ConstrDRKM
from drkm.explorer import Subject
from drkm.inputs.preparation import Preparation

#: text that must remain plain text everywhere
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)> \"quoted\" & 'single' \u2028"


def digits(n: int = 120, **more) -> Subject:
    found = load_digits()
    X, labels = found.data[:n] / 16, found.target[:n]
    model = ConstrDRKM((6, 3)).fit(X)
    shown = Preparation(shape=(8, 8), white=1.0)
    return Subject(model, preparation=shown, title="digits", labels={"digit": labels.tolist()}, **more)


def wine(words: str = "wine", **more) -> Subject:
    found = load_wine()
    preparation = Preparation.standardizing(found.data)
    model = ConstrDRKM(5).fit(preparation.apply(found.data))
    return Subject(
        model,
        preparation=preparation,
        title=words,
        columns=[f"{words} {name}" for name in found.feature_names],
        names=[f"{words} {row}" for row in range(len(found.data))],
        labels={words: [f"{words} {found.target_names[label]}" for label in found.target]},
        **more,
    )


def new_digits(n: int = 40) -> Subject:
    known = digits()
    X = load_digits().data[120 : 120 + n] / 16
    X[0] = 1 - X[0]
    return Subject(known.model, np.array(X), known.preparation, "new digits")
