"""The tables and figures of the paper, one module each: those about denoising and those about disentanglement.

`experiment` defines what an experiment is, `registry` finds all of them, `reproduce` runs them, and `data` loads the
images that they use.
"""
