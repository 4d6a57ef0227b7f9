"""
In place of scikit-learn's KernelPCA
====================================

Change one import: parameters, attributes and codes are those of scikit-learn. What is new is the way back to data
without a regression, and kernels, devices and operators of this package.
"""

# %%
# The same codes to the last digits.

import numpy as np
from sklearn import decomposition
from sklearn.datasets import make_circles

import drkm
from drkm.plotting import plot_codes, scatter_before_after, style

X, y = make_circles(400, factor=0.3, noise=0.08, random_state=0)
theirs = decomposition.KernelPCA(4, kernel="rbf", gamma=5).fit(X)
ours = drkm.KernelPCA(4, kernel="rbf", gamma=5, preimage="fixed-point").fit(X)
print(f"largest difference of the codes: {np.abs(np.abs(ours.transform(X)) - np.abs(theirs.transform(X))).max():.1e}")

# %%
# Two circles, which no line parts, lie apart in the first codes.

figure = plot_codes(ours, X, y)

# %%
# `preimage="fixed-point"` finds the point whose image is nearest to a projection, and so draws the circles clean.

with style() as plt:
    figure, axes = plt.subplots(figsize=(4, 3.6), layout="constrained")
    scatter_before_after(axes, X, ours.inverse_transform(ours.transform(X)), "Four components")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, markerscale=3)
plt.show()
