"""Checks of single values, of parts of files and of names inside parameters: a wrong one is refused with one sentence.

What the estimator's own parameters may be stands in `drkm.training.parameters`, a bandwidth's in
`drkm.kernels.bandwidth`.
"""
