"""Reads many damaged and forged models or checkpoints, within limits of time and memory, and prints the outcomes.

python tests/fuzz/model_files.py model|checkpoint COUNT SEED
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from forgeries import forgeries
from mutations import damaged_copies

from drkm import ConstrDRKM, KernelPCA, load
from drkm.files import container
from drkm.gram import Fourier, Nystroem
from drkm.inputs.preparation import Preparation
from drkm.kernels import Polynomial
from drkm.loading import load_prepared
from drkm.persistence import model_file
from drkm.solvers import Penalty
from drkm.training.checkpoint import Checkpoint
from drkm.training.checkpoint import slots as checkpoints

#: processor seconds that one file may take, and bytes that all of them may add to the memory of the process
SECONDS, MORE_MEMORY = 5, 300_000_000
X = np.random.RandomState(0).randn(30, 5)
NEW = np.random.RandomState(1).randn(4, 5)

MODELS: list[dict[str, Any]] = [
    {},
    {"dtype": "float32", "gram": Nystroem(10, deep=Fourier(20))},
    {"kernel": [Polynomial(3), "matern"], "axes": "varimax", "center": True},
]
COMPONENTS: list[dict[str, Any]] = [
    {"kernel": "rbf", "preimage": "ridge"},
    {"kernel": "rbf", "gram": Nystroem(10), "dtype": "float32", "preimage": "gradient"},
    {"kernel": Polynomial(3)},
]
#: options of a fit, and the number of iterations after which it is killed; with two starts, in the second one
FITS: list[tuple[dict[str, Any], int]] = [
    ({}, 4),
    ({"dtype": "float32", "n_init": 2}, 18),
    ({"solver": "trust-region"}, 4),
    ({"solver": "projected-gradient"}, 7),
    ({"solver": "augmented-lagrangian"}, 7),
    ({"solver": Penalty(inner=10), "init": "random", "learn_bandwidth": True}, 7),
    ({"learn_bandwidth": True}, 15),
]


class Stop(BaseException):
    """Stands for a kill, or for the end of the time limit of a file."""


@dataclass(frozen=True)
class Case:
    """A whole file, its kind and version, and a function that uses such a file and returns numbers and texts."""

    path: Path
    kind: str
    version: int
    use: Callable[[], Any]


def models(folder: Path) -> Iterator[Case]:
    """Return files of models."""
    for number, options in enumerate(MODELS):
        path = folder / f"model{number}"
        model = ConstrDRKM((3, 2), eta=1.0, random_state=0, max_iter=40, **options).fit(X)
        model.save(path, preparation=Preparation.standardizing(X, columns=tuple("abcde")))
        yield Case(path, model_file.KIND, model_file.VERSION, partial(use_model, path))

    for number, options in enumerate(COMPONENTS):
        path = folder / f"kernel_pca{number}"
        KernelPCA(3, random_state=0, **options).fit(X).save(path)
        yield Case(path, model_file.KIND, model_file.VERSION, partial(use_kernel_pca, path))


def use_kernel_pca(path: Path) -> Any:
    """Return results of a `KernelPCA`."""
    model = load(path)
    codes = model.transform(NEW)
    points = model.inverse_transform(codes[:1]) if model.preimage else codes
    return codes.tobytes(), model.eigenvalues_.tobytes(), points.tobytes()


def use_model(path: Path) -> Any:
    """Return results of a model and its preparation."""
    model, preparation = load_prepared(path)
    codes = model.transform(preparation.apply(NEW))
    return codes.tobytes(), model.codes_.tobytes(), model.denoise(NEW[:1]).tobytes(), model.summary()


def fits(folder: Path) -> Iterator[Case]:
    """Return files of fits that were killed."""
    for number, (options, iterations) in enumerate(FITS):
        path = folder / f"checkpoint{number}"
        answers = chain([False] * iterations, iter(_stop, None))
        try:
            fit(path, options, lambda entry, answers=answers: next(answers))
        except Stop:
            yield Case(path, checkpoints.KIND, checkpoints.VERSION, partial(use_checkpoint, path, options))


def use_checkpoint(path: Path, options: dict[str, Any]) -> Any:
    """Return the codes of a resumed fit."""
    return fit(path, options).codes_.tobytes()


def fit(path: Path, options: dict[str, Any], *callbacks: Callable[[Any], Any]) -> ConstrDRKM:
    """Fit a model with a checkpoint."""
    fixed = {"random_state": 0, "max_iter": 12, "tol": 1e-9, "checkpoint": Checkpoint(path, every=0)}
    return ConstrDRKM((3, 2), eta=1.0, **fixed, callbacks=callbacks, **options).fit(X)


def _stop(*_: Any) -> None:
    raise Stop


def changed(case: Case, count: int, seed: int) -> Iterator[tuple[str, str, bool]]:
    """Damage and forge the file of a case; yield the method, the change, and whether all its parts have valid types."""
    content = case.path.read_bytes()
    for number, copy in enumerate(damaged_copies(content, count, seed)):
        case.path.write_bytes(copy)
        yield "damaged", f"copy {number} of seed {seed}", False
    case.path.write_bytes(content)
    for forgery in forgeries(*container.read(case.path, case.kind, case.version), count, seed):
        container.write(case.path, forgery.tensors, forgery.header)
        yield "forged", forgery.what, forgery.plausible


def outcome(case: Case, whole: Any, plausible: bool) -> str:
    """Use the file and return the outcome, after a check that it is allowed."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        found = case.use()
    except (ValueError, OSError) as error:
        named = str(case.path) in str(error)
        if "\n" in str(error) or not (named or plausible):
            raise
        return "refused" if named else "refused later"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if found == whole:
        return "read as if whole"
    if not plausible:
        raise AssertionError("another result")
    return "another result of a part of its kind"


def main(kind: str, count: int, seed: int) -> None:
    """Print how often each outcome occurred."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _stop)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        cases = list({"model": models, "checkpoint": fits}[kind](Path(folder)))
        contents = [case.path.read_bytes() for case in cases]
        assert len(cases) == len({"model": MODELS + COMPONENTS, "checkpoint": FITS}[kind]), (
            "a fit ended before it was killed"
        )
        wholes = [case.use() for case in cases]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number, (case, content, whole) in enumerate(zip(cases, contents, wholes, strict=True)):
            case.path.write_bytes(content)
            share = count // len(cases) + (number < count % len(cases))
            for way, what, plausible in changed(case, share, seed * len(cases) + number):
                try:
                    outcomes[f"{way}, {outcome(case, whole, plausible)}"] += 1
                except (Exception, Stop) as error:
                    wrong.append(f"{case.path.name} {way}: {what}: {error!r}"[:300])
        more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        assert more < MORE_MEMORY, f"{more} more bytes of memory"
    print("\n".join(wrong[:50]))
    print(json.dumps(outcomes))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
