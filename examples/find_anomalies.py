"""
Find anomalies
==============

A model of usual samples reconstructs unusual ones badly. The distance between a sample and its reconstruction ranks
them, and says where each differs.
"""

# %%
# The model sees zeros, ones and twos. Of the unseen images it gets, some are sevens.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from drkm import ConstrDRKM
from drkm.plotting import BLUE, VERMILION, image_grid, style

digits = load_digits()
X, y = digits.data / 16, digits.target
usual, unusual = X[np.isin(y, (0, 1, 2))], X[y == 7]
train, new = usual[:300], np.concatenate([usual[300:], unusual[:40]])
odd = np.arange(len(new)) >= len(usual) - 300
model = ConstrDRKM(15).fit(train)

# %%
# The root of the mean squared error of each reconstruction.

found = model.denoise(new)
score = np.sqrt(((new - found) ** 2).mean(axis=1))
print(f"area under the ROC curve: {roc_auc_score(odd, score):.3f}")
with style() as plt:
    figure, axes = plt.subplots(figsize=(4.5, 2.8), layout="constrained")
    bins = np.linspace(score.min(), score.max(), 30)
    axes.hist([score[~odd], score[odd]], bins, stacked=True, color=[BLUE, VERMILION], label=["0, 1, 2", "7"])
    axes.set_xlabel("error of the reconstruction")
    axes.set_ylabel("images")
    axes.legend()

# %%
# The most anomalous images, and what the model makes of them: the nearest thing that it knows.

worst = np.argsort(-score)[:8]
rows = np.stack([new[worst], found[worst]]).reshape(2, 8, 8, 8)
heads = [f"{value:.2f}" for value in score[worst]]
figure = image_grid(np.clip(rows, 0, 1), ["image", "reconstruction"], heads)
