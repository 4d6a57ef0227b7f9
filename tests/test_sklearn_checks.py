from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from drkm import ConstrDRKM
from drkm.gram import Fourier, Nystroem
from drkm.kernels import RBF, Laplacian, Matern, Polynomial
from drkm.solvers import LBFGS

X, y = load_digits(return_X_y=True)
X = X[:120] / 16
y = y[:120]


@parametrize_with_checks(
    [
        ConstrDRKM(n_components=2),
        ConstrDRKM(n_components=(2, 1)),
        ConstrDRKM(n_components=(2, 1), center=True),
        # One of each family: distances are the first, then products, then features.
        ConstrDRKM(n_components=(2, 1), kernel="polynomial"),
        # Checks set n_components=1, so one kernel per layer cannot be given; this one is for a first layer.
        ConstrDRKM(n_components=2, kernel="linear"),
    ]
)
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)


def test_works_inside_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), ConstrDRKM((8, 3)), LogisticRegression(C=1e4, max_iter=2000))
    pipeline.fit(X[:90], y[:90])
    assert pipeline.score(X[90:], y[90:]) > 0.5
    assert pipeline[:-1].get_feature_names_out().tolist() == [
        *(f"layer1_{i}" for i in range(8)),
        *(f"layer2_{i}" for i in range(3)),
    ]


def test_grid_search_selects_components_by_the_score_alone():
    sizes = [(1, 1), (10, 4), (4, 2)]
    search = GridSearchCV(ConstrDRKM(), {"n_components": sizes}, cv=2)
    search.fit(X[:80])
    halves = [(X[40:80], X[:40]), (X[:40], X[40:80])]

    def error(components):
        models = [(ConstrDRKM(components).fit(train), held) for train, held in halves]
        return np.mean([np.square(model.denoise(held) - held).sum(axis=1).mean() for model, held in models])

    errors = [error(components) for components in sizes]
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], errors, rtol=1e-6)
    # Neither the first nor the last, which a search would take in case of ties.
    assert search.best_params_["n_components"] == (10, 4)
    assert search.best_estimator_.codes_.shape == (80, sum(search.best_params_["n_components"]))


@pytest.mark.filterwarnings("ignore::drkm.strange_data.StrangeDataWarning")  # of the widths that are too narrow
def test_grid_search_selects_by_parameters_of_a_kernel():
    model = ConstrDRKM((4, 2), kernel=(RBF(), Matern(1.5)))
    grid = {"kernel__layer1__sigma2": [0.1, 20.0], "kernel__layer2": [RBF(0.1), Matern(2.5, 0.1)]}
    search = GridSearchCV(model, grid, cv=2).fit(X[:80])
    assert search.best_params_["kernel__layer1__sigma2"] == 20.0
    assert search.best_estimator_.kernels_[0] == RBF(20.0)
    assert model.kernel == (RBF(), Matern(1.5))
    pipeline = make_pipeline(StandardScaler(), ConstrDRKM(3, kernel=RBF()))
    assert pipeline.set_params(constrdrkm__kernel__sigma2=7).fit(X[:40])[-1].kernels_ == (RBF(7.0),)


def test_parameters_of_objects_are_got_and_set_by_nested_names():
    given = {"kernel": [RBF(), "rbf"], "gram": Nystroem(m=30), "solver": LBFGS()}
    model = ConstrDRKM((3, 2), **given)
    deep = model.get_params()
    assert {name: deep[name] for name in given} == given
    assert (deep["kernel__layer1__sigma2"], deep["kernel__layer2"]) == ("auto", "rbf")
    assert deep["gram__deep__features"] == 2000
    assert not [name for name in model.get_params(deep=False) if "__" in name]
    model.set_params(gram__deep__features=50, gram__deep=Fourier(9), solver__memory=4, kernel__layer1__sigma2=2)
    assert model.gram == Nystroem(m=30, deep=Fourier(50))
    assert model.solver == LBFGS(memory=4)
    assert model.kernel == [RBF(2.0), "rbf"]
    # The caller's own objects are unchanged.
    assert given == {"kernel": [RBF(), "rbf"], "gram": Nystroem(m=30), "solver": LBFGS()}


@pytest.mark.parametrize(
    ("kernel", "name", "words"),
    [
        ("rbf", "kernel__sigma2", "kernel__sigma2: .*'rbf', a name without parameters: .*drkm.kernels"),
        ([RBF(), "rbf"], "kernel__sigma2", "kernel__sigma2: .*kernel__layer1__sigma2"),
        ([RBF(), "rbf"], "kernel__layer3__sigma2", "kernel__layer3__sigma2: unknown"),
        (RBF(), "kernel__gamma", "kernel__gamma: .*which has kernel__sigma2"),
    ],
)
def test_nested_names_that_do_not_exist_are_refused(kernel, name, words):
    with pytest.raises(ValueError, match=words):
        ConstrDRKM(kernel=kernel).set_params(**{name: 1.0})


def test_clone_copies_every_parameter_and_nothing_fitted():
    model = ConstrDRKM(
        (3, 2), kernel=[RBF(2.0), Matern(1.5, 0.1)], center=True, eta=(1.0, 2.0), axes="ica", n_init=2, random_state=3
    ).fit(X[:40])
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    np.testing.assert_array_equal(copy.fit(X[:40]).codes_, model.codes_)


def test_set_params_changes_the_next_fit():
    model = ConstrDRKM((3, 2)).set_params(n_components=4, kernel="cosine")
    assert model.fit(X[:40]).codes_.shape == (40, 4)


def test_set_output_pandas_names_columns_and_keeps_the_index():
    frame = pd.DataFrame(X[:40], index=[f"row{i}" for i in range(40)], columns=[f"p{i}" for i in range(64)])
    model = ConstrDRKM((3, 2)).set_output(transform="pandas")
    for out in (model.fit_transform(frame), model.transform(frame)):
        assert isinstance(out, pd.DataFrame)
        assert out.columns.tolist() == model.get_feature_names_out().tolist()
        assert out.index.tolist() == frame.index.tolist()
    assert isinstance(model.transform(frame.set_axis(range(40))), pd.DataFrame)


def test_set_output_default_returns_arrays_for_arrays():
    model = ConstrDRKM((3, 2)).set_output(transform="default").fit(X[:40])
    assert isinstance(model.transform(X[:40]), np.ndarray)


def test_feature_names_are_one_a_component_by_layer():
    model = ConstrDRKM((2, 1, 1)).fit(X[:30])
    assert model.get_feature_names_out().tolist() == ["layer1_0", "layer1_1", "layer2_0", "layer3_0"]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", [Laplacian(), Polynomial(2)], ["cosine", Matern(1.5)]], ids=str)
def test_pickle_and_joblib_round_trips_in_memory_give_equal_bits(kernel, center):
    model = ConstrDRKM((3, 2), kernel=kernel, center=center).fit(X[:40])
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(buffer)):
        np.testing.assert_array_equal(copy.codes_, model.codes_)
        np.testing.assert_array_equal(copy.transform(X[40:60]), model.transform(X[40:60]))
        np.testing.assert_array_equal(copy.denoise(X[40:44]), model.denoise(X[40:44]))
        assert copy.summary() == model.summary()
