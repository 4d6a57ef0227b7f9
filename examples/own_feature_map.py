"""
A feature map of your own
=========================

A small torch module is a kernel: the dot product of what it makes of two points. Trained with the codes it reaches a
lower energy, and that is no better kernel: the energy rewards features in which samples look alike.
"""

# %%
# Two moons, which no straight line parts, and cosine features with random frequencies.

import torch
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM
from drkm.kernels import FeatureMap
from drkm.plotting import style


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
kernels: dict[str, str | FeatureMap] = {
    "rbf": "rbf",
    "cosines": FeatureMap(Cosines().double()),
    "cosines, trained": FeatureMap(Cosines().double(), trainable=True),
}
models = {}
for name, kernel in kernels.items():
    models[name] = ConstrDRKM((6, 2), kernel=(kernel, "rbf"), eta=(1, 10), max_iter=300)
    pipeline = make_pipeline(models[name], StandardScaler(), LogisticRegression()).fit(X[train], y[train])
    accuracy = pipeline.score(X[test], y[test])
    print(f"{name:18} J = {models[name].objective_:8.2f}   accuracy on unseen points: {accuracy:.3f}")

# %%
# Two of the codes that each kernel gives to unseen points.

with style() as plt:
    figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.6), layout="constrained")
    for axis, (name, model) in zip(axes, models.items(), strict=True):
        codes = model.transform(X[test])
        for label, marker in ((0, "o"), (1, "s")):
            axis.scatter(*codes[y[test] == label, 1:3].T, s=6, marker=marker, linewidths=0)
        axis.set(title=name, xticks=[], yticks=[], xlabel="layer1_1", ylabel="layer1_2")
plt.show()
