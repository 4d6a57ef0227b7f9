"""sigma2 as a parameter of the model: one bandwidth or one per layer, as numbers or rules."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from drkm import ConstrDRKM, load, select
from drkm.kernels import RBF, Laplacian, Linear

X = np.random.RandomState(0).randn(40, 3)


@pytest.mark.parametrize(
    ("sigma2", "same"),
    [
        (2.0, [RBF(2.0), RBF(2.0)]),
        ((3.0, 0.05), [RBF(3.0), RBF(0.05)]),
        (np.array([3.0, 0.05]), [RBF(3.0), RBF(0.05)]),
        ("scale", [RBF("scale"), RBF("scale")]),
        (["median", "scale"], [RBF("median"), RBF("scale")]),
        ((3.0, None), [RBF(3.0), RBF()]),
        ((3.0, "auto"), [RBF(3.0), RBF()]),
        (None, [RBF(), RBF()]),
    ],
    ids=str,
)
def test_bandwidths_are_those_of_kernel_objects(sigma2, same):
    found = ConstrDRKM((3, 2), sigma2=sigma2).fit(X)
    expected = ConstrDRKM((3, 2), kernel=same).fit(X)
    assert found.kernels_ == expected.kernels_
    np.testing.assert_array_equal(found.codes_, expected.codes_)


def test_names_of_other_kernels_take_it_and_a_file_keeps_it(tmp_path):
    model = ConstrDRKM((3, 2), kernel=("linear", "laplacian"), sigma2=(None, 0.5)).fit(X)
    assert model.kernels_ == (Linear(), Laplacian(0.5))
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert list(again.sigma2) == [None, 0.5]
    assert again.kernels_ == model.kernels_


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": RBF(2.0), "sigma2": 3.0}, r"sigma2: a kernel object has its own, give RBF\(sigma2=3.0\)"),
        ({"kernel": RBF(), "sigma2": "scale"}, "sigma2: a kernel object has its own"),
        ({"kernel": "linear", "sigma2": 3.0}, 'sigma2: the kernel linear has no bandwidth, give "auto" in its place'),
        ({"sigma2": (1.0, 2.0, 3.0)}, "sigma2: expected one per layer, 2 in all, got 3"),
        ({"sigma2": -1.0}, "sigma2: expected a positive finite number, got -1"),
        ({"sigma2": "wide"}, "sigma2: unknown rule 'wide'"),
        ({"sigma2": "median"}, 'sigma2: "median" needs inputs that do not move, got it in layer 2'),
    ],
)
def test_what_cannot_be_meant_is_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        ConstrDRKM((3, 2), **parameters).fit(X)


def test_the_paper_a_grid_search_and_select_use_it():
    assert ConstrDRKM.paper((3, 2), sigma2=(50, 5)).sigma2 == [50.0, 5.0]
    search = GridSearchCV(ConstrDRKM(3), {"sigma2": [0.5, 5.0]}, cv=2).fit(X)
    assert search.best_estimator_.kernels_ == (RBF(5.0),)
    found = select(X, {"n_components": [2], "sigma2": [5.0]}, noise=0.1, estimator=ConstrDRKM(3, kernel="laplacian"))
    assert found.best_estimator.kernels_ == (Laplacian(5.0),)
