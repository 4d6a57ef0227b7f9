"""Validation of the estimator's parameters: every wrong value is refused with an error that names it."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drkm import gram, kernels, solvers
from drkm.distributed import collectives
from drkm.gram import Strategy
from drkm.kernels import Kernel
from drkm.kernels.bandwidth import check_bandwidth
from drkm.machine.devices import LEAST_ON_GPU
from drkm.machine.layout import aligned, copied
from drkm.problem import axes
from drkm.problem.shrinkage import Shrinkage
from drkm.solvers import Solver
from drkm.training import starts
from drkm.training.checkpoint import Checkpoint
from drkm.training.plan import Plan
from drkm.validation import checks
from drkm.validation.checks import boolean, integer, is_list, number, one_of, per_layer
from drkm.validation.samples import real_numbers
from drkm.wording import dtype_name

ENCODERS = ("stationary", "projection")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def plan_of(parameters: dict[str, Any], n: int, strategy: Strategy) -> Plan:
    """Validate all parameters and return the plan of a fit to n samples with this Gram strategy."""
    if n < 2:
        raise ValueError(f"X: expected at least 2 samples in all processes together, got {n}")
    sizes = layer_sizes(parameters["n_components"], n)
    layers = len(sizes)
    lam = per_layer("lam", parameters["lam"], layers)
    learn_bandwidth = boolean("learn_bandwidth", parameters["learn_bandwidth"])
    chosen = layer_kernels(parameters["kernel"], layers, parameters["sigma2"])
    if learn_bandwidth and not any(kernel.has_bandwidth for kernel in chosen):
        raise ValueError("learn_bandwidth: none of the kernels has a bandwidth to learn, got learn_bandwidth=True")
    checks.random_state(parameters["random_state"])
    Shrinkage.of(parameters["shrink"])
    init, n_init = start(parameters["init"]), integer("n_init", parameters["n_init"], 1)
    # A seed is drawn only if it is needed, so that an unused random state does not advance.
    needs_seed = n_init > 1 or (isinstance(init, str) and init in starts.RANDOM)
    max_seconds, verbose = parameters["max_seconds"], parameters["verbose"]
    integer("verbose", int(verbose) if isinstance(verbose, bool | np.bool_) else verbose, 0)
    return Plan(
        sizes=sizes,
        kernels=chosen,
        eta=layer_weights(parameters["eta"], layers),
        lam=lam,
        strategy=strategy,
        solver=solver(parameters["solver"], lam, learn_bandwidth),
        center=boolean("center", parameters["center"]),
        init=init,
        n_init=n_init,
        seed=seed(parameters["random_state"]) if needs_seed else 0,
        axes=one_of("axes", parameters["axes"], axes.NAMES),
        learn_bandwidth=learn_bandwidth,
        encoder=one_of("encoder", parameters["encoder"], ENCODERS),
        tol=number("tol", parameters["tol"], positive=False),
        max_iter=integer("max_iter", parameters["max_iter"], 1),
        max_seconds=None if max_seconds is None else number("max_seconds", max_seconds),
        callbacks=functions("callbacks", parameters["callbacks"]),
    )


def layer_sizes(n_components: Any, n: int) -> tuple[int, ...]:
    """Return the number of components of each layer."""
    given = [n_components] if isinstance(n_components, numbers.Integral) else n_components
    if not is_list(given):
        raise TypeError(f"n_components: expected an integer or one integer per layer, got {n_components!r}")
    if len(given) == 0:
        raise ValueError("n_components: expected at least one layer, got none")
    sizes = tuple(integer("n_components", size, 1) for size in given)
    if sum(sizes) > n:
        total = sum(sizes)
        raise ValueError(f"n_components: {total} components need at least {total} samples, got {n} samples")
    return sizes


def layer_weights(eta: Any, layers: int) -> tuple[float, ...] | None:
    """Return η of each layer, or None if it is chosen from the samples; the weight of a single layer is irrelevant."""
    if isinstance(eta, str) and eta == "auto":
        return (1.0,) if layers == 1 else None
    if not (isinstance(eta, numbers.Real) or is_list(eta)):
        raise TypeError(f'eta: expected "auto", a positive number or one per layer, got {eta!r}')
    return per_layer("eta", eta, layers)


def layer_kernels(kernel: Any, layers: int, sigma2: Any = None) -> tuple[Kernel, ...]:
    """Return one kernel per layer from a name, an object, or one of those per layer; `sigma2` applies to names."""
    given = [kernel] * layers if isinstance(kernel, str | Kernel) or _is_function(kernel) else kernel
    if not is_list(given):
        raise TypeError(f"kernel: expected a name, a drkm.kernels object or one of those per layer, got {kernel!r}")
    if len(given) != layers:
        raise ValueError(f"kernel: expected one per layer, {layers} in all, got {len(given)}")
    chosen = []
    for entry in given:
        if _is_function(entry):
            own = 'FeatureMap(function) if it returns features of samples, else as its matrix with "precomputed"'
            raise TypeError(f"kernel: pass a function as {own}, got {entry!r}")
        if not isinstance(entry, str | Kernel):
            raise TypeError(f"kernel: expected a name or a drkm.kernels object, got {entry!r}")
        chosen.append(kernels.by_name(entry) if isinstance(entry, str) else entry)
    named = [isinstance(entry, str) for entry in given]
    return tuple(map(_with_bandwidth, chosen, bandwidths(sigma2, layers), named))


def bandwidths(sigma2: Any, layers: int) -> list[float | str | None]:
    """Return σ² of each layer (a number, a rule, or None for the kernel's own) from one value or one per layer."""
    given = sigma2.tolist() if hasattr(sigma2, "tolist") else sigma2
    widths = list(given) if is_list(given) else [given] * layers
    if len(widths) != layers:
        raise ValueError(f"sigma2: expected one per layer, {layers} in all, got {len(widths)}")
    return [None if width is None or width == "auto" else check_bandwidth(width) for width in widths]


def _with_bandwidth(kernel: Kernel, sigma2: float | str | None, named: bool) -> Kernel:
    if sigma2 is None:
        return kernel
    kind = type(kernel).__name__
    if not kernel.has_bandwidth:
        raise ValueError(
            f'sigma2: the kernel {kind.lower()} has no bandwidth, give "auto" in its place, got {sigma2!r}'
        )
    if not named:
        own = f"{kind}(sigma2={sigma2!r})"
        raise ValueError(f"sigma2: a kernel object has its own, give {own} as kernel or its name, got {sigma2!r}")
    return kernel.with_parameters(sigma2=sigma2)


def _is_function(kernel: Any) -> bool:
    return callable(kernel) and not isinstance(kernel, Kernel | type)


def strategy(value: Any) -> Strategy:
    """Return the strategy with this name, or the given object."""
    if isinstance(value, Strategy):
        return value
    if not isinstance(value, str):
        raise TypeError(f"gram: expected a name or a drkm.gram object, got {value!r}")
    return gram.by_name(value)


def solver(value: Any, lam: Sequence[float], learn_bandwidth: bool) -> Solver:
    """Return the solver with this name, or the given object, adapted to the model."""
    if not isinstance(value, str | Solver):
        raise TypeError(f"solver: expected a name or a solver object, got {value!r}")
    chosen = solvers.by_name(value, len(lam)) if isinstance(value, str) else value
    return chosen.of_model(lam, learn_bandwidth)


def start(value: Any) -> str | Tensor:
    """Return the name of a start, or an array of codes."""
    if isinstance(value, str):
        return one_of("init", value, starts.NAMES)
    try:
        return array("init", value)
    except TypeError as error:
        raise TypeError(f"{error}, allowed are {', '.join(starts.NAMES)} or an array") from error


def checkpoint(value: Any) -> Checkpoint | None:
    """Return the checkpoint at a path, or the given object."""
    if value is None or isinstance(value, Checkpoint):
        return value
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"checkpoint: expected a path or a Checkpoint, got {value!r}")
    return Checkpoint(value)


