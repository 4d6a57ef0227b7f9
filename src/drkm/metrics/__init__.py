"""Disentanglement metrics as functions of plain arrays.

Codes are n×m (one row per sample), factors n×k. Every function returns an immutable object: `float(result)` is the
score, its attributes are the details. Values follow the reference implementation (disentanglement_lib) with its
defaults; where the reference fails, the function is repaired and its docstring says how.
"""

# Importing a module registers its metric; tables follow the order of these lines.
# isort: off
from drkm.metrics._irs import irs as irs
from drkm.metrics._mig import mig as mig
from drkm.metrics._sap import sap as sap
from drkm.metrics._dci import dci as dci
from drkm.metrics._factor_vae import factor_vae as factor_vae
from drkm.metrics._beta_vae import beta_vae as beta_vae
from drkm.metrics._modularity import modularity as modularity
from drkm.metrics._explicitness import explicitness as explicitness
from drkm.metrics._unsupervised import unsupervised as unsupervised

# isort: on
from drkm.metrics._chance import chance
from drkm.metrics._evaluate import evaluate
from drkm.metrics._files import evaluate_files
from drkm.metrics._information import discretize
from drkm.metrics._metric import METRICS, Score, metric
from drkm.metrics._result import MetricResult

__all__ = ["MetricResult", "Score", "chance", "discretize", "evaluate", "evaluate_files", "metric", *METRICS]
