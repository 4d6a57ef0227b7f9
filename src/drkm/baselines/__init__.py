"""Rival methods, trained as well as we can."""

from drkm.baselines.beta_vae import BetaVAE

__all__ = ["BetaVAE"]
