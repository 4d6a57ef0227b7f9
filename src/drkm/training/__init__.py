"""Training: the plan of a fit, its run with one or several starts, and the record of the fitted model."""

from drkm.training.plan import Plan
from drkm.training.record import layer_supports, layer_traces, row_means
from drkm.training.run import dimensions, train

__all__ = ["Plan", "dimensions", "layer_supports", "layer_traces", "row_means", "train"]
