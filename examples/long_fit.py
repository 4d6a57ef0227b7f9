"""
Stop a long fit and go on
=========================

Watch a fit, limit its time, and let it go on later from its checkpoint, as it would after `kill -9`. The codes are
the same, bit for bit, as without a stop.
"""

# %%
# A callback sees every iteration; one that returns True ends the fit.

import warnings
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM
from drkm.plotting import plot_convergence

X = load_digits().data[:500] / 16
folder = TemporaryDirectory()
settings: dict = {"n_components": (10, 5), "eta": 1.0, "checkpoint": f"{folder.name}/fit.ckpt"}


def watch(entry: dict) -> bool:
    """Print every tenth iteration, and end the fit at the 20th."""
    if entry["iteration"] % 10 == 0:
        print("iteration {iteration:4d}   J {objective:.4f}   stationarity {stationarity:.1e}".format(**entry))
    return entry["iteration"] == 20


with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    begun = ConstrDRKM(**settings, callbacks=watch).fit(X)
print(f"converged: {begun.converged_}, {begun.n_iter_} iterations")

# %%
# The same call goes on where it was.

ended = ConstrDRKM(**settings).fit(X)
print(f"converged: {ended.converged_}, {ended.n_iter_} iterations")
whole = ConstrDRKM(**{**settings, "checkpoint": None}).fit(X)
print("the same codes as without a stop:", np.array_equal(whole.codes_, ended.codes_))
folder.cleanup()

# %%
# The history of both parts is one.

figure = plot_convergence(ended)
plt.show()
