"""What was fitted, as text."""

from __future__ import annotations

from drkm.training import Trained
from drkm.wording import counted

#: a layer below another one that rests on fewer than this share of the samples is pointed at
FEW_SAMPLES = 0.25


def summary(trained: Trained, n_features: int, axes: str | None, undetermined: int) -> str:
    """Return a few lines: layers, the samples they rest on, kernels, eigenvalue shares, certificate and time."""
    energy, result = trained.energy, trained.result
    head = f"ConstrDRKM: {counted(energy.n, 'sample')}, {counted(n_features, 'feature')}, "
    head += f"{counted(energy.n_components, 'component')} in {counted(len(energy.sizes), 'layer')}"
    rows = [("layer", "components", "samples", "kernel", "energy", "eigenvalues, each with its share of the trace")]
    for layer, (size, kernel, eta) in enumerate(zip(energy.sizes, energy.kernels, energy.eta, strict=True)):
        values = trained.eigenvalues[layer].tolist()
        trace = trained.traces[layer]
        share = sum(values) / trace if trace > 0 else 0.0
        shown = ", ".join(f"{value:.4g} ({value / trace:.1%})" if trace > 0 else "0" for value in values[:3])
        shown += f", … together {share:.1%}" if len(values) > 3 else f", together {share:.1%}"
        support, part = f"{trained.supports[layer]:.0f}", f"{-0.5 / eta * sum(values):.6g}"
        rows.append((str(layer + 1), str(size), support, kernel.describe(), part, shown))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip()
        for row in rows
    ]
    advice = f": {trained.advice}" if trained.advice else ""
    fixed = [str(layer) for layer, above in enumerate(energy.kernels[1:], start=1) if not above.rotation_invariant]
    given = f" (those of layer {', '.join(fixed)} are given by the feature map above)" if axes and fixed else ""
    foot = [
        f"energy J = {result.objective:.8g}, axes: {axes}{given}",
        f"{result.outcome}, {counted(result.n_evaluations, 'evaluation')}, {result.seconds:.2f} s{advice}",
        f"gram: {energy.strategy.describe()}, {energy.cost.describe()}",
    ]
    foot += [
        f"layer {layer}: {kernel.describe_error(error)}"
        for layer, (kernel, error) in enumerate(zip(energy.kernels, trained.errors, strict=True), start=1)
        if kernel.count is not None and error is not None
    ]
    if len(trained.objectives) > 1:
        ended = [f"{value:.6g}" for value in trained.objectives if value is not None]
        behind = len(trained.objectives) - len(ended)
        others = f" ({behind} given up behind the best)" if behind else ""
        foot.append(f"best of {len(trained.objectives)} starts: {', '.join(ended)}{others}")
    foot += [
        f"layer {layer} rests on {support:.0f} of {energy.n} samples, another draw would give other components; "
        f"a larger eta or sigma2 of layer {layer + 1} spreads it"
        for layer, support in enumerate(trained.supports[:-1], start=1)
        if support < FEW_SAMPLES * energy.n
    ]
    foot += [
        f"layer {layer} learned sigma2 to its bound: the energy alone has no best one, choose it by drkm.select"
        for layer in trained.at_bound
    ]
    if trained.faint:
        foot.append(faintness(trained))
    if undetermined:
        foot.append(
            f"{counted(undetermined, 'direction')} of the codes cannot be determined for new points: "
            "the energy hardly depends on them"
        )
    return "\n".join([head, *lines, *foot])


def faintness(trained: Trained) -> str:
    """Return one sentence about layers that have next to no energy, and what to change."""
    shares = ", ".join(f"layer {layer} has {share:.1g}" for layer, share in trained.faint.items())
    remedy = "divide X by its typical size, or choose eta so that the energies of the layers are alike"
    return f"{shares} of the energy, too little to be trained: {remedy}"
