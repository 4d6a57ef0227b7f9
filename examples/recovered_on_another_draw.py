"""
Would another draw give the same components?
============================================

A component that only these samples have is no discovery. Fit models to different samples, encode the same points, and
see which codes of one are linear functions of those of the other.
"""

# %%
# Three models of 300 digits each, no digit in two of them, and 300 points that none of them saw.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from drkm import ConstrDRKM
from drkm.plotting import plot_recovery

X = load_digits().data / 16
parts = [X[start : start + 300] for start in (0, 300, 600)]
unseen = X[900:1200]

# %%
# The default weights: layer 1 is recovered but for its last components; layer 2 much less.

models = [ConstrDRKM((8, 4)).fit(part) for part in parts]
print("effective sample sizes of the layers:", [round(size) for size in models[0].fitted_.supports])
figure = plot_recovery(models, unseen)

# %%
# The paper's weights, `eta=1`: the second layer pulls the first towards few samples, and other draws have others.

published = [ConstrDRKM((8, 4), eta=1).fit(part) for part in parts]
print("effective sample sizes of the layers:", [round(size) for size in published[0].fitted_.supports])
figure = plot_recovery(published, unseen)
plt.show()
