"""
Features for a classifier
=========================

Fifteen codes of an image do as well for a linear classifier as its 64 pixels, however few labels there are. The model
itself needs none.
"""

# %%
# Codes are of the order of n^(-1/2), so a `StandardScaler` stands before the classifier.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM
from drkm.plotting import plot_codes, style

X, y = load_digits(return_X_y=True)
X, train, test = X / 16, slice(0, 500), slice(500, 1500)
pipeline = make_pipeline(ConstrDRKM(15), StandardScaler(), LogisticRegression()).fit(X[train], y[train])
print(f"accuracy of a linear classifier on 15 codes of unseen digits: {pipeline.score(X[test], y[test]):.3f}")

# %%
# The first codes of the unseen digits. Their classes were not used to find the components.

model = pipeline[0]
figure = plot_codes(model, X[test][:400], y[test][:400], components=[(1, 1), (1, 2), (1, 3)])

# %%
# Few labels: the model of all 500 images, and a classifier that sees the labels of some.

codes, new = (pipeline[:2].transform(X[rows]) for rows in (train, test))
counts = [20, 40, 80, 160, 320]
accuracy = np.array(
    [
        [
            LogisticRegression(max_iter=1000).fit(known[:count], y[:count]).score(unknown, y[test])
            for known, unknown in ((codes, new), (X[train], X[test]))
        ]
        for count in counts
    ]
)
with style() as plt:
    figure, axes = plt.subplots(figsize=(4.5, 3), layout="constrained")
    for column, (name, marker) in enumerate((("15 codes", "o"), ("64 pixels", "s"))):
        axes.semilogx(counts, accuracy[:, column], marker=marker, markersize=4, label=name)
    axes.set_xticks(counts, counts)
    axes.minorticks_off()
    axes.set_xlabel("labels")
    axes.set_ylabel("accuracy on unseen digits")
    axes.legend()
plt.show()
