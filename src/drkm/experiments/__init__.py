"""The tables and figures of the paper, one module each: those about denoising and those about disentanglement.

`experiment` says what an experiment is, `registry` finds those that there are, `reproduce` runs them, and `data` has
the images that they are about.
"""
