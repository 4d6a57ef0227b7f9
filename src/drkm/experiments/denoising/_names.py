"""What the tables and figures call the methods that denoise, apart from the methods themselves, which need torch."""

from __future__ import annotations

NOISY, MEAN_SHIFT, RIVAL = "noisy points", "mean shift", "scikit-learn KernelPCA"
ONE_LAYER, TWO_LAYERS, BOUND = "one layer, selected", "two layers, selected", "Bayes posterior mean"
PAPER_KPCA, PAPER_DEEP = "paper's kernel PCA (3)", "paper's deep model (2, 1)"
#: the methods in the order of the tables
ORDER = (NOISY, MEAN_SHIFT, RIVAL, ONE_LAYER, TWO_LAYERS, PAPER_KPCA, PAPER_DEEP, BOUND)
#: the measure of error by which the paper's models are chosen and claims are judged
FIRST_MEASURE = "mean squared error to the clean point"
