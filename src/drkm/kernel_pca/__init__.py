"""Kernel PCA as a drop-in replacement for scikit-learn's class."""

from drkm.kernel_pca.estimator import KernelPCA

__all__ = ["KernelPCA"]
