"""
New points, and strange ones
============================

Unseen points get codes of their own, with a residual each. A point that is unlike all training samples has codes that
say nothing, so the model warns of it instead of being silently wrong.
"""

# %%
# A model of 300 digits from 0 to 1, and new ones that somebody forgot to divide by 16.

import warnings

import numpy as np
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.plotting import BLUE, GREY, VERMILION, style
from drkm.strange_data import StrangeDataWarning

X = load_digits().data / 16
model = ConstrDRKM((10, 5)).fit(X[:300])
new = X[300:500].copy()
new[150:] *= 16

# %%
# `transform` warns; `encode` says which points are meant.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", StrangeDataWarning)
    model.transform(new)
print(caught[0].message)
encoding = model.encode(new)
strange = np.asarray(encoding.strange)
usual = ~strange
print(f"strange: {strange.sum()}, largest residual of the others: {encoding.residual[usual].max():.0e}")

# %%
# All strange points have the same codes, those of nothing.

with style() as plt:
    figure, axes = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    for name, codes, colour, size in (
        ("training samples", model.codes_, GREY, 4),
        ("new points", encoding.codes[usual], BLUE, 9),
        ("strange points", encoding.codes[strange], VERMILION, 40),
    ):
        axes.scatter(*codes[:, :2].T, s=size, color=colour, linewidths=0, label=name)
    axes.set_xlabel("layer1_0")
    axes.set_ylabel("layer1_1")
    axes.legend()
plt.show()
