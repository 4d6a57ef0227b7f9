"""Baseline methods for comparison."""

from drkm.baselines.beta_vae import BetaVAE

__all__ = ["BetaVAE"]
