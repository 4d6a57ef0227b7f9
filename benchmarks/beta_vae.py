"""How the defaults of the β-VAE were chosen: held-out lower bounds of a few settings at equal training time.

python -m benchmarks.beta_vae                                              the settings side by side
python -m benchmarks.beta_vae --settings 1 --seconds 330 --history         the default, check by check
python -m benchmarks.beta_vae --settings 1 --seconds 200 --history --samples 50
"""

from __future__ import annotations

import argparse
from typing import Any

from drkm.baselines import BetaVAE
from drkm.datasets import load_dsprites

SETTINGS: list[dict[str, Any]] = [
    {"learning_rate": 1e-3, "batch_size": 32},
    {"learning_rate": 1e-3, "batch_size": 16},
    {"learning_rate": 1e-3, "batch_size": 64},
    {"learning_rate": 3e-4, "batch_size": 32},
    {"learning_rate": 3e-3, "batch_size": 32},
]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=90.0, help="training time of each setting")
    parser.add_argument("--samples", type=int, default=800, help="training images")
    parser.add_argument("--settings", type=int, default=len(SETTINGS), help="how many of the settings")
    parser.add_argument("--history", action="store_true", help="print every check")
    options = parser.parse_args(arguments)
    images, _ = load_dsprites(source="rendered").sample(options.samples + 400, random_state=0)
    train, test = images[: options.samples], images[options.samples :]
    print("learning rate  batch  steps  best step  held-out loss  reconstruction    KL  squared error, test")
    for setting in SETTINGS[: options.settings]:
        model = BetaVAE(max_seconds=options.seconds, check_every=100, random_state=0, **setting).fit(train)
        best = min(model.history_, key=lambda record: record["held_out_loss"])
        print(
            f"{setting['learning_rate']:13g}  {setting['batch_size']:5d}"
            f"  {model.n_iter_:5d}  {model.best_step_:9d}"
            f"  {best['held_out_loss']:13.1f}  {best['reconstruction']:14.1f}  {best['divergence']:4.1f}"
            f"  {-model.score(test):19.1f}",
            flush=True,
        )
        for record in model.history_ if options.history else []:
            print("   ", "  ".join(f"{name} {value:.1f}" for name, value in record.items()))


if __name__ == "__main__":
    main()
