"""Disentanglement: Table 2, the paper's comparisons, our own, and the study of Cars3D, one module each."""
