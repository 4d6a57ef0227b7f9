"""
Denoise images
==============

A model of noisy digits gives back cleaner ones: its components hold what many images share, and noise is not shared.
How many components to keep is chosen without clean images.
"""

# %%
# 400 digits with noise are all that the model sees; 200 others are to be cleaned.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from drkm import ConstrDRKM, select
from drkm.plotting import image_grid

clean = load_digits().data[:600] / 16
noisy = clean + np.random.RandomState(0).normal(0, 0.25, clean.shape)
train, new = noisy[:400], noisy[400:]

# %%
# The noise is known here; `noise="auto"` estimates it.

found = select(train, {"n_components": [60], "keep": [5, 10, 20, 40, 60]}, noise=0.25)
print(found.to_markdown())
denoised = found.denoise(new)
for name, images in (("noisy", new), ("denoised", denoised)):
    print(f"mean squared error, {name}: {np.mean((images - clean[400:]) ** 2):.4f}")

# %%
# Eight of the 200 images, none of which the model was trained on.

rows = np.stack([clean[400:408], new[:8], denoised[:8]]).reshape(3, 8, 8, 8)
figure = image_grid(np.clip(rows, 0, 1), ["clean", "noisy", "denoised"], [""] * 8)

# %%
# Too few components blur, too many give the noise back.

blurred, sharp = (ConstrDRKM(count).fit(train).denoise(new[:8]) for count in (3, 200))
rows = np.stack([blurred, sharp]).reshape(2, 8, 8, 8)
figure = image_grid(np.clip(rows, 0, 1), ["3 components", "200 components"], [""] * 8)
plt.show()
