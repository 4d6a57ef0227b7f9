"""
Score disentanglement beside chance
===================================

Metrics of disentanglement ask whether each code follows one factor of the data. None of them is 0 for meaningless
codes, so each score stands beside that of the same codes with their rows shuffled.
"""

# %%
# 300 drawn sprites without labels to train on, 600 others with their factors to score.

import numpy as np

from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.metrics import evaluate
from drkm.plotting import style

data = load_dsprites(source="rendered")
images, factors = data.sample(900, random_state=0)
X = images[:, ::2, ::2].reshape(len(images), -1) / 255.0
model = ConstrDRKM(8).fit(X[:300])
codes = model.transform(X[300:])
table = evaluate(codes, factors[300:], metrics=["irs", "mig", "sap"], standardize=True, factor_names=data.factor_names)
print(table)

# %%
# Which code follows which factor: absolute rank correlations.


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, axis=0), axis=0)


table = np.abs(np.corrcoef(ranks(codes).T, ranks(factors[300:]).T)[: codes.shape[1], codes.shape[1] :])
with style() as plt:
    figure, axes = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
    shown = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(data.factor_names)), data.factor_names, rotation=30, ha="right")
    axes.set_yticks(range(codes.shape[1]), model.get_feature_names_out())
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(shown, label="|rank correlation|")
plt.show()
