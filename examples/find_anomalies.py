"""
Find anomalies
==============

A model of usual samples reconstructs unusual ones badly. `AnomalyDetector` ranks samples by the distance to their
denoised selves, and calls those strange that are farther off than ordinary ones are.
"""

# %%
# The detector sees zeros, ones and twos. Of the unseen images it gets, some are sevens. Images are shuffled: in the
# order of the file, whose later images are unlike the first 300, it calls 39 of 237 usual ones strange. The threshold
# is meant for samples like those of the fit.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from drkm import AnomalyDetector
from drkm.plotting import BLUE, GREY, VERMILION, image_grid, style

digits = load_digits()
order = np.random.RandomState(0).permutation(len(digits.data))
X, y = digits.data[order] / 16, digits.target[order]
usual, unusual = X[np.isin(y, (0, 1, 2))], X[y == 7][:40]
train, new = usual[:300], np.concatenate([usual[300:], unusual])
odd = np.arange(len(new)) >= len(usual) - 300
detector = AnomalyDetector().fit(train)
distance, strange = -detector.score_samples(new), detector.predict(new) == -1
print(f"area under the ROC curve: {roc_auc_score(odd, distance):.3f}")
print(f"called strange: {strange[odd].sum()} of {odd.sum()} sevens, {strange[~odd].sum()} of {(~odd).sum()} others")

# %%
# Nobody chose the threshold by hand: about 5 % of usual images are expected beyond it.
# Over ten shuffles it was 2 to 5 %.

with style() as plt:
    figure, axes = plt.subplots(figsize=(4.5, 2.8), layout="constrained")
    axes.hist([distance[~odd], distance[odd]], 30, stacked=True, color=[BLUE, VERMILION], label=["0, 1, 2", "7"])
    axes.axvline(-detector.offset_, color=GREY, linestyle="--", label="threshold")
    axes.set_xlabel("distance to the denoised image")
    axes.set_ylabel("images")
    axes.legend()

# %%
# The most anomalous images, and what the model makes of them: the nearest thing that it knows.

worst = np.argsort(-distance)[:8]
rows = np.stack([new[worst], detector.model_.denoise(new[worst])]).reshape(2, 8, 8, 8)
heads = [f"{value:.2f}" for value in distance[worst]]
figure = image_grid(np.clip(rows, 0, 1), ["image", "denoised"], heads)
plt.show()
