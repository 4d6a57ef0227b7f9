"""
Move along components
=====================

See what each component of a model means: move one code of one image, keep the others, and map it back. With the
paper's weights of the layers, `eta=1`, layer 1 has a small effective sample size and its components are those of few
images; by default deep layers are light enough to leave it alone.
"""

# %%
# 200 drawn sprites: a square, an ellipse or a heart, somewhere in the image.

import matplotlib.pyplot as plt

from drkm import ConstrDRKM
from drkm.datasets import load_dsprites
from drkm.plotting import plot_traversal

images, _ = load_dsprites(source="rendered").sample(200, random_state=0)
X = images[:, ::2, ::2].reshape(len(images), -1) / 255.0
model = ConstrDRKM((8, 4)).fit(X)
print(model.summary())

# %%
# Red is brighter than the sample, blue is darker. The component of largest effect stands first.

figure = plot_traversal(model, shape=(32, 32), base=7, most=5)

# %%
# The paper's weights: moving a code fades in single training images.

published = ConstrDRKM((8, 4), eta=1).fit(X)
for name, fitted in (("default", model), ("eta=1", published)):
    print(f"{name:8} effective sample size of layer 1: {fitted.fitted_.supports[0]:.0f} of {len(X)}")
figure = plot_traversal(published, shape=(32, 32), base=7, most=5)
plt.show()
