"""The energy of a deep restricted kernel machine with the interconnection weights eliminated.

J(H) = -Σ_l 1/(2η_l) tr(H_lᵀ K_l H_l), K_l = k_l(rows of H_{l-1}), H_0 = X: `Energy.value`, with the gradient in
`Energy.value_and_gradient` and Hessian products in `Energy.hessian`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from drkm import gram as grams
from drkm.distributed import collectives
from drkm.files.rows import AbsentRows, Rows, in_memory
from drkm.gram import Centered, Gram, MovingGram, Strategy, Workload
from drkm.kernels import Kernel
from drkm.problem.eigen import Eigenpairs, leading_eigenpairs

#: Starts and coarse steps need no more than this residual, which takes a few products with K_1.
LEADING_TOL = 1e-3


class Evaluation(NamedTuple):
    """J, its Euclidean gradient, and the curvature that preconditioners use for layers below others."""

    value: float
    gradient: Tensor
    #: one vector per layer but the last: the weight of a sample's own code in the pull of the layer above, or None
    curvature: tuple[Tensor | None, ...]


@dataclass
class EvaluationCount:
    """Counts of evaluations and Hessian products."""

    evaluations: int = 0
    hessian_products: int = 0


class Energy:
    """J for any stack of layers, with its gradient and Hessian products.

    Parameters
    ----------
    X : Tensor or Rows, of shape (n, d)
        Samples (the Gram matrix itself for a precomputed kernel). Samples in a file stay there if the strategy can read
        them in tiles.
    kernels : sequence of Kernel
        One per layer, with all parameters as numbers.
    sizes : sequence of int
        Number of components s_l of each layer.
    eta : sequence of float
        η_l of each layer.
    strategy : Strategy
        How Gram matrices are formed.
    center : bool
        Centre every layer in its feature space.
    first : Gram, optional
        The uncentred operator of the first layer, if it should not be formed from the samples.
    blocks : int, optional
        n×S blocks that are alive at the peak of the training.
    """

    def __init__(
        self,
        X: Tensor | Rows,
        kernels: Sequence[Kernel],
        sizes: Sequence[int],
        eta: Sequence[float],
        strategy: Strategy,
        center: bool = False,
        first: Gram | None = None,
        blocks: int | None = None,
    ):
        self.sizes = tuple(sizes)
        self.eta = tuple(eta)
        self.kernels = tuple(kernels)
        self.center = center
        #: number of all samples, and of those of this process
        self.n, self.rows = collectives.samples(len(X)), len(X)
        self.dtype, self.device = X.dtype, X.device
        work = workload(X, self.kernels, self.sizes, blocks)
        #: the strategy that was chosen, and its cost
        if first is None:
            self.strategy, self.cost = grams.settle(strategy, work)
        else:
            # Nothing is formed, so that nothing has to fit into memory.
            self.strategy = strategy.settle(work)
            self.cost = self.strategy.cost(work)
        self.X = X if self._streams() or first is not None else in_memory(X)
        self.slices = layer_slices(self.sizes)
        self.count = EvaluationCount()
        self.form_first_gram(first)

    def _streams(self) -> bool:
        return self.strategy.reads_tiles and _can_stream(self.kernels[0])

    def form_first_gram(self, given: Gram | None = None) -> None:
        """Form the Gram operator of the first layer again after its kernel changed, or use the given one."""
        # Free the old one first: there may be room for only one.
        old = vars(self).pop("first_uncentered", None)
        vars(self).pop("first", None)
        self._leading: Eigenpairs | None = None
        if given is None and old is not None:
            given = old.with_kernel(self.kernels[0])
        del old
        if given is None:
            given = self.strategy.fixed(self.kernels[0], self.X)
        self.first_uncentered: Gram = given
        self.first: Gram = self.first_uncentered.centered() if self.center else self.first_uncentered

    def set_kernels(self, kernels: Sequence[Kernel]) -> None:
        """Replace the kernels, for example by ones with other bandwidths."""
        # There is no operator if forming the last one was interrupted.
        changed = kernels[0] != self.kernels[0] or "first" not in vars(self)
        self.kernels = tuple(kernels)
        if changed:
            self.form_first_gram()

    def relative_widths(self) -> list[float | None]:
        """Return σ² of each deep kernel relative to the spread 2s/n of its input codes; None without a bandwidth."""
        return [
            kernel.bandwidth * self.n / (2.0 * size) if kernel.has_bandwidth else None
            for kernel, size in zip(self.kernels[1:], self.sizes, strict=False)
        ]

    def widened(self) -> Energy | None:
        """Return the energy with deep kernels at least as wide as the spread of their inputs; None if they already are.

        It shares the first Gram matrix and the evaluation count.
        """
        narrow = [width is not None and width < 1 for width in self.relative_widths()]
        if not any(narrow):
            return None
        wider = copy.copy(self)
        deep = zip(self.kernels[1:], self.sizes, narrow, strict=False)
        wider.kernels = (
            self.kernels[0],
            *(k.with_parameters(sigma2=2.0 * size / self.n) if is_narrow else k for k, size, is_narrow in deep),
        )
        return wider

    def first_eigenpairs(self) -> Eigenpairs:
        """Return leading eigenpairs of K_1 to a loose tolerance; computed once.

        There are twice as many as components, or as many as components of one layer if a dense solver finds them.
        """
        if self._leading is None:
            count = min(2 * self.n_components, self.n)
            like = torch.empty(0, dtype=self.dtype, device=self.device)
            needed = self.n_components if len(self.sizes) == 1 else None
            self._leading = leading_eigenpairs(self.first, count, like=like, tol=LEADING_TOL, needed=needed)
        return self._leading

    @property
    def n_components(self) -> int:
        """S, the number of components of all layers."""
        return sum(self.sizes)

    def split(self, H: Tensor) -> list[Tensor]:
        """Return the codes of each layer."""
        return [H[:, block] for block in self.slices]

    def gram(self, layer: int, H: Tensor) -> Gram:
        """Return the Gram operator of a layer (counted from 0) at H."""
        return self.first if layer == 0 else self.moving(layer, H)

    def moving(self, layer: int, H: Tensor) -> MovingGram:
        """Return the Gram operator of a deep layer at H."""
        return self.moving_at(layer, H[:, self.slices[layer - 1]].contiguous())

    def moving_at(self, layer: int, below: Tensor) -> MovingGram:
        """Return the Gram operator of a deep layer above these codes."""
        operator = self.strategy.moving(self.kernels[layer], below)
        return Centered(operator) if self.center else operator

    def layer_values(self, H: Tensor) -> list[float]:
        """Return the energy of each layer, -1/(2η_l) tr(H_lᵀ K_l H_l); J is their sum."""
        self.count.evaluations += 1
        blocks = self.split(H)
        return [
            -0.5 / eta * float(collectives.total(_own_inner(A, self.gram(layer, H).matmul(A))))
            for layer, (A, eta) in enumerate(zip(blocks, self.eta, strict=True))
        ]

    def value(self, H: Tensor) -> float:
        """Return J, the objective of equation (21) of the paper.

            J(H) = -Σ_l 1/(2η_l) tr(H_lᵀ K_l H_l),    K_l = k_l(rows of H_{l-1}),  H_0 = X

        The paper's terms λ_l/2 tr(H_lᵀH_l) are left out: they are constant where HᵀH = I.
        """
        return sum(self.layer_values(H))

    def value_and_gradient(self, H: Tensor, first: Tensor | None = None) -> Evaluation:
        """Return J and its Euclidean gradient, for which the paper has no equation.

            ∂J/∂H_l = -K_l H_l/η_l - P_{l+1}/η_{l+1},    row i of P_{l+1} = Σ_j ∂k_{l+1}(h_i, h_j)/∂h_i ⟨a_i, a_j⟩

        with h_i and a_i the rows of H_l and H_{l+1}: a layer's own product and the pull of the layer above, which the
        last layer does not have. For the RBF kernel it has the closed form

            ∂J/∂H_l = -K_l H_l/η_l + (diag(W·1) - W) H_l/(σ²_{l+1} η_{l+1}),    W = K_{l+1} ∘ (H_{l+1} H_{l+1}ᵀ).

        Products K_l H_l and pulls P_{l+1} are the sums of `MovingGram.sums`. `first` is K_1 H_1 if it is known.
        """
        self.count.evaluations += 1
        gradient = torch.empty_like(H)
        curvature: list[Tensor | None] = []
        own = []
        for layer, (block, eta) in enumerate(zip(self.slices, self.eta, strict=True)):
            A = H[:, block]
            if layer == 0:
                product = self.first.matmul(A) if first is None else first
            else:
                product, pull, weight = self.moving(layer, H).sums(A)
                gradient[:, self.slices[layer - 1]] -= pull / eta
                curvature.append(None if weight is None else weight / eta)
            gradient[:, block] = product / -eta
            own.append(_own_inner(A, product))
        inner = collectives.total(torch.stack(own)).tolist()
        value = -sum(0.5 / eta * part for eta, part in zip(self.eta, inner, strict=True))
        return Evaluation(value, gradient, tuple(curvature))

    def hessian(self, H: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the map Z ↦ D²J(H)[Z], exact, for any direction Z.

            D²J(H)[Z]_l = -(K_l Z_l + dK_l H_l)/η_l - dP_{l+1}/η_{l+1}

        with P of `value_and_gradient`, and dK_l and dP_{l+1} the derivatives along Z, which moves the points of K_l by
        Z_{l-1}; dK_1 = 0. They are those of `MovingGram.tangent`.
        """
        operators = [self.moving(layer, H) for layer in range(1, len(self.sizes))]
        blocks = self.split(H)

        def product(Z: Tensor) -> Tensor:
            self.count.hessian_products += 1
            directions = self.split(Z)
            out = torch.empty_like(Z)
            out[:, self.slices[0]] = self.first.matmul(directions[0]) / -self.eta[0]
            for layer, operator in enumerate(operators, start=1):
                d_product, d_pull = operator.tangent(blocks[layer], directions[layer - 1], directions[layer])
                out[:, self.slices[layer - 1]] -= d_pull / self.eta[layer]
                out[:, self.slices[layer]] = d_product / -self.eta[layer]
            return out

        return product

    def bandwidth_gradient(self, H: Tensor, layer: int) -> float:
        """Return ∂J/∂log σ² = -1/(2η_l) tr(H_lᵀ (∂K_l/∂log σ²) H_l) of a layer (counted from 0)."""
        A, weight = H[:, self.slices[layer]], -0.5 / self.eta[layer]
        return weight * self.gram(layer, H).parameter_sum(A)


def layer_slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the columns of each layer in H, given the number of components of each."""
    return tuple(slice(stop - size, stop) for stop, size in zip(accumulate(sizes), sizes, strict=True))


def workload(X: Tensor | Rows, kernels: Sequence[Kernel], sizes: Sequence[int], blocks: int | None = None) -> Workload:
    """Return the size of a fit to the samples of this process; bandwidths may still be rules."""
    on_disk = isinstance(X, Rows) and not isinstance(X, AbsentRows) and _can_stream(kernels[0])
    resident = 0 if isinstance(X, Rows) else X.nbytes
    return Workload(len(X), X.shape[1], tuple(sizes), tuple(kernels), X.dtype, X.device, resident, on_disk, blocks)


def _can_stream(first: Kernel) -> bool:
    """Whether a first kernel can be evaluated a few samples at a time, and is not trained on all of them."""
    return not first.needs_all_samples


def _own_inner(A: Tensor, B: Tensor) -> Tensor:
    """Return ⟨A, B⟩ of this process's rows, summed in float64: line searches compare values equal in most digits."""
    return (A.double() * B.double()).sum()
