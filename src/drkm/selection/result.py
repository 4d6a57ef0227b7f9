"""What a selection found: a table of candidates, the best of them, and what it is expected to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drkm.estimator import ConstrDRKM
from drkm.selection.grid import describe

#: parameters by which candidates of one curve differ
COUNTED = ("keep", "components", "n_components", "shrink")


@dataclass(frozen=True)
class Expected:
    """What is expected of a candidate, from draws of noise that had no part in its choice.

    Attributes
    ----------
    error : float
        Mean squared error per entry after cleaning.
    deviation : float
        Its standard error; where the noise was estimated, that of the estimate included, a tenth of the level.
    noise_left : float
        The same error relative to the variance of the noise.
    sure : float
        How often the candidate, or one that is worse by a fiftieth at most, is the best on samples drawn again from
        these.
    noise_given : bool
        Whether the noise was given, or estimated from the samples.
    """

    error: float
    deviation: float
    noise_left: float
    sure: float
    noise_given: bool

    def describe(self) -> str:
        """Return one sentence."""
        source = "given" if self.noise_given else "estimated"
        return (
            f"expected mean squared error {self.error:.4g} ± {self.deviation:.2g} per entry, "
            f"{self.noise_left:.0%} of the noise, which was {source}; "
            f"the choice is as good as the best in {self.sure:.0%} of redraws"
        )


@dataclass
class Selection:
    """What `select` found.

    Attributes
    ----------
    table : list of dict
        One row a candidate, in the order of the grid: `params`, `criterion` (lower is better), `error` (its
        standard error relative to the best), `reconstruction`, `n_components`, `seconds`, `converged`. A candidate
        that the data refused has NaN for all of these numbers and the reason as `failure`, None for the others.
    best_index : int
        Row of the smallest criterion.
    best_params : dict
        The candidate in that row, with the keys of the grid.
    best_estimator : ConstrDRKM or None
        That candidate fitted on all samples.
    components : list of (layer, index) or None
        The components that the candidate keeps, for `denoise`.
    noise : float
        The standard deviation of the noise, given or estimated; the root of the mean square of several.
    criterion : str
    spectra : list of arrays
        Eigenvalues of each layer of that model; empty where it was not fitted.
    expected : Expected or None
        What cleaning with that candidate is expected to leave, for a choice without a grid.
    """

    table: list[dict[str, Any]] = field(repr=False)
    best_index: int
    best_estimator: ConstrDRKM | None
    components: Any
    noise: float
    criterion: str
    spectra: list[np.ndarray] = field(default_factory=list, repr=False)
    expected: Expected | None = None

    @property
    def best_params(self) -> dict[str, Any]:
        """The candidate of smallest criterion."""
        return self.table[self.best_index]["params"]

    def denoise(self, X: Any) -> Any:
        """Return the rows of X denoised by the chosen model with the chosen components."""
        if self.best_estimator is None:
            raise ValueError("refit: the chosen model was not fitted, call select with refit=True")
        return self.best_estimator.denoise(X, components=self.components)

    def to_markdown(self, rows: int = 10) -> str:
        """Return the best candidates as a table."""
        best = sorted(self._fitted_rows(), key=lambda row: row["criterion"])[:rows]
        lines = [f"| candidate | components | {self.criterion} | ± | reconstruction |", "|---|---|---|---|---|"]
        for row in best:
            numbers = " | ".join(f"{row[name]:.4g}" for name in ("criterion", "error", "reconstruction"))
            lines.append(f"| {describe(row['params'])} | {row['n_components']} | {numbers} |")
        return "\n".join(lines)

    def _fitted_rows(self) -> list[dict[str, Any]]:
        return [row for row in self.table if row["failure"] is None]

    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Return (number of components, criterion) of candidates that differ in nothing else, by what they share."""
        out: dict[str, list[tuple[int, float]]] = {}
        for row in self._fitted_rows():
            shared = {k: v for k, v in row["params"].items() if k not in COUNTED}
            out.setdefault(describe(shared), []).append((row["n_components"], row["criterion"]))
        return out

    def plot(self, axes: Any = None) -> Any:
        """Draw the criterion against the number of components, and the eigenvalues of the chosen model's layers.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional

        Returns
        -------
        matplotlib.figure.Figure
        """
        from drkm.plotting import plot_selection

        return plot_selection(self, axes)
