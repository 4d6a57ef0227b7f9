"""The text that `ConstrDRKM.summary()` returns, and the warnings of a fit."""

from __future__ import annotations

from drkm.fitted import FittedModel
from drkm.solvers.result import ALIKE
from drkm.wording import counted

#: a layer below another one is reported if its effective sample size is less than this share of the samples
FEW_SAMPLES = 0.25
#: advice for deep layers with almost no energy above a kernel of distances
NARROWER = "narrow sigma2 there (None is its rule), or choose eta so that the energies of the layers are alike"


def summary(fitted: FittedModel, undetermined: int) -> str:
    """Describe a fitted model: layers, effective sample sizes, kernels, weights, eigenvalues, certificate, caveats."""
    head = f"ConstrDRKM: {counted(fitted.n, 'sample')}, {counted(fitted.X.shape[1], 'feature')}, "
    head += f"{counted(sum(fitted.sizes), 'component')} in {counted(len(fitted.sizes), 'layer')}"
    return "\n".join([head, *_layers(fitted), *_certificate(fitted), *_doubts(fitted, undetermined)])


def _layers(fitted: FittedModel) -> list[str]:
    """Return a table with one row per layer."""
    rows = [
        (
            *("layer", "components", "effective n", "kernel", "eta", "energy"),
            "eigenvalues, each with its share of the trace",
        )
    ]
    for layer, (size, kernel, eta) in enumerate(zip(fitted.sizes, fitted.kernels, fitted.eta, strict=True)):
        values = fitted.eigenvalues[layer].tolist()
        trace = fitted.traces[layer]
        share = sum(values) / trace if trace > 0 else 0.0
        shown = ", ".join(f"{value:.4g} ({value / trace:.1%})" if trace > 0 else "0" for value in values[:3])
        shown += f", … together {share:.1%}" if len(values) > 3 else f", together {share:.1%}"
        support, part = f"{fitted.supports[layer]:.0f}", f"{-0.5 / eta * sum(values):.6g}"
        rows.append((str(layer + 1), str(size), support, kernel.describe(), f"{eta:.4g}", part, shown))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[6]]).rstrip()
        for row in rows
    ]


def _certificate(fitted: FittedModel) -> list[str]:
    """Return lines on convergence, time, memory and starts."""
    result = fitted.result
    advice = f": {fitted.advice}" if fitted.advice else ""
    fixed = [str(layer) for layer, above in enumerate(fitted.kernels[1:], start=1) if not above.rotation_invariant]
    given = f" (those of layer {', '.join(fixed)} are given by the feature map above)" if fitted.axes and fixed else ""
    lines = [
        f"energy J = {result.objective:.8g}, axes: {fitted.axes}{given}",
        f"{result.outcome}, {counted(result.n_evaluations, 'evaluation')}, {fitted.seconds:.2f} s{advice}",
        f"gram: {fitted.operator}, {fitted.cost.describe()}",
    ]
    lines += [
        f"layer {layer}: {kernel.describe_error(error)}"
        for layer, (kernel, error) in enumerate(zip(fitted.kernels, fitted.errors, strict=True), start=1)
        if kernel.original is not kernel and error is not None
    ]
    if len(fitted.objectives) > 1:
        ended = [f"{value:.6g}" for value in fitted.objectives if value is not None]
        behind = len(fitted.objectives) - len(ended)
        others = f" ({behind} abandoned behind the best)" if behind else ""
        lines.append(f"best of {len(fitted.objectives)} starts: {', '.join(ended)}{others}")
    return lines


def _doubts(fitted: FittedModel, undetermined: int) -> list[str]:
    """Return what a reader should know before relying on the codes."""
    lines = [
        f"layer {layer} has an effective sample size of {support:.0f} of {fitted.n}: another draw would give other "
        f"components; a larger eta or sigma2 of layer {layer + 1} spreads it"
        for layer, support in enumerate(fitted.supports[:-1], start=1)
        if support < FEW_SAMPLES * fitted.n
    ]
    lines += [
        f"layer {layer} learned sigma2 to its bound: the energy alone has no best one, choose it by drkm.select"
        for layer in fitted.at_bound
    ]
    lines += [told for told in (faintness(fitted), fitted.codes_are_off) if told]
    if undetermined:
        lines.append(
            f"{counted(undetermined, 'direction')} of the codes cannot be determined for new points: "
            "the energy hardly depends on them"
        )
    return lines


def doubt_of_convergence(fitted: FittedModel) -> str:
    """Return the warning of a fit that did not converge, or whose codes are far from stationary; else ""."""
    if not fitted.result.converged:
        return f"ConstrDRKM {fitted.message}"
    doubt = faintness(fitted) or (fitted.codes_are_off if fitted.surprising else "")
    return f"ConstrDRKM: {doubt}" if doubt else ""


def faintness(fitted: FittedModel) -> str:
    """Return a warning about layers with almost no energy and how to change that; an empty string if there are none."""
    if not fitted.faint:
        return ""
    shares = ", ".join(f"layer {layer} has {share:.1g}" for layer, share in fitted.faint.items())
    # The energy of a kernel of distances does not depend on the units of X.
    first, kernels = fitted.kernels[0], [fitted.kernels[layer - 1] for layer in fitted.faint if layer > 1]
    is_wide = first.is_isotropic and bool(kernels) and all(kernel.has_bandwidth for kernel in kernels)
    return f"{shares} of the energy, too little to be trained: {NARROWER if is_wide else ALIKE}"
