"""The result of a selection: a table of candidates, the best one, and its expected error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drkm.estimator import ConstrDRKM
from drkm.selection.grid import describe
from drkm.training.parameters import array
from drkm.wording import markdown_table

#: parameters in which candidates of one curve differ
COUNTED = ("keep", "components", "n_components", "shrink")


@dataclass(frozen=True)
class Expected:
    """The expected error of a candidate, from draws of noise that were not used to choose it.

    Attributes
    ----------
    error : float
        Mean squared error per entry after denoising.
    deviation : float
        Its standard error. If the noise was estimated, this includes the error of the estimate, a tenth of the level.
    noise_left : float
        The error relative to the variance of the noise.
    sure : float
        How often the candidate, or one with a risk larger by at most a fiftieth, is the best on resampled samples.
    noise_given : bool
        Whether the noise was given rather than estimated from the samples.
    """

    error: float
    deviation: float
    noise_left: float
    sure: float
    noise_given: bool

    def describe(self) -> str:
        """Return a one-sentence description."""
        source = "given" if self.noise_given else "estimated"
        return (
            f"expected mean squared error {self.error:.4g} ± {self.deviation:.2g} per entry, "
            f"{self.noise_left:.0%} of the noise, which was {source}; "
            f"the choice is as good as the best in {self.sure:.0%} of redraws"
        )


def spectra_of(model: ConstrDRKM) -> list[np.ndarray]:
    """Return the eigenvalues of each layer of a model, copied from the GPU if they are there."""
    return [array("eigenvalues_", values).numpy(force=True) for values in model.eigenvalues_]


@dataclass
class Selection:
    """The result of `drkm.select`.

    Attributes
    ----------
    table : list of dict
        One row per candidate, in the order of the grid: `params`, `criterion` (lower is better), `error` (its standard
        error relative to the best), `reconstruction`, `n_components`, `seconds`, `converged`. Without a grid,
        `reconstruction` and `seconds` are NaN. A candidate that could not be fitted to the data has NaN for all of
        these numbers and the reason as `failure`, which is None for the others.
    best_index : int
        Row with the smallest criterion.
    best_params : dict
        The parameters of that candidate, with the keys of the grid.
    best_estimator : ConstrDRKM or None
        That candidate, fitted to all samples.
    components : list of (layer, index) or None
        The components that the candidate keeps, for `denoise`.
    noise : float
        Standard deviation of the noise, given or estimated; the root mean square if there are several.
    criterion : str
    spectra : list of arrays
        Eigenvalues of each layer of that model; empty if it was not fitted.
    expected : Expected or None
        Expected error after denoising with that candidate; only without a grid.
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
        """The parameters of the candidate with the smallest criterion."""
        return self.table[self.best_index]["params"]

    def denoise(self, X: Any) -> Any:
        """Denoise the rows of X with the chosen model and the chosen components."""
        if self.best_estimator is None:
            raise ValueError("refit: the chosen model was not fitted, call select with refit=True")
        return self.best_estimator.denoise(X, components=self.components)

    def to_markdown(self, rows: int = 10) -> str:
        """Return the best candidates as a table."""
        best = sorted(self._fitted_rows(), key=lambda row: row["criterion"])[:rows]
        columns = {"criterion": self.criterion, "error": "±", "reconstruction": "reconstruction"}
        if all(np.isnan(row["reconstruction"]) for row in best):
            del columns["reconstruction"]
        lines = [
            [describe(row["params"]), str(row["n_components"]), *(f"{row[name]:.4g}" for name in columns)]
            for row in best
        ]
        return markdown_table([["candidate", "components", *columns.values()], *lines])

    def _fitted_rows(self) -> list[dict[str, Any]]:
        return [row for row in self.table if row["failure"] is None]

    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Return (number of components, criterion) of candidates that differ only in these, by shared parameters."""
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
