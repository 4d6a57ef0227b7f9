"""
A kernel of your own, for words
===============================

Samples need not be numbers: whatever can be compared has a kernel matrix, and a model takes it as it is. Here words
are compared by the pairs of letters that they share.
"""

# %%
# Numbers in three languages, and the share of letter pairs that two words have in common.

import numpy as np

from drkm import ConstrDRKM
from drkm.plotting import COLOURS, MARKERS, style

LANGUAGES = {
    "English": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen",
    "Italian": "uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
    "German": "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn",
}
words = [word for text in LANGUAGES.values() for word in text.split()]
language = np.array([name for name, text in LANGUAGES.items() for _ in text.split()])


def pairs(word: str) -> set[str]:
    whole = f"<{word}>"
    return {whole[i : i + 2] for i in range(len(whole) - 1)}


def kernel(left: list[str], right: list[str]) -> np.ndarray:
    """|A ∩ B|/√(|A||B|), which is a dot product of indicator vectors of length 1."""
    sets = [[pairs(word) for word in side] for side in (left, right)]
    return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in sets[1]] for a in sets[0]])


model = ConstrDRKM(3, kernel="precomputed", center=True).fit(kernel(words, words))

# %%
# A new word needs its row of kernel values with the training words.

new = ["eighteen", "diciotto", "achtzehn"]
codes = model.transform(kernel(new, words))
nearest = [words[int(np.linalg.norm(model.codes_ - code, axis=1).argmin())] for code in codes]
for word, other in zip(new, nearest, strict=True):
    print(f"{word:10} has codes like those of {other}")

# %%
# Words by their first two codes.

with style() as plt:
    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for name, colour, marker in zip(LANGUAGES, COLOURS, MARKERS, strict=False):
        axes.scatter(*model.codes_[language == name, :2].T, s=12, color=colour, marker=marker, label=name)
    for word, code in zip(words, model.codes_, strict=True):
        axes.annotate(word, code[:2], (3, 2), textcoords="offset points", fontsize=6)
    axes.set_xlabel("layer1_0")
    axes.set_ylabel("layer1_1")
    axes.legend()
plt.show()
