"""Codes of new points by the paper's formulas."""

from __future__ import annotations

import torch
from torch import Tensor

from drkm.fitted import FittedModel
from drkm.inference.encoder.coupling import couplings
from drkm.inference.encoder.encoding import Encoding
from drkm.inference.encoder.first_layer import first_layer
from drkm.inference.first_gram import FirstGram


class ProjectionEncoder:
    """The paper's formulas, one layer after the other (`codes_of`).

    They do not reproduce the codes of the training points and are included to reproduce the paper.
    """

    def __init__(self, fitted: FittedModel, gram: FirstGram):
        self.own = fitted.slices[0]
        self.dtype, self.device = fitted.H.dtype, fitted.H.device
        self.weights = [1.0 / (weight * eta) for weight, eta in zip(fitted.lam, fitted.eta, strict=True)]
        self.first = first_layer(fitted, gram)
        self.deep = couplings(fitted.kernels, fitted.layer_codes(), fitted.center)

    def encode(self, rows: Tensor, ambiguity: bool = False) -> Encoding:
        """Return the codes of points in the format of `drkm.gram.Cross`."""
        z = self.codes_of(self.first.scores(rows))
        unknown = torch.full_like(z[:, 0], torch.nan)
        return Encoding(z, unknown, torch.zeros_like(unknown, dtype=torch.bool) if ambiguity else None)

    def codes_of(self, scores: Tensor) -> Tensor:
        """Return the codes of points with these scores t, by equations (10) and (11) of the paper.

        h¹ = t/(λ_1 η_1),  t = H_1ᵀk_1(X, x),    h^l = 1/(λ_l η_l) Σ_j k_l(H_{l-1,j}, h^{l-1}) H_{l,j}
        """
        codes = [self.weights[0] * scores]
        for coupling, weight in zip(self.deep, self.weights[1:], strict=True):
            codes.append(weight * coupling.gradient_own(codes[-1]))
        return torch.cat(codes, dim=1)

    def code_matrix(self) -> Tensor:
        """Return C of z = tC, for one layer."""
        return self.weights[0] * torch.eye(self.own.stop, dtype=self.dtype, device=self.device)

    def scores_of(self, codes: Tensor) -> Tensor:
        """Return t = H_1ᵀk_1(X, x) of points with these codes."""
        return codes[:, self.own] / self.weights[0]
