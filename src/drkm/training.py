"""From samples to a trained model: resolve kernels, start, solve, choose the best of several starts, fix the axes."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from drkm import axes as axes_of
from drkm import learning, reduction, starts, stiefel
from drkm.checkpoint import Checkpoint
from drkm.energy import Energy
from drkm.gram import Strategy
from drkm.kernels import Approximation, FeatureMap, Kernel
from drkm.kernels.bandwidth import MEDIAN_ROWS
from drkm.race import Race
from drkm.rows import Rows
from drkm.solvers import Penalty, Result, Solver, Status, solve
from drkm.solvers.base import Callback, GiveUp
from drkm.threads import one_thread

#: rounds of learning kernels between solves, first between loose ones, then between ones to the tolerance of the fit
LOOSE_ROUNDS, LEARNING_ROUNDS = 30, 60
#: the change of log σ² that ends either, and how far loose ones are solved
LEARNING_TOL, LEARNING_SOLVE_TOL = 1e-3, 1e-3
#: operations of a gradient below which more than one thread gains nothing (n = 1,500 with two layers), and on a busy
#: machine, where threads wait for each other, makes a fit up to a hundred times slower
SMALL_GRADIENT = 2e8
#: a layer with less of the energy than this is lost beside the others; its own kernel matrix must have more to give
FAINT = 1e-5


@dataclass(frozen=True)
class Plan:
    """Everything a fit has been asked for, checked, with one entry a layer where there is one a layer."""

    sizes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    eta: tuple[float, ...]
    lam: tuple[float, ...]
    strategy: Strategy
    solver: Solver
    center: bool = False
    init: str | Tensor = "kpca"
    n_init: int = 1
    axes: str | None = "ritz"
    learn_bandwidth: bool = False
    consistent: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    max_seconds: float | None = None
    seed: int = 0
    callbacks: Sequence[Callback] = ()


@dataclass(frozen=True)
class Trained:
    """A trained model, in the solver's own basis, with the rotations to the reported axes."""

    energy: Energy
    result: Result
    multipliers: Tensor
    rotation: list[Tensor]
    eigenvalues: list[Tensor]
    #: energies of all starts, None for those that were given up
    objectives: list[float | None]
    #: relative errors of approximate kernels, None for exact ones
    errors: list[float | None]
    #: trace of the Gram matrix of each layer
    traces: list[float]
    #: on how many samples the components of each layer rest
    supports: list[float]
    #: layers (counted from 1) whose learned σ² is at its bound
    at_bound: list[int] = field(default_factory=list)

    @property
    def faint(self) -> dict[int, float]:
        """Layers (counted from 1) whose share of the energy is so small that training hardly sees them."""
        sums = [float(values.sum()) for values in self.eigenvalues]
        energies = [own / eta for own, eta in zip(sums, self.energy.eta, strict=True)]
        shares = [part / sum(energies) if part else 0.0 for part in energies]
        layers = enumerate(zip(shares, sums, self.traces, strict=True), start=1)
        return {layer: share for layer, (share, own, trace) in layers if share < FAINT and own > FAINT * trace}

    @property
    def advice(self) -> str:
        """What to change if the fit did not converge."""
        if self.result.status in (Status.STALLED, Status.MAX_ITER):
            for layer, kernel in enumerate(self.energy.kernels[1:], start=2):
                if kernel.rough:
                    more = ", or raise max_iter" if self.result.status is Status.MAX_ITER else ""
                    return f"{type(kernel).__name__} in layer {layer} {kernel.rough} or a larger eta there{more}"
        return self.result.advice

    @property
    def message(self) -> str:
        """One sentence that says how the fit ended and what to change if it did not converge."""
        return f"{self.result.outcome}: {self.advice}" if self.advice else self.result.outcome


