"""A long fit that can be stopped at any time: watch it, limit its time, and let it go on.

python examples/long_fit.py      prints what happened; a few seconds
"""

import warnings
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from drkm import ConstrDRKM

X = load_digits().data[:1000] / 16


def watch(entry: dict) -> bool:
    """Print every 25th iteration; a callback that returns True ends the fit."""
    if entry["iteration"] % 25 == 0:
        print("  iteration {iteration:4d}   J {objective:.4f}   stationarity {stationarity:.1e}".format(**entry))
    return False


with TemporaryDirectory() as folder:
    settings = {"n_components": (10, 5), "eta": (1, 10), "checkpoint": f"{folder}/fit.ckpt"}
    print("half a second:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begun = ConstrDRKM(**settings, max_seconds=0.5, callbacks=watch).fit(X)
    print(f"converged: {begun.converged_}, {begun.n_iter_} iterations")
    print("the rest, from the checkpoint, as it would go on after kill -9:")
    ended = ConstrDRKM(**settings, callbacks=watch).fit(X)
    print(f"converged: {ended.converged_}, {ended.n_iter_} iterations")
    whole = ConstrDRKM(**{**settings, "checkpoint": None}).fit(X)
    print("the same codes as without a stop:", np.array_equal(whole.codes_, ended.codes_))
