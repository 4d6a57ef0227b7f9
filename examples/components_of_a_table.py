"""
What a table's components mean
==============================

Thirteen measurements of 178 wines. Maps of the columns show what each component moves, and which value of which wine
the model did not expect.
"""

# %%
# Columns have units of their own: standardise them first.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM
from drkm.plotting import plot_codes, plot_reconstructions, plot_traversal

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
model = ConstrDRKM(6).fit(X)
print(model.summary())

# %%
# Codes of the wines, coloured by cultivar, which the model was not told.

figure = plot_codes(model, labels=wine.target_names[wine.target], components=[(1, 1), (1, 2), (1, 3)])

# %%
# One code moves, the others stay: what changes, in standard deviations of the column. Components of largest effect
# first.

figure = plot_traversal(model, feature_names=wine.feature_names, most=4)

# %%
# Wines from the best reconstructed to the worst. Red is more than the model expects.

figure = plot_reconstructions(model, feature_names=wine.feature_names)
plt.show()
