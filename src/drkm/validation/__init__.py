"""Checks of single values, of parts of files and of nested parameter names, with errors of one sentence.

The estimator's own parameters are checked in `drkm.training.parameters`, bandwidths in `drkm.kernels.bandwidth`.
"""
