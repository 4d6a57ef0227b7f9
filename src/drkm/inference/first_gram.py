"""K_1 of a fitted model, formed when it is first needed."""

from __future__ import annotations

from drkm.fitted import FittedModel
from drkm.gram import Gram
from drkm.problem.energy import Energy


class FirstGram:
    """The Gram operator of the first layer of a fitted model; pickles leave out what can be recomputed.

    Parameters
    ----------
    fitted : FittedModel
    formed : Gram, optional
        The uncentred operator, if a fit has already formed it.
    """

    def __init__(self, fitted: FittedModel, formed: Gram | None = None):
        self.fitted = fitted
        self._formed = formed

    def __getstate__(self) -> dict[str, object]:
        return {"fitted": self.fitted, "_formed": None}

    @property
    def uncentered(self) -> Gram:
        """K_1 itself."""
        if self._formed is None:
            self._formed = self.fitted.features or energy_of(self.fitted).first_uncentered
        return self._formed

    @property
    def centered(self) -> Gram:
        """K_1, centred if the model is."""
        return self.uncentered.centered() if self.fitted.center else self.uncentered

    def release(self) -> None:
        """Free the operator; it is formed again when it is needed."""
        self._formed = None


def energy_of(fitted: FittedModel) -> Energy:
    """Return the energy that a fitted model minimises."""
    return Energy(
        fitted.X, fitted.kernels, fitted.sizes, fitted.eta, fitted.strategy, fitted.center, first=fitted.features
    )
