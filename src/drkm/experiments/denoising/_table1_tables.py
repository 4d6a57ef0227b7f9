"""The tables of Table 1: rows with the same keys, made from the finished cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from drkm.experiments.denoising._problems import BOUND, DATASETS, FIRST_MEASURE, NOISES, ORDER, PUBLISHED
from drkm.experiments.experiment import Row
from drkm.experiments.study.rows import chosen, grouped

#: the definition of the error by which claims are judged, where the paper leaves it open
AS_PUBLISHED = {"β": "as published", "steps": "converged", "measure": FIRST_MEASURE}


def ratios(cells: Iterable[Row]) -> list[Row]:
    """Return the ratios of the paper's two models, one row per cell and definition of the error."""
    return [
        {
            "curve": cell["curve"],
            "noise": cell["noise"],
            **entry,
            "published": PUBLISHED[cell["noise"]][cell["curve"]],
            "ratio": entry["kernel PCA"] / entry["deep"],
        }
        for cell in cells
        for entry in cell["protocol"]
    ]


def mse_of(cell: Row) -> dict[str, float]:
    """Return the mean squared errors of a finished cell by method."""
    return {entry["method"]: entry["mse"] for entry in cell["errors"]}


def relative_of(cell: Row) -> dict[str, float]:
    """Return the mean squared errors of a finished cell by method, relative to that of the posterior mean."""
    mse = mse_of(cell)
    return {method: mse[method] / mse[BOUND] for method in ORDER if method != BOUND}


def published_and_ours(ratios: Iterable[Row]) -> list[Row]:
    """Return the published ratios and ours, one row per cell."""
    return [
        {
            "curve": DATASETS[row["curve"]],
            "σ_n": row["noise"],
            "published": row["published"],
            "ours": row["ratio"],
            "kernel PCA, MSE": row["kernel PCA"],
            "deep model, MSE": row["deep"],
            "kernel PCA, σ²": row["kernel PCA σ²"],
            "deep model, σ²": row["deep σ²"],
        }
        for row in chosen(ratios, **AS_PUBLISHED)
    ]


def grid(ratios: Iterable[Row]) -> list[Row]:
    """Return our ratio with the published one in brackets, one row per curve and one column per noise level."""
    rows: dict[str, Row] = {}
    for row in chosen(ratios, **AS_PUBLISHED):
        empty = {"curve": DATASETS[row["curve"]], **{f"σ_n = {noise}": None for noise in NOISES}}
        rows.setdefault(row["curve"], empty)[f"σ_n = {row['noise']}"] = f"{row['ratio']:.2f} ({row['published']:.2f})"
    return list(rows.values())


def relative_errors(cells: Iterable[Row]) -> list[Row]:
    """Return the errors of all methods relative to the posterior mean, one row per cell."""
    return [{**_place(cell), "Bayes MSE": mse_of(cell)[BOUND], **relative_of(cell)} for cell in cells]


def distances(cells: Iterable[Row]) -> list[Row]:
    """Return the mean distances to the curve of all methods, one row per cell."""
    return [{**_place(cell), **{e["method"]: e["distance"] for e in cell["errors"]}} for cell in cells]


def choices(cells: Iterable[Row]) -> list[Row]:
    """Return the settings of all methods, one row per cell."""
    return [
        {
            **_place(cell),
            "estimated σ_n": cell["estimated noise"],
            **{e["method"]: e["chosen"] for e in cell["errors"] if e["chosen"] and e["method"] != BOUND},
        }
        for cell in cells
    ]


def definitions(ratios: list[Row]) -> list[Row]:
    """Return the number of published ratios that are reached, for each definition of the error."""
    rows = []
    for key, among in grouped(ratios, *AS_PUBLISHED).items():
        off = [abs(np.log(row["ratio"] / row["published"])) for row in among]
        rows.append(
            {
                **dict(zip(AS_PUBLISHED, key, strict=True)),
                "cells": len(among),
                "above 1": sum(row["ratio"] > 1 for row in among),
                "at or above published": sum(row["ratio"] >= row["published"] for row in among),
                "off by a factor of": float(np.exp(np.median(off))),
            }
        )
    return rows


def all_ratios(ratios: list[Row]) -> list[Row]:
    """Return the ratios with a row per definition and a column per cell."""
    return [
        {
            **dict(zip(AS_PUBLISHED, key, strict=True)),
            **{f"{DATASETS[row['curve']]}, {row['noise']}": row["ratio"] for row in among},
        }
        for key, among in grouped(ratios, *AS_PUBLISHED).items()
    ]


def _place(cell: Row) -> Row:
    return {"curve": DATASETS[cell["curve"]], "σ_n": cell["noise"]}