def seed(random_state: Any) -> int:
    """Return a seed drawn from a random state; the same in all processes that share the samples."""
    return int(collectives.agreed(float(checks.random_state(random_state).randint(2**31))))


def array(name: str, value: Any) -> Tensor:
    """Return numbers as a float64 tensor in our memory layout; tensors stay on their device."""
    if isinstance(value, Tensor):
        return aligned(checks.dense_real(name, value).detach().double())
    return copied(real_numbers(name, value))


def grid(name: str, value: Any) -> Tensor:
    """Return finite numbers as a vector."""
    numbers = array(name, value).reshape(-1)
    if not torch.isfinite(numbers).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or inf")
    return numbers


def device(value: Any, data: torch.device | None, n: int) -> torch.device:
    """Return the given device, that of the data, or a GPU if there is one and the problem is large."""
    if isinstance(value, str) and value == "auto":
        if data is not None:
            return data
        return torch.device("cuda" if n >= LEAST_ON_GPU and torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(value)
        # Copy one number there and back: the device "meta" holds no values.
        if found.type != "cpu":
            torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device: {value!r} is not available here, use 'auto' or 'cpu'") from error
    return found


def dtype(value: Any, where: torch.device) -> torch.dtype:
    """Return the precision: float64 on a CPU and float32 on a GPU by default."""
    if value == "auto":
        return torch.float32 if where.type == "cuda" else torch.float64
    name = np.dtype(value).name if isinstance(value, type) else dtype_name(value)
    if name not in DTYPES:
        raise ValueError(f"dtype: got {value!r}, allowed are auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def functions(name: str, value: Any) -> tuple[Any, ...]:
    """Return a tuple of callables."""
    given = (value,) if callable(value) or not isinstance(value, Iterable) else tuple(value)
    for entry in given:
        if not callable(entry):
            raise TypeError(f"{name}: expected functions of one history entry, got {entry!r}")
    return given


def component_columns(components: Any, slices: Sequence[slice], called: str = "components") -> list[int]:
    """Return the columns of the codes that `components` names: None, "layer l" or pairs."""
    if components is None:
        return list(range(slices[-1].stop))
    if isinstance(components, str):
        names = {f"layer {number}": block for number, block in enumerate(slices, 1)}
        one_of("components", components, tuple(names))
        return list(range(names[components].start, names[components].stop))
    if not isinstance(components, Iterable):
        raise TypeError(f"components: expected a list of pairs of layer and index, got {components!r}")
    columns = []
    for entry in components:
        try:
            layer, index = entry
            # bool is a subclass of int, and numpy's an index before its version 2, but both are mistakes here.
            if any(isinstance(part, bool | np.bool_) for part in (layer, index)):
                raise TypeError("truth values")
            layer, index = operator.index(layer), operator.index(index)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{called}: expected pairs of layer and index, got {entry!r}") from error
        if not 1 <= layer <= len(slices):
            raise ValueError(f"{called}: layers are 1 to {len(slices)}, got {layer}")
        block = slices[layer - 1]
        if not 0 <= index < block.stop - block.start:
            raise ValueError(f"{called}: layer {layer} has indices 0 to {block.stop - block.start - 1}, got {index}")
        columns.append(block.start + index)
    if not columns:
        raise ValueError("components: expected at least one component, got none")
    return columns
