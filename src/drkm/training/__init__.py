"""From samples to a trained model: the plan of a fit, its run with one start or several, and what it found."""

from drkm.training.plan import Plan
from drkm.training.run import dimensions, resolve_kernels, train
from drkm.training.trained import Trained, describe, layer_supports, layer_traces

__all__ = ["Plan", "Trained", "describe", "dimensions", "layer_supports", "layer_traces", "resolve_kernels", "train"]
