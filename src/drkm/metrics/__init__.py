"""Disentanglement metrics as functions of plain arrays.

Codes are n×m (one row a sample), factors n×k. Every function returns a frozen object: ``float(result)``
is the score, its attributes are the details. Values follow the reference implementation
(disentanglement_lib) with its defaults; where that breaks, the function is repaired and its docstring
says how.
"""

from drkm.metrics._beta_vae import beta_vae
from drkm.metrics._chance import chance
from drkm.metrics._dci import dci
from drkm.metrics._evaluate import evaluate
from drkm.metrics._explicitness import explicitness
from drkm.metrics._factor_vae import factor_vae
from drkm.metrics._files import evaluate_files
from drkm.metrics._information import discretize
from drkm.metrics._irs import irs
from drkm.metrics._mig import mig
from drkm.metrics._modularity import modularity
from drkm.metrics._sap import sap
from drkm.metrics._unsupervised import unsupervised

__all__ = [
    "beta_vae",
    "chance",
    "dci",
    "discretize",
    "evaluate",
    "evaluate_files",
    "explicitness",
    "factor_vae",
    "irs",
    "mig",
    "modularity",
    "sap",
    "unsupervised",
]
