"""Kernel PCA of arrays on a CPU, without torch, whose import can take longer than a fit."""
