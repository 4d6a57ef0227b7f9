"""Several starts, of which the best is kept: how far from the first the next one begins, and when to abandon one."""

from __future__ import annotations

from collections.abc import Sequence

from drkm.solvers import Result, Status
from drkm.training.starts import FAR, NEAR

#: Starts are compared when their stationarity first reaches this value: after a third of the evaluations, when their
#: ranking is nearly the final one.
HALFWAY = 3e-3
#: The first random starts, this many, alternate between near and far; then the better length is preferred,
BY_TURNS = 4
#: but one start in this many tries the other.
TRY_OTHER = 4


class Race:
    """Chooses the next start from the results so far.

    It depends only on these results, so that a fit that was killed continues as it would have.
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
        """The energies of all starts, None for abandoned ones."""
        return [None if result.status is Status.ABANDONED else result.objective for result in self.results]

    @property
    def length(self) -> float:
        """Length of the step from the first start to the next; 0 for the first two, which begin at the first start."""
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
        """Add the result of the next start."""
        self._lengths.append(self.length)
        self.results.append(result)

    def is_behind(self, history: Sequence[dict[str, float]]) -> bool:
        """Whether a run is halfway with a higher energy than the best one had there."""
        if self.best is None or history[-1]["stationarity"] > HALFWAY:
            return False
        return _halfway(history) >= _halfway(self.best.history)

    def _pairs(self) -> zip[tuple[Result, float]]:
        return zip(self.results, self._lengths, strict=True)


def _halfway(history: Sequence[dict[str, float]]) -> float:
    """Return the energy at the first point that was nearly stationary, or at the last."""
    return next((entry["objective"] for entry in history if entry["stationarity"] <= HALFWAY), history[-1]["objective"])
