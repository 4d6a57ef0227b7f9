"""Kernel PCA of arrays on a CPU, with numpy and scipy alone: a process that needs no more does not import torch."""
