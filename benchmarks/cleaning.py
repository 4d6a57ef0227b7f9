"""Denoising real data with one call, against PCA and kernel PCA whose settings are chosen using the clean data.

python -m benchmarks.cleaning                              seven real sets, two noise levels (needs DRKM_DATA for three)
python -m benchmarks.cleaning --sets unseen                sets that were listed before they were first run
python -m benchmarks.cleaning --sets further               more such sets, listed after the noise estimate had changed
python -m benchmarks.cleaning --sets curves                plane curves of no experiment: how much of the noise is left
python -m benchmarks.cleaning --sets checked               three more, run once after all choices were made
python -m benchmarks.cleaning --sets digits,wine --seeds 0,1 --what given,unknown,masked,new
python -m benchmarks.cleaning --time                       how long 600 samples of 2 and of 64 columns take

A cell is a set, a noise level and a seed. "given" and "unknown" denoise the samples themselves with `drkm.denoise`,
with the noise given and estimated; "masked" selects by masked entries; "new" fits to three quarters of the samples and
denoises the rest. Numbers are mean squared errors per entry, ratios are relative to the better rival: PCA over all
ranks, kernel PCA over bandwidths and ranks with fixed-point pre-images. Cells in the file of --keep are not recomputed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.plane_curves import CHECKED, JUDGED, LEVELS, POINTS
from drkm.inference.eigencomponents import EigenComponents
from drkm.kernels import RBF
from drkm.kernels.bandwidth import resolve_bandwidth
from drkm.selection import denoise, select

Maker = Callable[[np.random.Generator], np.ndarray]

IMAGES = {
    "smallnorb": "smallnorb_inst0_left_64.npz",
    "cars3d": "cars3d_64.npz",
    "dsprites": "dsprites_grid46080.npz",
}
#: noise levels of each set; for tables, relative to columns of variance 1
SETS = {
    "digits": (0.1, 0.3),
    "breast_cancer": (0.5, 1.0),
    "wine": (0.5, 1.0),
    "diabetes": (0.5, 1.0),
    "smallnorb": (0.1, 0.25),
    "cars3d": (0.1, 0.25),
    "dsprites": (0.1, 0.25),
}
#: listed in a commit before they were first run
UNSEEN = {
    "china_patches": (0.05, 0.15),
    "flower_patches": (0.05, 0.15),
    "swiss_roll": (0.2, 0.5),
    "s_curve": (0.1, 0.3),
    "blobs": (0.5, 1.5),
}
FURTHER = {
    "iris": (0.3, 0.6),
    "torus": (0.1, 0.3),
    "helix": (0.1, 0.3),
    "china_squares": (0.05, 0.15),
    "ellipsoids": (0.3, 0.8),
}
CURVES = dict.fromkeys(JUDGED | CHECKED, LEVELS)
GROUPS = {
    "seven": SETS,
    "unseen": UNSEEN,
    "further": FURTHER,
    "curves": dict.fromkeys(JUDGED, LEVELS),
    "checked": dict.fromkeys(CHECKED, LEVELS),
}


def clean_samples(name: str, rng: np.random.Generator) -> np.ndarray:
    """Return samples of a set without noise."""
    from sklearn import datasets

    if name == "digits":
        return _drawn(datasets.load_digits().data / 16, 400, rng)
    if name in IMAGES:
        images = np.load(Path(os.environ["DRKM_DATA"]) / IMAGES[name])["images"]
        rows = _drawn(images, 200, rng).reshape(200, -1).astype(float)
        return rows / (255 if rows.max() > 1 else 1)
    if name.endswith(("_patches", "_squares")):
        photograph, kind = name.split("_")
        return _patches(datasets.load_sample_image(f"{photograph}.jpg"), 8 if kind == "patches" else 5, rng)
    if name in ("torus", "helix", "ellipsoids"):
        return _shape(name, rng)
    if name in CURVES:
        return (JUDGED | CHECKED)[name](rng.random(POINTS))
    if name in ("swiss_roll", "s_curve"):
        points = getattr(datasets, f"make_{name}")(400, random_state=int(rng.integers(2**31)))[0]
        return points / points.std() @ np.linalg.qr(rng.standard_normal((10, 10)))[0][:3]
    if name == "blobs":
        return rng.standard_normal((6, 15))[rng.integers(6, size=400)] * 2 + 0.1 * rng.standard_normal((400, 15))
    table = getattr(datasets, f"load_{name}")().data
    return (table - table.mean(axis=0)) / table.std(axis=0)


def _drawn(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return rows[np.sort(rng.permutation(len(rows))[:count])]


def _patches(image: np.ndarray, side: int, rng: np.random.Generator) -> np.ndarray:
    grey = image.mean(axis=2) / 255
    corners = zip(*(rng.integers(size - side, size=400) for size in grey.shape), strict=True)
    return np.stack([grey[i : i + side, j : j + side].ravel() for i, j in corners])


def _shape(name: str, rng: np.random.Generator) -> np.ndarray:
    """Return 400 points of a surface or curve in a random subspace of 8 dimensions, or of clusters in 12 dimensions."""
    u, v = 2 * np.pi * rng.random((2, 400))
    if name == "ellipsoids":
        spreads = rng.uniform(0.1, 0.8, (3, 12))
        which = rng.integers(3, size=400)
        return 2 * rng.standard_normal((3, 12))[which] + spreads[which] * rng.standard_normal((400, 12))
    if name == "torus":
        points = np.column_stack(
            [(1.5 + 0.6 * np.cos(v)) * np.cos(u), (1.5 + 0.6 * np.cos(v)) * np.sin(u), 0.6 * np.sin(v)]
        )
    else:
        points = np.column_stack([np.cos(2 * u), np.sin(2 * u), u / np.pi - 1])
    return points @ np.linalg.qr(rng.standard_normal((8, 8)))[0][:3]


def best_pca(train: np.ndarray, points: np.ndarray, clean: np.ndarray) -> float:
    """Return the least error of PCA over all ranks."""
    mean = train.mean(axis=0)
    axes = np.linalg.svd(train - mean, full_matrices=False)[2]
    scores, truth = (points - mean) @ axes.T, (clean - mean) @ axes.T
    outside = ((clean - mean) ** 2).sum() - (truth**2).sum()
    # Kept components contribute the error of their scores, dropped ones the whole true signal.
    errors = ((truth**2).sum() - np.cumsum((truth**2 - (scores - truth) ** 2).sum(axis=0))) + outside
    return float(min(errors.min(), (truth**2).sum() + outside) / clean.size)


def best_kernel_pca(train: np.ndarray, points: np.ndarray | None, clean: np.ndarray) -> float:
    """Return the least error of kernel PCA over bandwidths by factors of 2 and ranks in steps of a tenth to a third."""
    X = torch.from_numpy(train)
    new = None if points is None else torch.from_numpy(points)
    n, median = len(X), resolve_bandwidth("median", X, layer=1)
    errors: dict[tuple[int, int], float] = {}

    def look(widths: list[int], ranks: np.ndarray) -> None:
        for k in widths:
            eigen = EigenComponents(RBF(median * 2.0**k), X, center=True)
            for rank in np.unique(ranks.clip(1, n - 1).round().astype(int)):
                found = eigen.denoise(points=new, rank=int(rank)).numpy()
                errors[k, int(rank)] = float(((found - clean) ** 2).mean())

    look([-3, -1, 1, 3, 5], np.geomspace(2, n - 1, 12))
    for _ in range(2):
        width, rank = min(errors, key=errors.__getitem__)
        look([width - 1, width, width + 1], rank * np.array([0.75, 0.87, 1.0, 1.15, 1.33]))
    return min(errors.values())


def cell(name: str, noise: float, seed: int, what: list[str]) -> dict[str, float | str]:
    """Return the errors of one cell."""
    rng = np.random.default_rng(seed)
    clean = clean_samples(name, rng)
    noisy = clean + noise * rng.standard_normal(clean.shape)
    row: dict[str, float | str] = {
        "set": name,
        "noise": noise,
        "seed": seed,
        "noisy": float(((noisy - clean) ** 2).mean()),
    }
    if name not in CURVES:
        row["rival"] = min(best_pca(noisy, noisy, clean), best_kernel_pca(noisy, None, clean))
    for kind, level in (("given", noise), ("unknown", "auto"), ("masked", "auto")):
        if kind in what:
            began = time.perf_counter()
            criterion = "masked" if kind == "masked" else "risk"
            found = select(noisy, noise=level, criterion=criterion, random_state=seed)
            row[kind] = float(((found.denoise(noisy) - clean) ** 2).mean())
            assert found.expected is not None
            row[f"{kind}_expected"], row[f"{kind}_seconds"] = found.expected.error, time.perf_counter() - began
            row[f"{kind}_model"] = f"{found.best_params['kernel'].describe()}, {found.best_estimator.n_components}"  # type: ignore[union-attr]
    if "new" in what:
        held = np.arange(len(noisy)) % 4 == 0
        train, points, truth = noisy[~held], noisy[held], clean[held]
        row["rival_new"] = min(best_pca(train, points, truth), best_kernel_pca(train, points, truth))
        found = select(train, noise=noise, for_="new", random_state=seed)
        row["new"] = float(((found.denoise(points) - truth) ** 2).mean())
    return row


def show_time() -> None:
    """Print the wall-clock and processor time of denoising 600 points of a curve, and 600 digits of 64 pixels."""
    from sklearn.datasets import load_digits

    from drkm.datasets import make_square_spiral

    rng = np.random.default_rng(0)
    digits = _drawn(load_digits().data / 16, 600, rng)
    cases = {
        "square and spiral": (make_square_spiral(600, noise=0.1, random_state=0)[0], 0.1),
        "digits": (digits + 0.3 * rng.standard_normal(digits.shape), 0.3),
    }
    print("| samples | columns | noise | n_jobs | seconds | of the processor |\n|---|---:|---|---:|---:|---:|")
    for name, (noisy, noise) in cases.items():
        for told, level in (("given", noise), ("unknown", "auto")):
            for jobs in (1, 2):
                clock, processor = time.perf_counter(), time.process_time()
                denoise(noisy, noise=level, n_jobs=jobs)
                took = f"{time.perf_counter() - clock:.1f} | {time.process_time() - processor:.1f}"
                print(f"| {name} | {noisy.shape[1]} | {told} | {jobs} | {took} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nThe process took {peak:.0f} MiB at most, libraries included.")


def show(rows: list[dict[str, float | str]], what: list[str]) -> None:
    """Print the table and its summary."""
    print("| set | noise | seed | not cleaned | best rival | " + " | ".join(what) + " |")
    print("|---|---|---|---:|---:|" + "---:|" * len(what))
    ratios: dict[str, list[float]] = {kind: [] for kind in what}
    for row in rows:
        told = []
        for kind in what:
            against = row.get("rival_new" if kind == "new" else "rival", row["noisy"])
            ratios[kind].append(float(row[kind]) / float(against))
            told.append(f"{float(row[kind]):.4g} ({ratios[kind][-1]:.3f})")
        rival = f"{float(row['rival']):.4g}" if "rival" in row else "-"
        cells = [row["set"], row["noise"], row["seed"], f"{float(row['noisy']):.4g}", rival, *told]
        print(f"| {' | '.join(map(str, cells))} |")
    for kind, found in ratios.items():
        print(f"{kind}: {np.mean(found):.3f} times on average, at most {max(found):.3f}, {len(found)} cells")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="seven", help=f"{', '.join(GROUPS)}, or names with commas")
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")], default=[0])
    parser.add_argument("--what", type=lambda text: text.split(","), default=["given", "unknown"])
    parser.add_argument("--keep", type=Path, help="file of finished cells, one JSON object per line")
    parser.add_argument("--time", action="store_true", help="how long 600 samples of 64 columns take, and nothing else")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.time:
        return show_time()
    known = SETS | UNSEEN | FURTHER | CURVES
    names = GROUPS[asked.sets] if asked.sets in GROUPS else {name: known[name] for name in asked.sets.split(",")}
    done = (
        [json.loads(line) for line in asked.keep.read_text().splitlines()] if asked.keep and asked.keep.exists() else []
    )
    rows = []
    for seed in asked.seeds:
        for name, levels in names.items():
            for noise in levels:
                here = {"set": name, "noise": noise, "seed": seed}
                kept = [row for row in done if here.items() <= row.items() and set(asked.what) <= row.keys()]
                rows.append(kept[-1] if kept else cell(name, noise, seed, asked.what))
                if asked.keep and not kept:
                    with asked.keep.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
    show(rows, asked.what)


if __name__ == "__main__":
    main()
