"""All components of one kernel and one set of samples: eigenpairs that all ranks and shrinkages share.

A model holds a fixed number of components. Choosing their number, their weights and the kernel, filling gaps and
scoring samples need many such sets, for the same samples or slightly changed ones: this class denoises without the rest
of a model.
"""

from __future__ import annotations

from torch import Tensor

from drkm.gram import Dense, Workload
from drkm.inference.preimage import default_method, preimage
from drkm.inference.subspace import Components, Eigenspace
from drkm.kernels import Kernel
from drkm.machine import memory
from drkm.problem.eigen import leading_eigenpairs, workspace_bytes
from drkm.problem.shrinkage import Shrinkage

#: tolerance of pre-images, as a fraction of the bandwidth, that suffices to compare candidates
PREIMAGE_TOL = 1e-3
#: steps of a pre-image after which differences between candidates are settled
PREIMAGE_STEPS = 100
#: tolerance of the eigenpairs
TOL = 1e-8


class EigenComponents:
    """The eigenpairs of K_1 of some samples, and denoising with any shrinkage of them.

    Parameters
    ----------
    kernel : Kernel
        Its bandwidth rules are resolved to numbers here.
    X : Tensor of shape (n, d)
        Samples.
    center : bool
        Centre the samples in feature space.
    rank : int, optional
        Number of eigenpairs; by default all.
    instead : str
        What would fit into memory, the end of the error if this does not.

    Attributes
    ----------
    kernel : Kernel
        The kernel with all parameters as numbers.
    values : Tensor of shape (rank,)
        Eigenvalues in descending order.
    vectors : Tensor of shape (n, rank)
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Tensor,
        *,
        center: bool = False,
        rank: int | None = None,
        instead: str = "take fewer samples",
    ):
        self.kernel, self.X, self.center = kernel.resolve(X, layer=1), X, center
        count = len(X) if rank is None else min(rank, len(X))
        needed = _bytes_needed(self.kernel, X, count)
        memory.require(needed, X.device, f"X: a set of components of {len(X)} samples", instead)
        self._gram = Dense().fixed(self.kernel, X)
        operator = self._gram.centered() if center else self._gram
        pairs = leading_eigenpairs(operator, count, like=X, tol=TOL)
        self.values, self.vectors = pairs.values.clamp(min=0), pairs.vectors

    def rank(self, shrink: Shrinkage) -> int:
        """Return how many components have a nonzero weight, at least one."""
        return max(1, shrink.rank(self.values))

    def components(self, shrink: Shrinkage | None = None, rank: int | None = None) -> Components:
        """Return the leading components, by default all with a nonzero weight, as a subspace."""
        count = len(self.values) if rank is None else rank
        if shrink is not None:
            count = min(count, self.rank(shrink))
        H, values = self.vectors[:, :count].contiguous(), self.values[:count]
        return Eigenspace(self.kernel, self.X, H, values, center=self.center, gram=self._gram, shrink=shrink)

    def denoise(
        self,
        shrink: Shrinkage | None = None,
        points: Tensor | None = None,
        *,
        rank: int | None = None,
        tol: float = PREIMAGE_TOL,
        max_iter: int = PREIMAGE_STEPS,
    ) -> Tensor:
        """Denoise points, by default the samples themselves, with weighted components.

        Parameters
        ----------
        shrink : Shrinkage, optional
            Weights of the components; None keeps all up to `rank`.
        points : Tensor of shape (m, d), optional
        rank : int, optional
            Number of leading components to use.
        tol, max_iter
            Tolerance and maximum number of steps of the pre-images.
        """
        components = self.components(shrink, rank)
        if points is None:
            coordinates = components.training_coordinates()
        else:
            coordinates = components.coordinates(self.kernel(points, self.X))
        method = default_method(self.kernel)
        return preimage(components, coordinates, method=method, tol=tol, max_iter=max_iter).points


def _bytes_needed(kernel: Kernel, X: Tensor, count: int) -> int:
    """Return the bytes that so many eigenpairs of K_1 need besides the samples."""
    n, d = X.shape
    workspace = workspace_bytes(n, count, TOL, X)
    work = Workload(n, d, (count,), (kernel,), X.dtype, X.device, workspace=workspace)
    return Dense().cost(work).bytes - work.sample_bytes
