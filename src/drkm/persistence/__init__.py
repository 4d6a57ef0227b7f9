"""Fitted models on disk: what a model file holds, and that it holds it."""
