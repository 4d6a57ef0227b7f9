"""
How many components?
====================

The spectrum says how much of the kernel matrix each component holds, and `select` estimates how many of them hold
more signal than noise. The first alone cannot tell you where to stop.
"""

# %%
# Digits with noise: the spectrum falls without a bend.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from drkm import ConstrDRKM, select
from drkm.plotting import plot_spectrum

noisy = load_digits().data[:300] / 16 + np.random.RandomState(0).normal(0, 0.25, (300, 64))
model = ConstrDRKM(50).fit(noisy)
figure = plot_spectrum(model)

# %%
# The estimated error against the clean digits, which nobody has seen. A wide kernel does best with about 12
# components; a narrower one goes lower, and takes many more.

found = select(noisy, {"sigma2": [1.0, 4.0, 16.0], "n_components": [120], "keep": [3, 6, 12, 25, 50, 120]}, noise=0.25)
print(found.to_markdown(5))
figure = found.plot()
plt.show()
