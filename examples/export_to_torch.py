"""
Export a model to torch
=======================

The codes of a one-layer model are a function of the sample, and `to_torch` gives it as a module: for pipelines on a
GPU, for `torch.export`, or as the first layer of a network that is trained further.
"""

# %%
# The same numbers as `transform`, as a tensor.

import numpy as np
import torch
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.plotting import style

X = load_digits().data / 16
model = ConstrDRKM(5).fit(X[:300])
module = model.to_torch()
new = torch.from_numpy(X[300:600])
print(f"largest difference: {np.abs(module(new).detach().numpy() - model.transform(X[300:600])).max():.1e}")

# %%
# A program that `torch.export` made of it needs no drkm to run.

exported = torch.export.export(module, (new[:8],), dynamic_shapes=({0: torch.export.Dim.AUTO},))
print("exported, for 300 rows:", tuple(exported.module()(new).shape))

# %%
# Gradients go through it: which pixels of an image raise a code?

image = new[:1].clone().requires_grad_()
(gradient,) = torch.autograd.grad(module(image)[0, 1], image)
with style() as plt:
    figure, axes = plt.subplots(1, 2, figsize=(5, 2.4), layout="constrained")
    axes[0].imshow(image.detach().reshape(8, 8), cmap="gray")
    limit = float(gradient.abs().max())
    axes[1].imshow(gradient.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    for axis, title in zip(axes, ("image", "gradient of layer1_1"), strict=True):
        axis.set_axis_off()
        axis.set_title(title)
plt.show()
