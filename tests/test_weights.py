"""eta="auto": weights with which a deep layer does not dominate the one below."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dense_oracle import structured
from drkm import ConstrDRKM, load
from few_digits import DIGITS, X


def tables():
    """Return small real sets, scaled."""
    scaled = [StandardScaler().fit_transform(made().data)[:150] for made in (load_breast_cancer, load_wine)]
    return {"digits": X, "breast cancer": scaled[0], "wine": scaled[1], "structured": structured(100).numpy()}


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("center", [False, True])
def test_layer_1_keeps_the_effective_sample_size_of_kernel_pca(name, center):
    points = tables()[name]
    pca = ConstrDRKM(10, center=center).fit(points)
    deep = ConstrDRKM((10, 5), center=center).fit(points)
    paper = ConstrDRKM((10, 5), center=center, eta=1.0).fit(points)
    assert deep.fitted_.supports[0] >= 0.85 * pca.fitted_.supports[0]
    assert paper.fitted_.supports[0] < 0.7 * pca.fitted_.supports[0]


# Components beyond what a small layer offers have hardly any energy.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("sizes", "width", "largest"),
    [((10, 5), 0.2, "slope"), ((2, 5), 0.04, "curvature"), ((10, 5), 5.0, "directions")],
)
def test_the_rule_by_dense_algebra(sizes, width, largest):
    """Layer-wise kernel PCA, with the pull of the RBF written out."""
    sigma2 = (5.0, width)
    model = ConstrDRKM(sizes, sigma2=sigma2).fit(X)

    def gram(points, width):
        return np.exp(-((points[:, None] - points) ** 2).sum(axis=2) / (2 * width))

    values, vectors = np.linalg.eigh(gram(X, sigma2[0]))
    hold, U = values[-sizes[0]], vectors[:, -sizes[0] :]
    K = gram(U, sigma2[1])
    values_2, vectors_2 = np.linalg.eigh(K)
    A = vectors_2[:, -sizes[1] :]
    W = K * (A @ A.T)
    pull = np.linalg.norm(W @ U - W.sum(axis=1)[:, None] * U) / sigma2[1] / np.sqrt(sizes[0])
    gains = {"slope": pull / 0.05, "curvature": W.sum() / len(X) / sigma2[1] / 0.15, "directions": values_2[-1] / 2}
    assert max(gains, key=gains.get) == largest
    assert model.eta_ == (1.0, pytest.approx(gains[largest] / hold, rel=0.05))
    assert float(f"{model.eta_[1]:.2g}") == model.eta_[1]


@pytest.mark.parametrize(
    "settings", [{"gram": "tiled"}, {"dtype": "float32"}, {"init": "orthogonal", "random_state": 0}]
)
def test_neither_operator_nor_precision_nor_start_changes_it(settings):
    assert ConstrDRKM((4, 2), max_iter=30, tol=1e-3, **settings).fit(X).eta_ == ConstrDRKM((4, 2)).fit(X).eta_


def test_units_do_not_change_it():
    assert ConstrDRKM((4, 2)).fit(1000 * X).eta_ == ConstrDRKM((4, 2)).fit(X).eta_


@pytest.mark.parametrize("kernel", ["laplacian", "matern", "polynomial", "cosine"])
def test_any_deep_kernel_gets_a_weight_with_which_layer_1_stays(kernel):
    model = ConstrDRKM((10, 5), kernel=("rbf", kernel)).fit(X)
    assert model.fitted_.supports[0] >= 0.85 * ConstrDRKM(10).fit(X).fitted_.supports[0]
    assert model.converged_


def overlap(deep, pca):
    """Return the share of the subspace of a one-layer model that the first layer of another has."""
    inner = deep.codes_[:, deep.layer_slices_[0]].T @ pca.codes_
    return (inner**2).sum() / inner.shape[0]


# Components beyond what a small layer offers have hardly any energy.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (2, 5), (2, 10)])
def test_a_layer_of_one_or_two_components_stays_kernel_pca(name, sizes):
    points = tables()[name]
    pca = ConstrDRKM(sizes[0]).fit(points)
    assert overlap(ConstrDRKM(sizes).fit(points), pca) > 0.95


# Components beyond what a small layer offers have hardly any energy.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", tables())
def test_one_wide_bandwidth_for_all_layers_leaves_layer_1_its_directions(name):
    points = tables()[name]
    pca = ConstrDRKM(3).fit(points)
    width = pca.kernels_[0].sigma2
    deep = ConstrDRKM((3, 2), sigma2=width).fit(points)
    assert overlap(deep, pca) > 0.9
    assert overlap(ConstrDRKM((3, 2), sigma2=width, eta=1.0).fit(points), pca) < 0.8


def test_one_layer_has_the_weight_of_the_paper():
    assert ConstrDRKM(3).fit(X).eta_ == (1.0,)
    assert ConstrDRKM((3, 2)).fit(np.ones((12, 3))).converged_


def test_weights_never_fall_from_layer_to_layer():
    eta = ConstrDRKM((6, 4, 3)).fit(DIGITS[:150]).eta_
    assert eta[0] == 1.0
    assert list(eta) == sorted(eta)


def test_given_weights_give_the_same_bits():
    auto = ConstrDRKM((4, 2)).fit(X)
    np.testing.assert_array_equal(auto.codes_, ConstrDRKM((4, 2), eta=auto.eta_).fit(X).codes_)


def test_a_file_keeps_what_was_asked_and_the_numbers(tmp_path):
    model = ConstrDRKM((4, 2)).fit(X)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.eta == "auto"
    assert again.eta_ == model.eta_
    assert again.summary() == model.summary()


def test_summary_prints_the_numbers():
    model = ConstrDRKM((4, 2)).fit(X)
    header, _, second = model.summary().splitlines()[1:4]
    assert header.split()[5] == "eta"
    assert f"  {model.eta_[1]:.4g}  " in second


def test_the_paper_keeps_its_weights():
    assert ConstrDRKM.paper((4, 2), 50.0).eta == 1.0


@pytest.mark.parametrize("eta", ["equal", None, {"auto"}])
def test_what_is_no_weight_is_refused(eta):
    with pytest.raises(TypeError, match='eta: expected "auto", a positive number or one per layer, got'):
        ConstrDRKM((4, 2), eta=eta).fit(X)


def test_a_resumed_fit_has_the_same_weights(tmp_path):
    path = tmp_path / "fit.ckpt"
    whole = ConstrDRKM((4, 2), tol=1e-9).fit(X)
    calls = []

    def stop(entry):
        calls.append(entry)
        return len(calls) >= 4

    with pytest.warns(match="interrupted|stopped|did not converge"):
        ConstrDRKM((4, 2), tol=1e-9, checkpoint=path, callbacks=stop).fit(X)
    again = ConstrDRKM((4, 2), tol=1e-9, checkpoint=path).fit(torch.from_numpy(X))
    assert again.eta_ == whole.eta_
    np.testing.assert_array_equal(np.asarray(again.codes_), whole.codes_)


def test_a_deep_bandwidth_that_leaves_a_layer_nothing_to_learn_is_named():
    with pytest.warns(ConvergenceWarning, match=r"layer 2 has .* of the energy, too little .*: narrow sigma2 there"):
        ConstrDRKM((6, 3), sigma2=(50.0, 1e9)).fit(X)
