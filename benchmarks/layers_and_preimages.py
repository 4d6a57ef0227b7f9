"""Whether a second layer or other pre-images would denoise real data better than the model that `select(X)` chooses.

python -m benchmarks.layers_and_preimages                    five real sets, two noise levels (needs DRKM_DATA for one)
python -m benchmarks.layers_and_preimages --sets wine,digits

A model is chosen for a given noise level. The table has the errors of other candidates against the clean data, relative
to that of the model: the same kernel, threshold and number of components in layer 1, trained together with a second
layer of half as many components, as in Table 1, with layer 1 or both denoising; and the model with other pre-images.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.cleaning import SETS, clean_samples
from drkm.estimator import ConstrDRKM
from drkm.inference.preimage import default_method
from drkm.kernels import RBF
from drkm.selection import select
from drkm.solvers import LBFGS

DESIGNED_ON = ("digits", "breast_cancer", "wine", "diabetes", "smallnorb")
#: weight of layer 2 and steps of the fit as in Table 1, and a heavier layer 2
ETAS, STEPS = (25.0, 5.0), 5
#: its bandwidth relative to that of the rule
NARROW = 0.1


def candidates(model: ConstrDRKM, noisy: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names of other candidates, and the samples as denoised by each."""
    own = default_method(model.kernels_[0])
    for method in {"fixed-point", "gradient", "ridge"} - {own} - ({"fixed-point"} if own == "gradient" else set()):
        yield method, model.denoise(noisy, method=method)
    count = model.codes_.shape[1]
    # Columns of codes have length 1, so that the number of samples determines their scale.
    second = RBF(NARROW * 2 * max(1, count) / len(noisy))
    for eta in ETAS:
        deep = ConstrDRKM(
            (count, max(1, count // 2)),
            kernel=[model.kernels_[0], second],
            center=model.center,
            shrink=model.shrink,
            eta=(1.0, eta),
            tol=1e-3,
            max_iter=STEPS,
            solver=LBFGS(warmup=False),
            encoder="projection",
        ).fit(noisy)
        yield f"two layers, η_2 = {eta:g}", deep.denoise(noisy, components="layer 1")
        if eta == ETAS[0]:
            yield f"both layers, η_2 = {eta:g}", deep.denoise(noisy)


def cell(name: str, noise: float) -> dict[str, float]:
    """Return errors relative to that of the chosen model."""
    rng = np.random.default_rng(0)
    clean = clean_samples(name, rng)
    noisy = clean + noise * rng.standard_normal(clean.shape)
    found = select(noisy, noise=noise)
    assert found.best_estimator is not None

    def error(cleaned: np.ndarray) -> float:
        return float(np.square(cleaned - clean).mean())

    own = error(found.denoise(noisy))
    return {other: error(cleaned) / own for other, cleaned in candidates(found.best_estimator, noisy)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(DESIGNED_ON), help="names of benchmarks.cleaning, with commas")
    warnings.simplefilter("ignore")
    for name in parser.parse_args().sets.split(","):
        for noise in SETS[name]:
            told = ", ".join(f"{other}: {ratio:.4f}" for other, ratio in sorted(cell(name, noise).items()))
            print(f"{name} {noise:g}: {told}", flush=True)


if __name__ == "__main__":
    main()
