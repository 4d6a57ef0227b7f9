"""The training run: resolve kernels, start, solve, choose the best of several starts, fix the axes."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from drkm import gram as grams
from drkm.distributed import collectives
from drkm.files.rows import Rows, in_memory, tiles
from drkm.fitted import FittedModel
from drkm.gram import Gram
from drkm.kernels import Kernel
from drkm.kernels.bandwidth import MEDIAN_ROWS
from drkm.machine.threads import one_thread
from drkm.problem import learning
from drkm.problem.energy import Energy, workload
from drkm.solvers import Penalty, Result, Status, solve
from drkm.solvers.accuracy import ROUNDING
from drkm.solvers.loop import Abandon
from drkm.solvers.state import Dimensions
from drkm.training import layer_weights, starts
from drkm.training.checkpoint import Checkpoint
from drkm.training.plan import Plan
from drkm.training.race import Race
from drkm.training.record import record_of, with_all_samples, without_samples
from drkm.wording import dtype_name

#: maximum numbers of rounds of learning kernels between solves: of loose rounds, and of all rounds
LOOSE_ROUNDS, LEARNING_ROUNDS = 30, 60
#: the change of log σ² that ends each kind of round, and the tolerance of loose solves
LEARNING_TOL, LEARNING_SOLVE_TOL = 1e-3, 1e-3
#: operations of a gradient below which more than one thread gains nothing (n = 1,500 with two layers); on a busy
#: machine, where threads wait for each other, several threads make such a fit up to a hundred times slower
SMALL_GRADIENT = 2e8


def train(X: Tensor | Rows, plan: Plan, checkpoint: Checkpoint | None = None) -> tuple[FittedModel, Gram | None]:
    """Fit the model to the rows of X; also return the Gram operator of the first layer if it covers all samples."""
    if plan.kernels[0].is_given:
        X = in_memory(X)
    energy = _energy(X, plan)
    if learning.trainable_layers(energy):
        _check_training_of_maps(plan, checkpoint)
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
                with _computing(energy):
                    result = _run(energy, plan, race, checkpoint)
            except KeyboardInterrupt:
                # A start has no result before its solver begins, but an earlier start may have one.
                if not race.results:
                    raise
                cut_short = True
                break
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
    # Compute features of a learned kernel again, outside the thread limit, to get the same bits as from a file.
    pairs = zip(best_kernels, kernels, strict=True)
    energy.set_kernels([best if best is first else best.with_parameters() for best, first in pairs])
    with _computing(energy):
        fitted = record_of(energy, race.best, plan, race.objectives, learning.layers_at_bound(kernels, best_kernels))
    if checkpoint:
        checkpoint.cut_short = cut_short
    if collectives.current() and any(kernel.is_pairwise for kernel in fitted.kernels):
        # Its tiles are no longer needed, and the samples of all take memory.
        del energy
        return with_all_samples(fitted), None
    return without_samples(fitted, energy.first_uncentered)


def _check_training_of_maps(plan: Plan, checkpoint: Checkpoint | None) -> None:
    """Refuse options that a fit with trainable feature maps does not support."""
    if checkpoint and plan.n_init > 1:
        raise ValueError("checkpoint: several starts that train a feature map cannot be resumed, use n_init=1")
    if collectives.current():
        raise ValueError('gram: "sharded" cannot train a feature map, use trainable=False or another gram')


def dimensions(X: Tensor | Rows, plan: Plan) -> Dimensions:
    """Return the dimensions against which states of the solver are checked in a fit to the rows of X."""
    widths = tuple(kernel.has_bandwidth for kernel in plan.kernels)
    learns = plan.learn_bandwidth or any(k.trainable for k in plan.kernels)
    return Dimensions(len(X), plan.sizes, X.dtype, X.device, widths, LEARNING_ROUNDS if learns else 0)


def _energy(X: Tensor | Rows, plan: Plan) -> Energy:
    """Return the energy to minimise, with all rules of the plan resolved to numbers."""
    # Refuse what does not fit before anything is allocated, for example by a bandwidth rule.
    grams.check(plan.strategy, workload(X, plan.kernels, plan.sizes, plan.blocks))
    eta = plan.eta or (1.0,) * len(plan.sizes)
    plan.tell("kernels")
    kernels = resolve_kernels(X, plan)
    plan.tell("forming K_1")
    # The number of features of a map is known now: recompute what they leave of a budget.
    energy = Energy(X, kernels, plan.sizes, eta, plan.strategy, plan.center, blocks=plan.blocks)
    _check_size(energy)
    if plan.eta is None:
        plan.tell("weights of the layers")
        with _computing(energy):
            energy.eta = layer_weights.balanced(energy)
    return energy


def _check_size(energy: Energy) -> None:
    """Refuse a first layer with a gradient K_1 H_1/η_1 so short that squares of its residual would underflow.

    Its length is about the mean of the diagonal of K_1 over η_1, or larger. Zero is allowed: samples may be zero.
    """
    limits, eta = torch.finfo(energy.dtype), energy.eta[0]
    # No tolerance asks for a residual below this many rounding errors of the gradient.
    least = math.sqrt(limits.tiny) / (ROUNDING * limits.eps)
    size = float(collectives.mean(energy.first_uncentered.diagonal()))
    if 0 < size < least or (size == 0 and _vanishes(energy)):
        what = f"X: kernel values of {size:.1e} are too small for"
        raise ValueError(_in_precision(energy, what, ", divide the data by their typical size"))
    if 0 < size < least * eta:
        advice = f", expected at most {size / least:.1e} for kernel values of {size:.1e}"
        raise ValueError(_in_precision(energy, f"eta: {eta:.1e} is too large for", advice))


def _vanishes(energy: Energy) -> bool:
    """Whether a kernel of dot products that is 0 is so because powers of its samples have underflowed."""
    if "offset" not in energy.kernels[0].original.parameters:
        return False
    return bool(collectives.agreed(any(bool(energy.X[rows].any()) for rows in tiles(energy.X))))


@contextmanager
def _computing(energy: Energy) -> Iterator[None]:
    """Use one thread if gradients are little work, and raise an error with advice if numbers are not finite."""
    try:
        with one_thread(energy.cost.flops < SMALL_GRADIENT):
            yield
    except (FloatingPointError, np.linalg.LinAlgError, torch.linalg.LinAlgError) as error:
        advice = ": divide the data by their typical size, check the kernels, eta and init"
        what = "X: the energy or its gradient became NaN or inf in"
        raise ValueError(_in_precision(energy, what, advice)) from error


def _in_precision(energy: Energy, what: str, advice: str) -> str:
    """Return an error about numbers that the precision of the fit cannot hold."""
    kind = dtype_name(energy.dtype)
    return f"{what} {kind}{advice}" + (', or take dtype="float64"' if kind == "float32" else "")


def _own_maps(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Copy the feature maps that training changes in place: one set per start."""
    return [copy.deepcopy(k) if k.trainable else k for k in kernels]


