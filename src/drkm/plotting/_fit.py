"""Figures of a fit: convergence and spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drkm.plotting._model import numbers
from drkm.plotting._style import BLUE, COLOURS, GREY, MARKERS, VERMILION, canvas, style
from drkm.wording import counted

#: nothing below this is drawn on a logarithmic axis
SMALLEST = 1e-16


def plot_spectrum(model: Any, ax: Any = None) -> Any:
    """Draw the eigenvalues of each layer as shares of the trace of its kernel matrix.

    Parameters
    ----------
    model : ConstrDRKM or KernelPCA
        A fitted model; `KernelPCA` does not keep the trace, and its eigenvalues are drawn unscaled.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    deep = isinstance(model.eigenvalues_, list)
    spectra = [numbers(values) for values in (model.eigenvalues_ if deep else [model.eigenvalues_])]
    names = [f"layer {layer}" for layer in range(1, len(spectra) + 1)]
    with style():
        figure, ((axis,),) = canvas(ax, 1, 1, (4.5, 3.2), layout="constrained")
        if deep:
            shares = [
                values / max(trace, SMALLEST) for values, trace in zip(spectra, model.fitted_.traces, strict=True)
            ]
            names = [f"{name}: {share.sum():.1%} together" for name, share in zip(names, shares, strict=True)]
            draw_spectra(axis, shares, names, "share of the trace")
            _label_in_percent(axis.yaxis)
        else:
            draw_spectra(axis, spectra, names, "eigenvalue")
    return figure


def _label_in_percent(axis: Any) -> None:
    """Label the ticks of a logarithmic axis of shares in percent: powers of ten, and others where these are too few."""
    from matplotlib.ticker import LogFormatter

    class Percent(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{100 * x:.3g}%" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Percent())
    axis.set_minor_formatter(Percent(minor_thresholds=(1, 0.4)))


def draw_spectra(axis: Any, spectra: Sequence[np.ndarray], names: Sequence[str], title: str) -> None:
    """Draw one decreasing line per layer on a logarithmic axis."""
    for layer, (values, name) in enumerate(zip(spectra, names, strict=True)):
        axis.semilogy(
            np.arange(len(values)),
            np.maximum(values, SMALLEST),
            marker=MARKERS[layer % len(MARKERS)],
            markersize=4,
            color=COLOURS[layer % len(COLOURS)],
            label=name,
        )
    axis.set_xlabel("component (counted from 0)")
    axis.set_ylabel(title)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend()


def plot_convergence(model: Any, ax: Any = None) -> Any:
    """Draw the stationarity, and the energy above its last value, against iterations.

    Parameters
    ----------
    model : ConstrDRKM
        A fitted model. The eigensolver of a one-layer model reports only its end, one point.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    steps, energy, stationarity = (
        np.array([entry[name] for entry in model.history_]) for name in ("iteration", "objective", "stationarity")
    )
    if not len(steps):
        raise ValueError("model: its history is empty, so there is nothing to draw")
    above = (energy - energy.min()) / max(abs(energy.min()), SMALLEST)
    with style():
        figure, ((axis,),) = canvas(ax, 1, 1, (4.5, 3.2), layout="constrained")
        axis.semilogy(steps, np.maximum(stationarity, SMALLEST), "o-", markersize=3, color=BLUE, label="stationarity")
        falling = above > SMALLEST
        if falling.any():
            told = "energy above its lowest, relative"
            axis.semilogy(steps[falling], above[falling], "s-", markersize=3, color=VERMILION, label=told)
        axis.axhline(model.tol, color=GREY, linestyle="--", linewidth=1)
        at = {"xy": (0.0, model.tol), "xycoords": ("axes fraction", "data")}
        axis.annotate("tol", **at, xytext=(3, 1), textcoords="offset points", va="bottom", color="#666666")
        if len(steps) == 1:
            axis.set_xlim(steps[0] - 1, steps[0] + 1)
        axis.set_xlabel("iteration")
        axis.xaxis.get_major_locator().set_params(integer=True)
        reached = "reached the tolerance" if model.converged_ else "did not reach the tolerance"
        axis.set_title(f"{reached}: {counted(int(steps[-1]), 'iteration')}", loc="left")
        axis.legend()
    return figure
