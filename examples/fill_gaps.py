"""
Fill gaps in a table
====================

A tenth of the measurements of 178 wines is taken away, and `Imputer` puts them back from what the others say. Beside
it stands the mean of each column, which knows nothing of the other columns.
"""

# %%
# Gaps are NaN, as in scikit-learn.

import numpy as np
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer

from drkm import Imputer
from drkm.plotting import BLUE, GREY, style

truth = load_wine().data
scale = truth.std(axis=0)
gaps = np.random.RandomState(0).rand(*truth.shape) < 0.1
table = np.where(gaps, np.nan, truth)
filled = {"mean": SimpleImputer().fit_transform(table), "Imputer": Imputer().fit_transform(table)}
for name, values in filled.items():
    error = np.sqrt(np.mean((((values - truth) / scale)[gaps]) ** 2))
    print(f"{name:8} root mean squared error in the gaps: {error:.3f} standard deviations")

# %%
# What was filled in against what was there, in standard deviations from the mean.

with style() as plt:
    figure, axes = plt.subplots(figsize=(4, 3.6), layout="constrained")
    for (name, values), colour in zip(filled.items(), (GREY, BLUE), strict=True):
        shown = [((part - truth.mean(axis=0)) / scale)[gaps] for part in (truth, values)]
        axes.scatter(*shown, s=8, color=colour, linewidths=0, label=name)
    axes.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axes.set(xlabel="true value", ylabel="filled in")
    axes.legend()
plt.show()
