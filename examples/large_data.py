"""
Large data
==========

The kernel matrix of n samples has n² entries. Nyström features replace it by n times a few hundred, and samples may
stay in a file that is read in tiles.
"""

# %%
# 4,000 points of a Swiss roll. 200 landmarks stand for all of them; the error says how much they miss.

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import make_swiss_roll

from drkm import ConstrDRKM
from drkm.gram import Nystroem
from drkm.plotting import style

X, along = make_swiss_roll(4000, noise=0.2, random_state=0)
X = X / X.std(axis=0)
models = {}
for name, gram in (("exact", "auto"), ("50 landmarks", Nystroem(m=50)), ("200 landmarks", Nystroem(m=200))):
    start = time.perf_counter()
    models[name] = ConstrDRKM(4, sigma2=0.3, gram=gram).fit(X)
    seconds, error = time.perf_counter() - start, models[name].approximation_errors_[0]
    missed = "nothing" if error is None else f"{error:.1%} of the trace"
    print(f"{name:14} {seconds:5.1f} s, misses {missed}; {models[name].fitted_.cost.describe()}")

# %%
# Codes hardly differ.

with style() as plt:
    figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.7), layout="constrained")
    for axis, (name, model) in zip(axes, models.items(), strict=True):
        # A component has no sign of its own.
        codes = model.codes_[:, 1:3] * np.sign((model.codes_ * models["exact"].codes_).sum(axis=0)[1:3])
        axis.scatter(*codes.T, c=along, s=3, cmap="viridis", linewidths=0, rasterized=True)
        axis.set(title=name, xticks=[], yticks=[], xlabel="layer1_1", ylabel="layer1_2")

# %%
# Samples in a file: the path is all that `fit` and `transform` need, and neither holds the file as a whole.

with TemporaryDirectory() as folder:
    path = Path(folder) / "samples.npy"
    np.save(path, X)
    model = ConstrDRKM(4, sigma2=0.3, gram=Nystroem(m=200)).fit(path)
    print("codes of all samples in the file:", model.transform(path).shape)
plt.show()
