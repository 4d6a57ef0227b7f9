"""All components of one kernel and one set of samples: eigenpairs that every rank and every shrinkage share.

A model holds as many components as it was asked for. Whoever is to choose their number, their weights and the kernel,
fill gaps or judge samples needs many such sets, of the same samples or of samples that change a little: here is what
denoises without the rest of a model.
"""

from __future__ import annotations

from torch import Tensor

from drkm.gram import Dense
from drkm.inference.preimage import preimage
from drkm.inference.subspace import Components
from drkm.kernels import Kernel
from drkm.problem.eigen import leading_eigenpairs
from drkm.problem.shrinkage import Shrinkage

#: pre-images to this fraction of the bandwidth are enough to compare candidates
PREIMAGE_TOL = 1e-3
#: steps of a pre-image, after which differences between candidates are settled
PREIMAGE_STEPS = 100


class EigenComponents:
    """The eigenpairs of K_1 of some samples, and what denoising with any shrinkage of them gives.

    Parameters
    ----------
    kernel : Kernel
        Rules of bandwidth become numbers here.
    X : Tensor of shape (n, d)
        Samples.
    center : bool
        Centre the samples in feature space.
    rank : int, optional
        Eigenpairs that are found; by default all.

    Attributes
    ----------
    kernel : Kernel
        With numbers for parameters.
    values : Tensor of shape (rank,)
        Eigenvalues in descending order.
    vectors : Tensor of shape (n, rank)
    """

    def __init__(self, kernel: Kernel, X: Tensor, *, center: bool = False, rank: int | None = None):
        self.kernel, self.X, self.center = kernel.resolve(X, layer=1), X, center
        self._gram = Dense().fixed(self.kernel, X)
        operator = self._gram.centered() if center else self._gram
        pairs = leading_eigenpairs(operator, len(X) if rank is None else min(rank, len(X)), like=X, tol=1e-8)
        self.values, self.vectors = pairs.values.clamp(min=0), pairs.vectors

    def rank(self, shrink: Shrinkage) -> int:
        """Return how many components have a weight, at least one."""
        return max(1, shrink.rank(self.values))

    def components(self, shrink: Shrinkage | None = None, rank: int | None = None) -> Components:
        """Return the leading components, by default all that have a weight, as a subspace."""
        count = len(self.values) if rank is None else rank
        if shrink is not None:
            count = min(count, self.rank(shrink))
        H = self.vectors[:, :count].contiguous()
        return Components(self.kernel, self.X, H, center=self.center, gram=self._gram, shrink=shrink)

    def denoise(
        self,
        shrink: Shrinkage | None = None,
        points: Tensor | None = None,
        *,
        rank: int | None = None,
        method: str | None = None,
        start: Tensor | None = None,
        tol: float = PREIMAGE_TOL,
    ) -> Tensor:
        """Return points, by default the samples themselves, denoised by weighed components.

        Parameters
        ----------
        shrink : Shrinkage, optional
            Weights of the components; None keeps all up to `rank`.
        points : Tensor of shape (m, d), optional
        rank : int, optional
            Leading components that are used.
        method : {"fixed-point", "gradient", "ridge"}, optional
            How pre-images are found; by default what suits the kernel.
        start : Tensor of shape (m, d), optional
            Where pre-images begin, for example at those of a neighbouring shrinkage.
        tol : float
            Of the pre-images.
        """
        components = self.components(shrink, rank)
        if points is None:
            coordinates = components.training_coordinates()
        else:
            coordinates = components.coordinates(self.kernel(points, self.X))
        method = method or ("fixed-point" if self.kernel.is_isotropic else "gradient")
        found = preimage(components, coordinates, method=method, start=start, tol=tol, max_iter=PREIMAGE_STEPS)
        return found.points
