"""Inference with a fitted model: encoders, the subspace of components, pre-images and a density of codes."""
