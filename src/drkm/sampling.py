"""A density of the codes to draw from."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MAX_MIXTURE = 10


def draw_codes(codes: Tensor, n: int, random_state: np.random.RandomState) -> Tensor:
    """Return n draws from the Gaussian mixture on the codes that the Bayesian information criterion prefers."""
    from sklearn.mixture import GaussianMixture

    # Codes are of order n^(-1/2): the mixture's floor on variances expects numbers of order one.
    scale = float(codes.double().square().mean().sqrt()) or 1.0
    data = codes.double().cpu().numpy() / scale
    seed = int(random_state.randint(2**31))
    most = max(1, min(MAX_MIXTURE, len(data) // (4 * data.shape[1])))
    fits = [GaussianMixture(k, reg_covar=1e-4, random_state=seed).fit(data) for k in range(1, most + 1)]
    best = min(fits, key=lambda fit: fit.bic(data))
    return torch.from_numpy(best.sample(n)[0] * scale).to(codes)
