"""Whether a second layer or another kind of pre-image would clean real data better than what `select(X)` chooses.

python -m benchmarks.layers_and_preimages                    five real sets, two noise levels (needs DRKM_DATA for one)
python -m benchmarks.layers_and_preimages --sets wine,digits

A model is chosen with the noise given. Then, with the clean data in view, the error of each other candidate relative to
its own: components of the same kernel, threshold and number in layer 1, trained together with a second layer of half as
many as in Table 1, of which layer 1 cleans or both do; and the same model with other pre-images.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.cleaning import SETS, clean_samples
from drkm.estimator import ConstrDRKM
from drkm.kernels import RBF
from drkm.selection import select
from drkm.solvers import LBFGS

DESIGNED_ON = ("digits", "breast_cancer", "wine", "diabetes", "smallnorb")
#: weight of layer 2 and steps of the fit as in Table 1, and a heavier layer 2
ETAS, STEPS = (25.0, 5.0), 5
#: its bandwidth beside that of the rule
NARROW = 0.1


def candidates(model: ConstrDRKM, noisy: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names of other candidates, and the samples as each cleans them."""
    own = "fixed-point" if model.kernels_[0].is_isotropic else "gradient"
    for method in {"fixed-point", "gradient", "ridge"} - {own} - ({"fixed-point"} if own == "gradient" else set()):
        yield method, model.denoise(noisy, method=method)
    count = model.codes_.shape[1]
    # Codes have columns of length 1, so that their scale follows from the number of samples.
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