def resolve_kernels(X: Tensor | Rows, plan: Plan) -> list[Kernel]:
    """Return the kernels of the model: with all parameters as numbers, approximated if the strategy says so.

    Rules use about 2,000 rows of samples that are in a file.
    """
    kernels = []
    points = collectives.spread_rows(X, MEDIAN_ROWS) if isinstance(X, Rows) else X
    for layer, (kernel, size) in enumerate(zip(plan.kernels, plan.sizes, strict=True), start=1):
        resolved = kernel.resolve(points, layer=layer)
        kernels.append(plan.strategy.approximate(resolved, X if layer == 1 else points, layer=layer))
        # Any matrix with orthonormal columns will do: rules of deep layers depend on nothing else.
        points = collectives.eye(len(X), size, like=X)
    return kernels


def first_point(energy: Energy, plan: Plan, race: Race) -> Tensor:
    """Return the initial point of the next start: the given one first, then random points around it or fresh ones."""
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
    """Solve from the point of the next start, and learn kernels if the plan says so."""
    plan.tell("starting point")
    H = first_point(energy, plan, race)
    plan.tell("first iteration")
    # Algorithm 1 learns bandwidths together with the codes.
    learns = plan.learn_bandwidth and not isinstance(plan.solver, Penalty)
    if learns or learning.trainable_layers(energy):
        layers = learning.learnable_layers(energy) if learns else []
        return _learn(energy, plan, H, len(race.results), layers, checkpoint)
    abandon = race.is_behind if plan.solver.on_manifold else None
    return _solve(energy, plan, H, plan.tol, (len(race.results), 0), checkpoint, abandon)