def train(X: Tensor | Rows, plan: Plan, checkpoint: Checkpoint | None = None) -> Trained:
    """Train a model on the rows of X."""
    energy = Energy(X, resolve_kernels(X, plan), plan.sizes, plan.eta, plan.strategy, plan.center)
    if checkpoint and plan.n_init > 1 and learning.trainable_layers(energy):
        raise ValueError("checkpoint: several starts that train a feature map cannot be resumed, use n_init=1")
    if reduction.current() and learning.trainable_layers(energy):
        raise ValueError('gram: "sharded" cannot train a feature map, use trainable=False or another gram')
    kernels = energy.kernels
    best_kernels = kernels
    race = Race()
    finished = checkpoint.finished_starts() if checkpoint else {}
    cut_short = False
    for number in range(plan.n_init):
        if number in finished:
            result, found = finished[number].result, finished[number].kernels(kernels)
        else:
            try:
                energy.set_kernels(_own_maps(kernels))
                energy.count.evaluations = 0
                with one_thread() if energy.cost.flops < SMALL_GRADIENT else nullcontext():
                    result = _run(energy, plan, race, checkpoint)
            except KeyboardInterrupt:
                # Before its solver begins a start has no point to return, but an earlier one may.
                if not race.results:
                    raise
                cut_short = True
                break
            except (FloatingPointError, torch.linalg.LinAlgError) as error:
                raise ValueError(_overflow(energy)) from error
            found = energy.kernels
            # The weights of a trained map are in the states of its training, not in a result.
            if checkpoint and not result.status.cut_short and not learning.trainable_layers(energy):
                checkpoint.finish_start(number, result, found)
        cut_short |= result.status.cut_short
        race.add(result)
        if race.best is result:
            best_kernels = found
        if result.status is Status.INTERRUPTED:
            break
    assert race.best is not None
    energy.set_kernels(best_kernels)
    bounded = learning.layers_at_bound(kernels, best_kernels)
    trained = replace(describe(energy, race.best, plan.axes, race.objectives), at_bound=bounded)
    if checkpoint and not checkpoint.keep and not cut_short:
        checkpoint.remove()
    return trained


def _overflow(energy: Energy) -> str:
    kind = str(energy.dtype).removeprefix("torch.")
    more_digits = ', or take dtype="float64"' if kind == "float32" else ""
    return (
        f"X: the energy or its gradient became NaN or inf in {kind}: divide the data by their typical size, check the "
        f"kernels, eta and init{more_digits}"
    )


