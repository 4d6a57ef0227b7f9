"""Model files: one safetensors file with arrays as tensors and everything else as JSON.

A file holds the samples, unless the first layer has Nyström features: encoding and pre-images then need only the
landmarks and a few numbers per sample. It never holds code: feature maps are stored as the parameters of their module,
and `load` needs the module itself.

Tensors, for n samples of d features and S components in all layers:

    H, residual             codes in the solver's basis and the remaining gradient, n×S
    X                       samples, n×d, or in their place: first.phi, first.lengths, first.basis, largest
    history                 one row per iteration, or per some of them, in the order of `HISTORY_COLUMNS`
    row_means               means of the rows of K_1, n, if it is centred
    multipliers             Λ, S×S
    rotation{l}, eigenvalues{l}     axes and diagonal of H_lᵀK_lH_l of layer l, counted from 0
    kernel{l}.*, map{l}.*   landmarks and factor of an approximation; no factor if it is formed again from landmarks
                            and X, and no landmarks if these are X; lengths of a few frequencies, which are drawn
                            again from the seed in the header; parameters of a feature map's module
    preparation.*           how the data were prepared before the fit

Version 2 added models without samples, version 3 frequencies that are drawn again with the lengths of all of them,
version 4 landmarks that are the samples, version 5 the history as a tensor, and `KernelPCA`, for which see
`kernel_pca_file`; all other files are version 1.

The header has the parameters of the estimator, the kernels as given and with numbers, sizes, η and λ, the names of the
features, and the certificate. `model_parts` lists its keys, and refuses a file whose parts are inconsistent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from drkm import solvers
from drkm.distributed import collectives
from drkm.files import container
from drkm.files.rows import AbsentRows, Rows, in_memory, largest_values
from drkm.files.tensor_file import Stored
from drkm.fitted import FittedModel
from drkm.gram import Cost
from drkm.gram.features import CodedFeatures
from drkm.inputs.preparation import Preparation
from drkm.kernels import Kernel, entries
from drkm.persistence import model_parts, strategies
from drkm.persistence.model_format import KIND, VERSION
from drkm.persistence.model_parts import LANDMARKS, PREPARATION
from drkm.problem.energy import Energy
from drkm.problem.shrinkage import Shrinkage
from drkm.solvers import Result
from drkm.solvers.result import history_entries, history_tensor
from drkm.training import layer_supports, layer_traces, parameters, row_means
from drkm.wording import dtype_name

#: parameters that a file can hold unchanged; objects among them are stored by name or left at their default
PLAIN = (
    "n_components",
    "sigma2",
    "center",
    "eta",
    "lam",
    "n_init",
    "axes",
    "encoder",
    "shrink",
    "learn_bandwidth",
    "tol",
    "max_iter",
    "max_seconds",
    "verbose",
)
NAMED = ("init", "solver", "dtype")
#: values of parameters that a file may lack; among them a seed, so that none is drawn
DEFAULTS = {
    "sigma2": None,
    "shrink": None,
    "init": "kpca",
    "solver": "auto",
    "gram": "auto",
    "dtype": "auto",
    "random_state": 0,
    "callbacks": (),
}


@dataclass(frozen=True)
class SavedModel:
    """The content of a model file: the record of a fit, and what the estimator needs besides.

    Attributes
    ----------
    fitted : FittedModel
    parameters : dict
        Parameters of the estimator, as far as a file can hold them.
    feature_names : sequence of str
        Names of the features seen by `fit`; empty if they have none.
    kind_of_array : {"numpy", "torch", "pandas"}
        Type of the data that were passed to `fit`.
    preparation : Preparation, optional
        How the data were prepared before the fit.
    """

    fitted: FittedModel
    parameters: Mapping[str, Any]
    feature_names: Sequence[str]
    kind_of_array: str
    preparation: Preparation | None = None


def write(path: str | os.PathLike[str], saved: SavedModel) -> None:
    """Write a fitted model; if processes share its samples, all of them must call this, and the first one writes."""
    fitted = saved.fitted.as_stored()
    # Before samples are gathered, because it may be refused.
    layers, asked = (
        [entries.entry_of(kernel) for kernel in fitted.kernels],
        entries.asked_entry(saved.parameters["kernel"]),
    )
    tensors = _sample_tensors(fitted)
    if not collectives.is_first():
        return
    tensors |= {"multipliers": fitted.multipliers, "history": history_tensor(fitted.result.history)}
    for layer, (R, values) in enumerate(zip(fitted.rotation, fitted.eigenvalues, strict=True)):
        tensors[f"rotation{layer}"] = R
        tensors[f"eigenvalues{layer}"] = values
    tensors |= entries.arrays_of(fitted.kernels)
    if any("formed" in entry for entry in layers) and fitted.landmarks_are_samples:
        del tensors[LANDMARKS]
    header: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "parameters": _describe_parameters(saved.parameters, fitted.H.dtype),
        "kernels": layers,
        "asked": asked,
        "sizes": fitted.sizes,
        "eta": fitted.eta,
        "lam": fitted.lam,
        "axes": fitted.axes,
        "n_features": fitted.X.shape[1],
        "feature_names": list(saved.feature_names),
        "kind_of_array": saved.kind_of_array,
        "objectives": fitted.objectives,
        "errors": fitted.errors,
        "traces": fitted.traces,
        "operator": fitted.operator,
        "cost": vars(fitted.cost),
        "at_bound": fitted.at_bound,
        "code_error": fitted.code_error,
        "seconds": fitted.seconds,
        "result": {name: value for name, value in fitted.result.facts().items() if name != "history"},
    }
    if saved.preparation is not None:
        more, header["preparation"] = saved.preparation.parts()
        tensors |= {PREPARATION + name: tensor for name, tensor in more.items()}
    container.write(path, tensors, header)


def _sample_tensors(fitted: FittedModel) -> dict[str, Tensor | Rows]:
    """Return the per-sample tensors of a file, for the samples of all processes."""
    if not fitted.is_shared:
        # Each process has them all.
        with collectives.shared(None):
            return _all_sample_tensors(fitted)
    return _all_sample_tensors(fitted)


def _all_sample_tensors(fitted: FittedModel) -> dict[str, Tensor | Rows]:
    tensors: dict[str, Tensor | Rows] = {
        "H": collectives.gather(fitted.H),
        "residual": collectives.gather(fitted.residual),
    }
    if fitted.row_means is not None:
        tensors["row_means"] = fitted.row_means
    features = fitted.features
    if features is None:
        # Samples in a file are copied into the model file a few rows at a time.
        alone = collectives.current() is None
        return tensors | {"X": fitted.X if alone else collectives.gather(in_memory(fitted.X))}
    return tensors | {
        "first.phi": collectives.gather(features.phi),
        "first.lengths": collectives.gather(features.lengths),
        "first.basis": features.basis,
        "largest": collectives.gather(largest_values(fitted.X), 1),
    }


def rebuilt(
    stored: Mapping[str, Stored],
    header: dict[str, Any],
    feature_maps: Mapping[int, Any],
    device: str | torch.device = "cpu",
) -> SavedModel:
    """Rebuild the content of a file of a `ConstrDRKM`, or raise an error that names the wrong part."""
    tensors = container.as_tensors(stored, device)
    if "history" in tensors:
        header["result"]["history"] = history_entries(tensors["history"])
    model_parts.check(tensors, header)
    return _rebuild(tensors, header, feature_maps)


def _rebuild(tensors: dict[str, Tensor], header: dict[str, Any], feature_maps: Mapping[int, Any]) -> SavedModel:
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in header["parameters"].items()
    }
    if "gram" in chosen:
        chosen["gram"] = strategies.read(chosen["gram"])
    if isinstance(chosen.get("solver"), dict):
        chosen["solver"] = solvers.NAMES.written(chosen["solver"]["name"])(**chosen["solver"]["settings"])
    if header["kernels"][0].get("formed"):
        # Landmarks that are not in the file are the samples.
        tensors = {LANDMARKS: tensors["X"], **tensors}
    H = tensors["H"]
    layers = tuple(
        entries.trained_kernel(entry, layer, tensors, feature_maps, H) for layer, entry in enumerate(header["kernels"])
    )
    chosen["kernel"] = entries.asked_kernel(header["asked"], layers) if "asked" in header else list(layers)
    _check_plan(chosen, header, len(H))
    for kernel, error in zip(layers, header.get("errors", []), strict=False):
        if (error is None) != (kernel.original is kernel):
            raise ValueError(
                f"errors: expected one for each kernel that is approximate, got {error} for {kernel.describe()}"
            )
    return SavedModel(
        _fitted(tensors, header, layers, chosen),
        chosen,
        header["feature_names"],
        header["kind_of_array"],
        model_parts.preparation(tensors, header),
    )


def _fitted(
    tensors: dict[str, Tensor], header: dict[str, Any], layers: tuple[Kernel, ...], chosen: dict[str, Any]
) -> FittedModel:
    """Rebuild the record of the fit; what files of the first versions lack is computed."""
    X: Tensor | Rows
    if "X" in tensors:
        X, features = tensors["X"], None
    else:
        X = AbsentRows((len(tensors["H"]), header["n_features"]), tensors["largest"])
        features = CodedFeatures(tensors["first.phi"], tensors["first.basis"], tensors["first.lengths"])
    strategy, center = parameters.strategy(chosen.get("gram", "auto")), bool(chosen["center"])
    result, count = Result.from_facts(tensors["H"], header["result"]), range(len(layers))
    if "traces" in header:
        gram_facts = _gram_facts_in_file(tensors, header, centred_matrix=center and not layers[0].is_explicit)
    else:
        energy = Energy(X, layers, header["sizes"], header["eta"], strategy, center, features)
        gram_facts = _gram_facts_computed(energy, result.H)
    return FittedModel(
        kernels=layers,
        X=X,
        sizes=tuple(header["sizes"]),
        eta=tuple(map(float, header["eta"])),
        lam=tuple(map(float, header["lam"])),
        center=center,
        axes=header["axes"],
        encoder=chosen["encoder"],
        strategy=strategy,
        n=len(X),
        result=result,
        multipliers=tensors["multipliers"],
        # Files of earlier versions lack these: their fits continued until the residual was negligible.
        residual=tensors.get("residual", torch.zeros_like(result.H, dtype=torch.float32)),
        code_error=header.get("code_error", 0.0),
        rotation=tuple(tensors[f"rotation{layer}"] for layer in count),
        eigenvalues=tuple(tensors[f"eigenvalues{layer}"] for layer in count),
        supports=layer_supports(result.H, header["sizes"]),
        errors=tuple(header.get("errors", [None] * len(layers))),
        objectives=tuple(header["objectives"]),
        at_bound=tuple(header.get("at_bound", [])),
        seconds=float(header.get("seconds", result.seconds)),
        features=features,
        **gram_facts,
    )


def _gram_facts_in_file(tensors: dict[str, Tensor], header: dict[str, Any], *, centred_matrix: bool) -> dict[str, Any]:
    """Return the facts about the Gram matrices that a file holds."""
    if centred_matrix != ("row_means" in tensors):
        raise ValueError("row_means: expected them where a kernel matrix is centred, and only there")
    return {
        "operator": header["operator"],
        "cost": Cost(**header["cost"]),
        "traces": tuple(header["traces"]),
        "row_means": tensors.get("row_means"),
    }


def _gram_facts_computed(energy: Energy, H: Tensor) -> dict[str, Any]:
    """Compute the same from the energy, for files of the first versions, which do not hold them."""
    return {
        "operator": energy.strategy.describe(),
        "cost": energy.cost,
        "traces": layer_traces(energy, H),
        "row_means": row_means(energy),
    }


def _check_plan(chosen: dict[str, Any], header: dict[str, Any], n: int) -> None:
    """Check that the parameters are known, and consistent with the fit."""
    full = {**DEFAULTS, **chosen}
    plan = parameters.plan_of(full, n, parameters.strategy(full["gram"]))
    parameters.dtype(chosen.get("dtype", "auto"), torch.device("cpu"))
    if strange := chosen.keys() - {*PLAIN, *DEFAULTS, "kernel"}:
        raise ValueError(f"parameters: expected no {min(strange)!r}")
    for name, values in {"sizes": plan.sizes, "eta": plan.eta, "lam": plan.lam}.items():
        if values is not None and list(values) != header[name]:
            raise ValueError(f"{name}: expected {list(values)} by the parameters, got {header[name]}")
    if header.get("at_bound") and not plan.learn_bandwidth:
        raise ValueError(f"at_bound: expected none where no bandwidth was learned, got {header['at_bound']}")
    if not 1 <= len(header["objectives"]) <= plan.n_init:
        raise ValueError(f"objectives: expected one for each start, got {len(header['objectives'])}")
    if plan.axes != header["axes"]:
        raise ValueError(f"axes: expected {plan.axes} by the parameters, got {header['axes']}")


def _describe_parameters(chosen: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Return the parameters of the estimator that a file can hold, as JSON."""
    simple = {name: chosen[name] for name in PLAIN}
    if (shrink := Shrinkage.of(chosen["shrink"])) is not None:
        simple["shrink"] = shrink.parameter
    simple |= {name: chosen[name] for name in NAMED if isinstance(chosen[name], str)}
    if not isinstance(chosen["dtype"], str):
        simple["dtype"] = dtype_name(dtype)
    if type(chosen["solver"]) in solvers.NAMES.values():
        simple["solver"] = {"name": chosen["solver"].name, "settings": vars(chosen["solver"])}
    simple["gram"] = strategies.described(chosen["gram"])
    if isinstance(chosen["random_state"], Integral):
        simple["random_state"] = chosen["random_state"]
    return simple
