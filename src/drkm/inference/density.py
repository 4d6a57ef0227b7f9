"""A density of the codes, from which new ones are drawn."""

from __future__ import annotations

from copy import copy

import numpy as np
from torch import Tensor

from drkm.distributed import collectives
from drkm.machine.layout import copied
from drkm.machine.threads import one_thread_everywhere

MAX_MIXTURE = 10
#: number of evenly spaced codes that the mixture is fitted to
MAX_SAMPLES = 5_000


class CodeDensity:
    """A Gaussian mixture of the codes of a model, chosen by the Bayesian information criterion."""

    def __init__(self, codes: Tensor):
        from sklearn.mixture import GaussianMixture

        chosen = collectives.spread_rows(codes, MAX_SAMPLES).double()
        # Codes are of order n^(-1/2), but the mixture's floor on variances expects numbers of order one.
        self.scale = float(chosen.square().mean().sqrt()) or 1.0
        self.like = codes
        data = chosen.cpu().numpy() / self.scale
        most = max(1, min(MAX_MIXTURE, len(data) // (4 * data.shape[1])))
        # Products this small are slower with many threads, six times slower if cores are busy.
        with one_thread_everywhere():
            fits = [GaussianMixture(k, reg_covar=1e-4, random_state=0).fit(data) for k in range(1, most + 1)]
        self.mixture = min(fits, key=lambda fit: fit.bic(data))

    def draw(self, n: int, random_state: np.random.RandomState) -> Tensor:
        """Return the codes of n new points."""
        # A copy, because threads that share a model would draw with each other's random states.
        mixture = copy(self.mixture).set_params(random_state=random_state)
        # Drawn codes are in the order of the mixture's components: in random order, the first are like the others.
        drawn = random_state.permutation(mixture.sample(n)[0])
        return copied(drawn * self.scale).to(self.like)
