"""
Save, load, and the command line
================================

A model is one file without pickle. The command line writes and reads the same files, and remembers in them how data
were read.
"""

# %%
# Save and load: the same codes, bit for bit.

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from drkm import ConstrDRKM, load
from drkm.plotting import plot_reconstructions

folder = TemporaryDirectory()
place = Path(folder.name)
X = load_digits().data / 16
model = ConstrDRKM((6, 3)).fit(X[:200])
model.save(place / "digits.safetensors")
again = load(place / "digits.safetensors")
print("the same codes:", np.array_equal(model.transform(X[200:300]), again.transform(X[200:300])))
print(f"size of the file: {(place / 'digits.safetensors').stat().st_size / 1000:.0f} kB")

# %%
# From the command line, in a folder with two files of images.

images = load_digits().images
np.save(place / "train.npy", images[:200])
np.save(place / "new.npy", images[200:300])


def drkm(command: str) -> None:
    print(f"$ drkm {command}")
    done = subprocess.run(
        [sys.executable, "-m", "drkm", *command.split()], cwd=place, capture_output=True, text=True, check=True
    )
    print(done.stdout)


drkm("fit train.npy -o fitted.safetensors --components 6,3")
drkm("encode fitted.safetensors new.npy -o codes.csv --quality")
drkm("plot fitted.safetensors new.npy -o figures")

# %%
# The last command wrote figures like this one, which Python draws too.

figure = plot_reconstructions(again, X[200:300], shape=(8, 8))
folder.cleanup()
plt.show()
