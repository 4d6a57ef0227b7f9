"""Denoising: Table 1, Figures 1 to 3 and handwritten digits, one module each; `_problems` and `_methods` are shared."""
