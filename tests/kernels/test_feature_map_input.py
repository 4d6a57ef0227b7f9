"""Wrong feature maps are refused with one sentence, and modules are not changed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drkm import ConstrDRKM, load
from drkm.kernels import FeatureMap
from refusals import refused

X = np.random.RandomState(0).randn(30, 4)
NAN = float("nan")


BAD_MAPS = {
    "NaN": (lambda x: x * NAN, ("layer 1", "NaN")),
    "NaN on some rows": (torch.log, ("layer 1", "NaN")),
    "one dimension": (lambda x: x[:, 0], ("layer 1", "×D", "(")),
    "too few rows": (lambda x: x[:1], ("layer 1", "30×D", "(1, 4)")),
    "no tensor": (lambda x: x.numpy(), ("layer 1", "tensor", "ndarray")),
    "no features": (lambda x: x[:, :0], ("layer 1", "×D", "(30, 0)")),
    "other rows matter": (lambda x: x - x.mean(0), ("layer 1", "other rows")),
    "chance": (torch.nn.functional.dropout, ("layer 1", "every time")),
    "chance in later rows": (
        lambda x: torch.cat([x[:2], x[2:] + torch.rand_like(x[2:])]),
        ("layer 1", "every time", "the second time"),
    ),
    "as many features as rows": (lambda x: x @ x.T, ("layer 1", "other rows", "first 2 alone")),
    "not for few rows": (lambda x: x - x[2], ("layer 1", "fails on 2×4 values")),
    "not for this width": (torch.nn.Linear(7, 3), ("layer 1",)),
    "less precise": (lambda x: x.float(), ("layer 1", "float64", "got float32")),
    "whole numbers": (lambda x: (3 * x).long(), ("layer 1", "float64", "got int64")),
    "sparse": (lambda x: x.to_sparse(), ("layer 1", "dense", "sparse")),
    "in place": (lambda x: x.mul_(2.0), ("layer 1", "must not change")),
    "in place, once": (lambda x: x.clamp_(min=0.0), ("layer 1", "must not change")),
}


@pytest.mark.parametrize("name", BAD_MAPS)
def test_feature_maps_are_checked(name):
    function, words = BAD_MAPS[name]
    data = np.abs(X)
    data[25:] *= -1
    message = refused(lambda: ConstrDRKM(2, kernel=FeatureMap(function)).fit(data), ValueError, *words)
    assert message.startswith("kernel: the feature map")


def test_feature_maps_of_deep_layers_are_checked():
    kernel = ["rbf", FeatureMap(lambda x: x * NAN)]
    refused(lambda: ConstrDRKM((2, 1), kernel=kernel).fit(X), ValueError, "kernel", "layer 2", "NaN")


class Frozen(torch.nn.Module):
    """A module whose parameters have gradients, but whose inputs have none."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.detach())


@pytest.mark.parametrize("function", [Frozen(), lambda x: torch.tanh(x.detach()), torch.no_grad()(torch.cos)])
def test_a_feature_map_without_gradients_is_refused_in_a_deep_layer_which_it_would_stop_from_training(function):
    kernel = ["rbf", FeatureMap(function)]
    refused(lambda: ConstrDRKM((2, 1), kernel=kernel).fit(X), ValueError, "kernel", "layer 2", "differentiable")


def test_points_that_a_feature_map_cannot_take_are_refused_after_fit():
    fitted = ConstrDRKM((3, 2), kernel=[FeatureMap(torch.log), "rbf"]).fit(np.abs(X) + 0.1)
    for method in (fitted.transform, fitted.denoise):
        refused(lambda method=method: method(-np.abs(X[:2])), ValueError, "X", "kernel", "NaN")


def test_modules_are_used_in_evaluation_mode_and_left_in_theirs(tmp_path):
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4))
    fitted = ConstrDRKM((3, 2), kernel=[FeatureMap(module), "rbf"]).fit(X)
    assert module.training
    np.testing.assert_allclose(fitted.transform(X), fitted.codes_, atol=1e-6)
    fitted.save(tmp_path / "model")
    loaded = load(tmp_path / "model", feature_maps={1: module})
    assert module.training
    np.testing.assert_allclose(loaded.transform(X), fitted.codes_, atol=1e-6)


def test_a_map_for_a_file_must_be_callable(tmp_path):
    ConstrDRKM(2, kernel=FeatureMap(torch.sin)).fit(X).save(tmp_path / "model")
    refused(lambda: load(tmp_path / "model", feature_maps={1: "sin"}), ValueError, "feature_maps:", "callable", "'sin'")


def test_feature_map_options_are_checked():
    refused(lambda: FeatureMap(3), TypeError, "map", "callable", "int")
    refused(lambda: FeatureMap(lambda x: x, trainable=True), TypeError, "trainable", "Module")
    module = torch.nn.Linear(4, 3)
    refused(lambda: FeatureMap(module, trainable="no"), TypeError, "trainable", "True or False", "'no'")
    refused(lambda: FeatureMap(module, normalize=False, trainable=True), ValueError, "normalize", "False")
