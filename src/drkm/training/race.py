"""Several starts, of which the best is kept: how far from the first the next one begins, and when one is given up."""

from __future__ import annotations

from collections.abc import Sequence

from drkm.solvers import Result, Status
from drkm.training.starts import FAR, NEAR

#: Starts are compared when their stationarity first is this: after a third of the evaluations, when their order is
#: nearly that in which they end.
HALFWAY = 3e-3
#: So many random starts are near and far by turns; then the length that did better is preferred,
BY_TURNS = 4
#: and every so many starts the other one is tried.
TRY_OTHER = 4


class Race:
    """What the starts so far say about the next one.

    It is a function of their results alone, so that a fit that was killed goes on as it would have.
    """

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._lengths: list[float] = []

    @property
    def best(self) -> Result | None:
        """The result of lowest energy."""
        return min(self.results, key=lambda result: result.objective, default=None)

    @property
    def objectives(self) -> list[float | None]:
        """The energies of all starts, None for those that were given up."""
        return [None if result.status is Status.GIVEN_UP else result.objective for result in self.results]

    @property
    def length(self) -> float:
        """The step from the first start to the next one: 0 for the first itself, and for it after gradient steps."""
        number = len(self.results)
        if number <= 1:
            return 0.0
        if number <= 1 + BY_TURNS:
            return FAR if number % 2 else NEAR
        near, far = (
            min(_halfway(result.history) for result, own in self._pairs() if own == length) for length in (NEAR, FAR)
        )
        return NEAR if (near < far) != (number % TRY_OTHER == 0) else FAR

    def add(self, result: Result) -> None:
        """Take the result of the next start."""
        self._lengths.append(self.length)
        self.results.append(result)

    def is_behind(self, history: Sequence[dict[str, float]]) -> bool:
        """Whether a run has come halfway with a higher energy than the best one had there."""
        if self.best is None or history[-1]["stationarity"] > HALFWAY:
            return False
        return _halfway(history) >= _halfway(self.best.history)

    def _pairs(self) -> zip[tuple[Result, float]]:
        return zip(self.results, self._lengths, strict=True)


def _halfway(history: Sequence[dict[str, float]]) -> float:
    """Return the energy at the first point that was nearly stationary, or at the last."""
    return next((entry["objective"] for entry in history if entry["stationarity"] <= HALFWAY), history[-1]["objective"])
