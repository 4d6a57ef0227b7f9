"""Model files of versions 1 to 4 are read: the model gives the codes and points that it gave when it was written.

Those in `models_of_version_4` were written by the code of commit 8563d6c, with
`python tests/test_old_models.py FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from drkm import ConstrDRKM, load
from drkm.files import container
from drkm.gram import Fourier, Nystroem
from drkm.persistence.model_file import VERSION

FOLDER = Path(__file__).with_name("models_of_version_4")
X = (np.arange(96).reshape(24, 4) ** 2 % 17) / 4.0
NEW = X[:5] + 0.1

#: parameters of a model by the name of its file, and the version of the file
MODELS = {
    "samples": ({"center": True}, 1),
    "landmarks": ({"gram": Nystroem(8, deep=Fourier(30))}, 3),
    "frequencies": ({"gram": Fourier(40), "dtype": "float32"}, 3),
    "all-landmarks": ({"gram": Nystroem(24)}, 4),
}


def write(folder: Path) -> None:
    for name, (options, version) in MODELS.items():
        model = ConstrDRKM((3, 2), eta=1.0, tol=1e-2, random_state=0, **options).fit(X)
        model.save(folder / name)
        assert container.read(folder / name, "model", version)[1]["version"] == version
        np.savez(folder / f"{name}.npz", codes=model.transform(NEW), points=model.denoise(NEW))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_an_earlier_version_gives_what_it_gave(name):
    expected, model = np.load(FOLDER / f"{name}.npz"), load(FOLDER / name)
    loose = 1e-3 if model.codes_.dtype == np.float32 else 1e-6
    np.testing.assert_allclose(model.transform(NEW), expected["codes"], atol=loose)
    np.testing.assert_allclose(model.denoise(NEW), expected["points"], atol=100 * loose)
    assert len(model.history_) == model.n_iter_ + 1


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_an_earlier_version_is_written_in_the_present_one(name, tmp_path):
    model = load(FOLDER / name)
    model.save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    assert (header["version"], "history" in header["result"]) == (VERSION, False)
    assert tensors["history"].dtype == torch.float64
    again = load(tmp_path / "model")
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
