"""Validation of the parameters of `KernelPCA`, and what follows from them alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drkm.arrays.eigen_options import SOLVERS, EigenOptions
from drkm.kernel_pca.choice import NAMES, KernelChoice
from drkm.persistence.kernel_pca_file import SavedComponents
from drkm.serving.projection import PRECISIONS
from drkm.validation import checks
from drkm.validation.checks import one_of
from drkm.wording import dtype_name

#: ways to find pre-images by a search, which need no regression
SEARCHES = ("fixed-point", "gradient")
PREIMAGES = (None, "ridge", *SEARCHES)


def check(chosen: Mapping[str, Any]) -> None:
    """Check all parameters but those of `eigen_options`, `gram`, `device` and `dtype`."""
    component_count(chosen)
    _check_kernel(chosen)
    for name in ("gamma", "degree", "alpha"):
        if chosen[name] is not None or name != "gamma":
            checks.number(name, chosen[name], positive=False)
    checks.real("coef0", chosen["coef0"])
    for name in ("fit_inverse_transform", "remove_zero_eig", "copy_X"):
        checks.boolean(name, chosen[name])
    one_of("preimage", chosen["preimage"], PREIMAGES)


def eigen_options(chosen: Mapping[str, Any]) -> EigenOptions:
    """Check the parameters that say how eigenpairs are found, and return them."""
    tol, max_iter, power = (chosen[name] for name in ("tol", "max_iter", "iterated_power"))
    checks.number("tol", tol, positive=False)
    if max_iter is not None:
        max_iter = checks.integer("max_iter", max_iter, 1)
    if not is_auto(power):
        power = checks.integer("iterated_power", power, 0)
    solver = one_of("eigen_solver", chosen["eigen_solver"], SOLVERS)
    return EigenOptions(solver, tol, max_iter, power, checks.seed(chosen["random_state"]))


def component_count(chosen: Mapping[str, Any]) -> int | None:
    """Return the number of components, as an integer of Python: products with a short one of numpy would overflow."""
    count = chosen["n_components"]
    return None if count is None else checks.integer("n_components", count, 1)


def _check_kernel(chosen: Mapping[str, Any]) -> None:
    kernel = chosen["kernel"]
    if not callable(kernel):
        one_of("kernel", kernel, NAMES, or_else="functions and drkm.kernels objects")
    if isinstance(kernel, type):
        raise TypeError(f"kernel: expected an object, as {kernel.__name__}(), got the class")
    if hasattr(kernel, "is_pairwise") and chosen["gamma"] is not None:
        raise ValueError(f"gamma: expected None beside a kernel object, got {chosen['gamma']}, set it in {kernel!r}")
    if getattr(kernel, "is_given", False):
        raise ValueError(f'kernel: a kernel matrix is given as X with kernel="precomputed", got {kernel!r}')
    if learns_inverse(chosen) and hasattr(kernel, "map"):
        raise ValueError("kernel: a feature map has no values on codes to learn from, use preimage='gradient'")
    if not isinstance(chosen["kernel_params"], dict | None):
        raise TypeError(f"kernel_params: expected a dict or None, got {chosen['kernel_params']!r}")
    checks.jobs("n_jobs", chosen["n_jobs"])


def check_saved(saved: SavedComponents, chosen: Mapping[str, Any]) -> None:
    """Raise an error if the parameters in a file are wrong, or do not belong to its kernel and its regression."""
    check(chosen)
    eigen_options(chosen)
    if not is_auto(chosen["gram"]):
        from drkm.training import parameters

        parameters.strategy(chosen["gram"])
    one_of("dtype", dtype_name(chosen["dtype"]), ("auto", *PRECISIONS))
    choice, n_features = kernel_choice(chosen), saved.samples.shape[1]
    # Nyström and Fourier features have the kernel that they approximate in their entry.
    exact = saved.entry and saved.entry.get("kernel", saved.entry)
    if isinstance(choice.kernel, str):
        named = None if checks.is_sparse(saved.samples) else choice.named(choice.gamma_of(n_features))
        fits = named == (None if exact is None else (exact["type"], exact["parameters"]))
    else:
        fits = exact is not None
    if not fits:
        raise ValueError("kernel: expected the kernel that the parameters name")
    if learns_inverse(chosen) != (saved.dual_coef is not None):
        raise ValueError("dual_coef: expected if and only if an inverse transform is learned")


def kernel_choice(chosen: Mapping[str, Any]) -> KernelChoice:
    """Return the parameters that say which kernel is wanted."""
    names = ("kernel", "gamma", "degree", "coef0", "kernel_params", "n_jobs")
    return KernelChoice(*(chosen[name] for name in names))


def learns_inverse(chosen: Mapping[str, Any]) -> bool:
    """Whether `fit` learns the regression behind `inverse_transform`."""
    return chosen["fit_inverse_transform"] or chosen["preimage"] == "ridge"


def is_precomputed(kernel: Any) -> bool:
    """Whether samples are given as their kernel matrix."""
    return isinstance(kernel, str) and kernel == "precomputed"


def is_auto(value: Any) -> bool:
    """Whether a parameter leaves the choice to the estimator."""
    return isinstance(value, str) and value == "auto"


def keeps_zeros(chosen: Mapping[str, Any]) -> bool:
    """Whether components with the eigenvalue 0 stay."""
    return chosen["n_components"] is not None and not chosen["remove_zero_eig"]
