"""The run behind one cell of Table 1: a curve at one noise level, denoised by every method."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from drkm.experiments.denoising import _problems as problems
from drkm.experiments.denoising._methods import METHODS, Outcome
from drkm.experiments.denoising._problems import errors, rounded
from drkm.experiments.denoising._protocol import MEASURES, VARIANTS, Candidate, best, candidates
from drkm.machine.threads import one_thread


def run_cell(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the errors of all methods, and those of the paper's two models by every definition of the error."""
    problem, sizes = problems.problem_of(parameters, seed)
    with one_thread():
        estimate = problems.noise_of(problem)
        outcomes = {name: method(problem, sizes, estimate) for name, method in METHODS.items()}
        protocol = candidates(problem, sizes.protocol)
        for label, name in ((problems.PAPER_KPCA, "kernel PCA"), (problems.PAPER_DEEP, "deep")):
            chosen = best(protocol, name, problems.FIRST_MEASURE)
            outcomes[label] = Outcome(chosen.points, f"σ²={_widths(chosen)}")
        return {
            "estimated noise": rounded(estimate),
            "errors": [
                {"method": name, "chosen": outcomes[name].chosen, **errors(problem, outcomes[name].points)}
                for name in problems.ORDER
            ],
            "protocol": _protocol_errors(protocol),
        }


def _protocol_errors(protocol: list[Candidate]) -> list[dict[str, Any]]:
    rows = []
    for (normalized, steps), measure in itertools.product(VARIANTS, MEASURES):
        shallow, deep = (
            best(protocol, name, measure, normalized=normalized, steps=steps) for name in ("kernel PCA", "deep")
        )
        rows.append(
            {
                "β": "projection" if normalized else "as published",
                "steps": steps or "converged",
                "measure": measure,
                "kernel PCA": rounded(shallow.training[measure]),
                "deep": rounded(deep.training[measure]),
                "kernel PCA σ²": _widths(shallow),
                "deep σ²": _widths(deep),
            }
        )
    return rows


def _widths(candidate: Candidate) -> str:
    return " / ".join(width if isinstance(width, str) else f"{width:g}" for width in candidate.bandwidths)
