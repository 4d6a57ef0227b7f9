"""
Denoise a curve
===============

Clean noisy points of a curve without ever seeing a clean one. `select` chooses bandwidth and number of components by
an estimate of the error against the clean points, which it does not know; here they are known, so that the estimate
can be checked.
"""

# %%
# 300 points of a square and a spiral, with noise, and twelve candidates.

import numpy as np

from drkm import select
from drkm.datasets import make_square_spiral
from drkm.plotting import scatter_before_after, style

noisy, clean = make_square_spiral(300, noise=0.1, random_state=0)
found = select(noisy, {"sigma2": [0.05, 0.1, 0.2], "n_components": [60], "keep": [15, 25, 40, 60]})
denoised = found.denoise(noisy)


def error(points: np.ndarray) -> float:
    return float(((points - clean) ** 2).sum(axis=1).mean())


print(f"chosen of {len(found.table)} candidates: {found.best_params}")
print(f"mean squared error: noisy {error(noisy):.4f}, denoised {error(denoised):.4f}")

# %%
# The points before and after.

with style() as plt:
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    scatter_before_after(axes, noisy, denoised, "Square and spiral, noise 0.1", clean)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, markerscale=3)

# %%
# What was estimated for each candidate, and the spectrum of the one that was chosen.

figure = found.plot()
plt.show()
