"""A kernel of one's own: a small torch module as an explicit feature map, fixed and trained.

Two moons, which no straight line parts. Cosine features with random frequencies are a kernel; trained with the codes
they reach a lower energy, and that is no better kernel: the energy rewards features in which samples look alike.

python examples/own_feature_map.py      prints a table; a few seconds
"""

import torch
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM
from drkm.kernels import FeatureMap


class Cosines(torch.nn.Module):
    """cos(xF + b) with 64 frequencies."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.frequencies = torch.nn.Parameter(2 * torch.randn(2, 64, generator=generator))
        self.phases = torch.nn.Parameter(6.28 * torch.rand(64, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cos(x @ self.frequencies + self.phases)


X, y = make_moons(600, noise=0.1, random_state=0)
train, test = slice(0, 300), slice(300, 600)
for label, kernel in (
    ("rbf", "rbf"),
    ("cosines", FeatureMap(Cosines().double())),
    ("cosines, trained", FeatureMap(Cosines().double(), trainable=True)),
):
    model = ConstrDRKM((6, 2), kernel=(kernel, "rbf"), eta=(1, 10), max_iter=300)
    pipeline = make_pipeline(model, StandardScaler(), LogisticRegression()).fit(X[train], y[train])
    print(f"{label:18} J = {model.objective_:8.2f}   accuracy on unseen points: {pipeline.score(X[test], y[test]):.3f}")
