"""See what each component of a model means: move one code of one image, and map it back.

Two models of the same 400 drawn sprites. With equal weights of the layers (the default, as in the paper) layer 1 rests
on few samples; with a lighter second layer it rests on nearly all of them, and another draw would give it again.

python examples/move_along_components.py      writes move_along_components.png; needs matplotlib; a few seconds
"""

import numpy as np

from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.plotting import image_grid

images, _ = load_dsprites(source="rendered").sample(400, random_state=0)
X = images.reshape(len(images), -1) / 255.0

BASE, COMPONENTS, STEPS = 7, 4, 7
rows, names = [], []
for label, eta in (("equal", 1.0), ("lighter", (1, 10))):
    model = ConstrDRKM((10, 5), eta=eta).fit(X)
    print(f"{label}:", model.summary(), sep="\n", end="\n\n")
    for index in range(COMPONENTS):
        own = model.codes_[:, index]
        values = np.linspace(np.quantile(own, 0.02), np.quantile(own, 0.98), STEPS)
        rows.append(model.traverse(layer=1, index=index, values=values, base=BASE).reshape(STEPS, 64, 64))
        names.append(f"{label}, {index}")

heads = ["2 %", *[""] * (STEPS - 2), "98 %"]
image_grid(np.clip(rows, 0, 1), names, heads).savefig("move_along_components.png", dpi=150)
