"""How the defaults of the β-VAE were chosen: held-out bounds of a few settings at equal training time.

python -m benchmarks.beta_vae [--seconds 90] [--samples 800]
"""

from __future__ import annotations

import argparse

from drkm.baselines import BetaVAE
from drkm.datasets import load_dsprites

SETTINGS = [
    {"learning_rate": 1e-3, "batch_size": 32},
    {"learning_rate": 1e-3, "batch_size": 16},
    {"learning_rate": 1e-3, "batch_size": 64},
    {"learning_rate": 3e-4, "batch_size": 32},
    {"learning_rate": 3e-3, "batch_size": 32},
]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--samples", type=int, default=800)
    parser.add_argument("--beta", type=float, default=4.0)
    options = parser.parse_args(arguments)
    images, _ = load_dsprites(source="rendered").sample(options.samples + 400, random_state=0)
    train, test = images[: options.samples], images[options.samples :]
    print("learning rate  batch  steps  best step  held-out loss  reconstruction    KL  squared error, test")
    for setting in SETTINGS:
        model = BetaVAE(beta=options.beta, max_seconds=options.seconds, random_state=0, **setting).fit(train)
        best = min(model.history_, key=lambda record: record["held_out_loss"])
        print(
            f"{setting['learning_rate']:13g}  {setting['batch_size']:5d}"
            f"  {model.n_iter_:5d}  {model.best_step_:9d}"
            f"  {best['held_out_loss']:13.1f}  {best['reconstruction']:14.1f}  {best['divergence']:4.1f}"
            f"  {-model.score(test):19.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