def _own_maps(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels with copies of the maps that training changes in place: one set a start."""
    return [copy.deepcopy(k) if isinstance(k, FeatureMap) and k.trainable else k for k in kernels]


def describe(energy: Energy, result: Result, axes: str | None, objectives: Sequence[float | None]) -> Trained:
    """Return the trained model with its multipliers and axes."""
    H = result.H
    G = energy.evaluate(H).gradient
    rotation = axes_of.rotations(energy, H, axes)
    eigenvalues = axes_of.eigenvalue_estimates(energy, H, rotation)
    points = zip(energy.kernels, [energy.X, *energy.split(H)], strict=False)
    errors = [kernel.error(below) if isinstance(kernel, Approximation) else None for kernel, below in points]
    multipliers, traces, supports = stiefel.multipliers(H, G), layer_traces(energy, H), layer_supports(energy, H)
    return Trained(energy, result, multipliers, rotation, eigenvalues, list(objectives), errors, traces, supports)


def layer_traces(energy: Energy, H: Tensor) -> list[float]:
    """Return the trace of the Gram matrix of each layer."""
    own = [energy.gram(layer, H).diagonal().double().sum() for layer in range(len(energy.sizes))]
    return reduction.total(torch.stack(own)).tolist()


def layer_supports(energy: Energy, H: Tensor) -> list[float]:
    """Return on how many samples the components of each layer rest: (Σ_i ‖h_i‖²)²/Σ_i ‖h_i‖⁴, whatever the axes.

    It is n where all samples have codes of one length, and m where m samples share the layer and the others have none.
    """
    squares = torch.stack([block.double().square().sum(dim=1) for block in energy.split(H)])
    lengths, fourth = reduction.total(torch.stack([squares.sum(dim=1), squares.square().sum(dim=1)])).tolist()
    return [total**2 / power if power > 0 else 0.0 for total, power in zip(lengths, fourth, strict=True)]


def resolve_kernels(X: Tensor | Rows, plan: Plan) -> list[Kernel]:
    """Return the kernels of the model: with numbers for parameters, approximated if the strategy does that.

    Rules see some 2,000 rows of samples that are in a file.
    """
    kernels = []
    points = reduction.spread_rows(X, MEDIAN_ROWS) if isinstance(X, Rows) else X
    for layer, (kernel, size) in enumerate(zip(plan.kernels, plan.sizes, strict=True), start=1):
        resolved = kernel.resolve(points, layer=layer)
        kernels.append(plan.strategy.approximate(resolved, X if layer == 1 else points, layer=layer))
        # Any matrix with orthonormal columns: deep rules depend on nothing else.
        points = reduction.eye(len(X), size, like=X)
    return kernels


def first_point(energy: Energy, plan: Plan, race: Race) -> Tensor:
    """Return where the next start begins: where it was asked to, then at random points around that or anew."""
    generator = torch.Generator().manual_seed(plan.seed + len(race.results))
    if isinstance(plan.init, Tensor):
        H = starts.given(energy, plan.init)
    elif plan.init == "random":
        return starts.random(energy, generator)
    elif plan.init == "orthogonal":
        return starts.orthogonal(energy, generator)
    else:
        H = starts.kernel_pca(energy)
    return starts.further(energy, H, race.length, generator) if race.results else H


def _run(energy: Energy, plan: Plan, race: Race, checkpoint: Checkpoint | None) -> Result:
    number = len(race.results)
    learns = plan.learn_bandwidth and not isinstance(plan.solver, Penalty)
    H = first_point(energy, plan, race)
    if not learns and not learning.trainable_layers(energy):
        give_up = race.is_behind if plan.solver.on_manifold else None
        return _solve(energy, plan, H, plan.tol, (number, 0), checkpoint, give_up)
    layers = learning.learnable_layers(energy) if learns else []
    begin = {layer: energy.kernels[layer].bandwidth for layer in layers}
    interrupted = checkpoint.interrupted_stage(number) if checkpoint else None
    stage = 0
    # A trained map is not in the file: its rounds are repeated, to the same result.
    if interrupted and not learning.trainable_layers(energy):
        stage, sigma2 = interrupted
        learning.set_bandwidths(energy, {layer: value for layer, value in enumerate(sigma2) if value is not None})
    # All rounds together are one start, with one time limit and one Ctrl-C.
    clock = time.perf_counter()
    while stage < LEARNING_ROUNDS:
        loose = stage < LOOSE_ROUNDS
        tol = max(plan.tol, LEARNING_SOLVE_TOL) if loose else plan.tol
        result = _solve(energy, _rest(plan, clock), H, tol, (number, stage), checkpoint)
        if result.status.cut_short or not (loose or result.converged):
            return result
        H = result.H
        try:
            change = learning.improve_bandwidths(energy, H, begin) if layers else 0.0
            if learning.trainable_layers(energy):
                change = max(change, learning.improve_feature_maps(energy, H))
        except KeyboardInterrupt:
            return _interrupted(energy, plan, H)
        stage += 1
        if change <= LEARNING_TOL:
            # Loosely solved codes that no longer move say little: only what the next ones settle on is the end.
            if not loose:
                break
            stage = LOOSE_ROUNDS
    return _solve(energy, _rest(plan, clock), H, plan.tol, (number, LEARNING_ROUNDS), checkpoint)


def _rest(plan: Plan, clock: float) -> Plan:
    """Return the plan with the time that is left of it; never none, so that a run sees where it is."""
    if plan.max_seconds is None:
        return plan
    spent = reduction.agreed(time.perf_counter() - clock)
    return replace(plan, max_seconds=max(1e-9, plan.max_seconds - spent))


def _interrupted(energy: Energy, plan: Plan, H: Tensor) -> Result:
    """Return the result of a start that was interrupted while its kernels were changed."""
    energy.form_first()
    return _solve(energy, replace(plan, init=H, callbacks=(lambda _: True,)), H, plan.tol, (0, 0), None)


def _solve(
    energy: Energy,
    plan: Plan,
    H: Tensor,
    tol: float,
    stage: tuple[int, int],
    checkpoint: Checkpoint | None,
    give_up: GiveUp | None = None,
) -> Result:
    return solve(
        plan.solver,
        energy,
        H,
        tol=tol,
        max_iter=plan.max_iter,
        max_seconds=plan.max_seconds,
        # A caller who gives the codes to begin with means these.
        # Later rounds of learning go on from the codes of the one before, or the energy could rise.
        prepare=not isinstance(plan.init, Tensor) and stage[1] == 0,
        consistent=plan.consistent and tol == plan.tol,
        callbacks=plan.callbacks,
        give_up=give_up,
        journal=checkpoint.journal(stage, energy.kernels) if checkpoint else None,
    )
