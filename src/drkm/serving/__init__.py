"""Codes of one-layer models with numpy alone: a process that only transforms points starts without torch.

`to_numpy()` of a fitted `KernelPCA` or one-layer `ConstrDRKM` gives a `Projection`; its `save` writes one file, which
`load` reads.
"""

from drkm.serving.projection import Projection, load

__all__ = ["Projection", "load"]