def _learn(
    energy: Energy, plan: Plan, H: Tensor, number: int, layers: Sequence[int], checkpoint: Checkpoint | None
) -> Result:
    """Alternate between codes and kernels: solve, then improve bandwidths of these layers and trainable maps."""
    begin = {layer: energy.kernels[layer].bandwidth for layer in layers}
    interrupted = checkpoint.interrupted_stage(number) if checkpoint else None
    stage = 0
    # A trained map is not in the file: its rounds are repeated, with the same result.
    if interrupted and not learning.trainable_layers(energy):
        stage, sigma2 = interrupted
        learning.set_bandwidths(energy, {layer: value for layer, value in enumerate(sigma2) if value is not None})
    # All rounds together are one start, with one time limit and one Ctrl-C handler.
    spent = 0.0
    while stage < LEARNING_ROUNDS:
        loose = stage < LOOSE_ROUNDS
        tol = max(plan.tol, LEARNING_SOLVE_TOL) if loose else plan.tol
        result = _solve(energy, plan, H, tol, (number, stage), checkpoint, spent=spent)
        if result.status.cut_short or not (loose or result.converged):
            return result
        H, clock = result.H, time.perf_counter()
        try:
            change = learning.improve_bandwidths(energy, H, begin) if layers else 0.0
            if learning.trainable_layers(energy):
                change = max(change, learning.improve_feature_maps(energy, H))
        except KeyboardInterrupt:
            return _interrupted(energy, plan, H, result.seconds)
        stage, spent = stage + 1, result.seconds + time.perf_counter() - clock
        if change <= LEARNING_TOL:
            # Loose solves that change nothing prove little: only the tighter rounds decide when to stop.
            if not loose:
                break
            stage = LOOSE_ROUNDS
    return _solve(energy, plan, H, plan.tol, (number, LEARNING_ROUNDS), checkpoint, spent=spent)


def _interrupted(energy: Energy, plan: Plan, H: Tensor, spent: float) -> Result:
    """Return the result of a start that was interrupted while its kernels were being changed."""
    energy.form_first_gram()
    return _solve(energy, replace(plan, init=H, callbacks=(lambda _: True,)), H, plan.tol, (0, 0), None, spent=spent)


def _solve(
    energy: Energy,
    plan: Plan,
    H: Tensor,
    tol: float,
    stage: tuple[int, int],
    checkpoint: Checkpoint | None,
    abandon: Abandon | None = None,
    *,
    spent: float = 0.0,
) -> Result:
    return solve(
        plan.solver,
        energy,
        H,
        tol=tol,
        max_iter=plan.max_iter,
        max_seconds=plan.max_seconds,
        # Initial codes that the caller gave are used without a warm-up.
        # Later rounds of learning continue from the codes of the previous one; otherwise the energy could rise.
        prepare=not isinstance(plan.init, Tensor) and stage[1] == 0,
        callbacks=plan.callbacks,
        abandon=abandon,
        journal=checkpoint.journal(stage, energy.kernels) if checkpoint else None,
        spent=spent,
    )
