"""Codes of one-layer models as a torch module: those of `transform`, also after torch.export."""

import numpy as np
import pytest
import torch

from drkm import ConstrDRKM, KernelPCA
from drkm.gram import Nystroem
from drkm.kernels import FeatureMap, Matern


def samples(n, d=6, seed=0):
    return np.random.RandomState(seed).randn(n, d) * np.arange(1, d + 1)


def exported(module, points):
    rows = torch.export.Dim("rows", min=2)
    return torch.export.export(module, (points[:4],), dynamic_shapes=({0: rows},)).module()


MODELS = [
    KernelPCA(4),
    KernelPCA(4, kernel="rbf", gamma=0.01),
    KernelPCA(4, kernel="poly"),
    KernelPCA(4, kernel="cosine"),
    KernelPCA(4, kernel=Matern(1.5)),
    KernelPCA(4, kernel="rbf", gamma=0.01, gram=Nystroem(m=50)),
    ConstrDRKM(4),
    ConstrDRKM(4, center=True, axes="varimax"),
    ConstrDRKM(4, kernel="laplacian", eta=2.0),
    ConstrDRKM(4, kernel="linear", center=True),
    ConstrDRKM(4, encoder="projection"),
    ConstrDRKM(4, gram=Nystroem(m=50), center=True),
    ConstrDRKM(4, gram="fourier", random_state=0),
    ConstrDRKM(4, kernel="cosine"),
    ConstrDRKM(4, kernel="polynomial"),
    ConstrDRKM(4, kernel=FeatureMap(torch.nn.Linear(6, 9))),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_module_of_torch_answers_like_transform(model):
    X = samples(150)
    new = torch.from_numpy(samples(20, seed=1))
    module = model.fit(X).to_torch()
    expected = model.transform(new.numpy())
    for answer in (module(new), exported(module, new)(new)):
        np.testing.assert_allclose(answer.detach().numpy(), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_module_of_torch_in_another_precision_leaves_the_model_as_it_is(model):
    X = samples(150)
    new = torch.from_numpy(samples(20, seed=1))
    expected = model.fit(X).transform(new.numpy())
    module = model.to_torch().float()
    for answer in (module(new.float()), exported(module, new.float())(new.float())):
        assert answer.dtype == torch.float32
        np.testing.assert_allclose(answer.detach().numpy(), expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_array_equal(model.transform(new.numpy()), expected)


def test_a_module_of_torch_takes_kernel_values_of_a_precomputed_kernel():
    X = samples(60)
    for model in (KernelPCA(3, kernel="precomputed"), ConstrDRKM(3, kernel="precomputed")):
        rows = torch.from_numpy(X[:5] @ X.T)
        module = model.fit(X @ X.T).to_torch()
        np.testing.assert_allclose(module(rows).numpy(), model.transform(rows.numpy()), rtol=1e-6, atol=1e-9)


def test_models_that_torch_cannot_hold_are_refused():
    X = samples(30)
    with pytest.raises(ValueError, match="n_components: to_torch and to_numpy are for one layer, got 2 layers"):
        ConstrDRKM((3, 2)).fit(X).to_torch()
    with pytest.raises(ValueError, match="to_torch and to_numpy need a kernel that torch computes, got 'sigmoid'"):
        KernelPCA(1, kernel="sigmoid", gamma=1e-4).fit(X).to_torch()
