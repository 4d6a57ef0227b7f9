"""From samples to a fitted model: the plan of a fit, its run with one start or several, and the record of it."""

from drkm.training.plan import Plan
from drkm.training.record import layer_supports, layer_traces, row_means
from drkm.training.run import dimensions, resolve_kernels, train

__all__ = ["Plan", "dimensions", "layer_supports", "layer_traces", "resolve_kernels", "row_means", "train"]
