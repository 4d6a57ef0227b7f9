from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from drkm import ConstrDRKM, inputs, load
from drkm.datasets import make_half_circle
from drkm.estimator import NoiseWarning
from drkm.explorer import Subject
from drkm.explorer.strips import Strips
from drkm.gram import Dense, Nystroem
from drkm.inference.density import CodeDensity
from drkm.inference.typical import typical_row
from few_digits import NEW, X, relative


@pytest.fixture(scope="module")
def model():
    return ConstrDRKM((6, 3)).fit(X)


# Kinds of arrays


def test_arrays_are_answered_with_arrays(model):
    Z = model.transform(NEW)
    for out, width in ((Z, 9), (model.denoise(NEW), 64), (model.inverse_transform(Z), 64)):
        assert type(out) is np.ndarray
        assert out.shape == (20, width)
        assert out.dtype == np.float64


def test_frames_are_answered_with_frames(model):
    frame = pd.DataFrame(X, index=range(1000, 1100), columns=[f"p{i}" for i in range(64)])
    fitted = ConstrDRKM((6, 3)).fit(frame)
    assert fitted.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(fitted.codes_, model.codes_)
    Z = fitted.transform(frame[:5])
    points = fitted.denoise(frame[:5])
    back = fitted.inverse_transform(Z)
    for out, columns in ((Z, fitted.get_feature_names_out()), (points, frame.columns), (back, frame.columns)):
        assert isinstance(out, pd.DataFrame)
        assert out.index.tolist() == frame.index[:5].tolist()
        assert out.columns.tolist() == list(columns)
    assert isinstance(fitted.fit_transform(frame), pd.DataFrame)


@pytest.mark.parametrize("loaded", [False, True], ids=["fitted", "loaded"])
def test_a_model_of_a_frame_makes_frames_where_it_is_given_no_data(model, loaded, tmp_path):
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    fitted = ConstrDRKM((6, 3)).fit(frame)
    if loaded:
        fitted.save(tmp_path / "model")
        fitted = load(tmp_path / "model")
    for out, expected in (
        (fitted.sample(4, random_state=0), model.sample(4, random_state=0)),
        (fitted.traverse(1, 0, [0, 0.1]), model.traverse(1, 0, [0, 0.1])),
        (fitted.traverse(1, 0, [0, 0.1], 3), model.traverse(1, 0, [0, 0.1], 3)),
        (fitted.traverse(1, 0, [0, 0.1], frame.iloc[3]), model.traverse(1, 0, [0, 0.1], X[3])),
        (fitted.traverse(1, 0, [0, 0.1], frame[3:4]), model.traverse(1, 0, [0, 0.1], X[3:4])),
    ):
        assert isinstance(out, pd.DataFrame)
        assert out.columns.tolist() == frame.columns.tolist()
        assert out.index.tolist() == list(range(len(expected)))
        np.testing.assert_array_equal(out, expected)


def test_details_are_answered_in_kind(model):
    frame = pd.DataFrame(NEW, index=range(50, 70))
    found, encoding = model.reconstruct(frame), model.encode(frame)
    assert isinstance(found.points, pd.DataFrame)
    assert found.points.index.tolist() == encoding.codes.index.tolist() == frame.index.tolist()
    assert encoding.codes.columns.tolist() == model.get_feature_names_out().tolist()
    for kind, given in ((np.ndarray, NEW), (torch.Tensor, torch.tensor(NEW))):
        for part in (*vars(model.reconstruct(given)).values(), *model.encode(given)):
            assert isinstance(part, kind)


def test_frames_without_names_are_answered_with_frames():
    frame = pd.DataFrame(X, index=range(1000, 1100))
    fitted = ConstrDRKM((6, 3)).fit(frame)
    for out in (fitted.denoise(frame[:5]), fitted.inverse_transform(fitted.transform(frame[:5]))):
        assert out.index.tolist() == frame.index[:5].tolist()
        assert out.columns.tolist() == frame.columns.tolist()


def test_a_row_of_a_frame_is_a_point_with_the_names_of_its_features(model):
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    fitted = ConstrDRKM((6, 3)).fit(frame)
    np.testing.assert_array_equal(fitted.traverse(1, 0, [0.1], frame.iloc[3]), model.traverse(1, 0, [0.1], X[3]))
    np.testing.assert_array_equal(fitted.traverse(1, 0, [0.1], frame[3:4]), model.traverse(1, 0, [0.1], X[3]))
    with pytest.raises(ValueError, match="feature names"):
        fitted.traverse(1, 0, [0.1], frame.iloc[3, ::-1])


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_a_model_does_not_change_with_the_samples_of_the_caller(kind):
    samples, new = kind(X), kind(NEW)
    fitted = ConstrDRKM((6, 3)).fit(samples)
    before = fitted.denoise(new)
    samples *= 0
    np.testing.assert_array_equal(fitted.denoise(new), before)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_a_model_does_not_change_with_what_the_caller_does_to_its_codes(kind):
    model = ConstrDRKM((6, 3))
    codes = model.fit_transform(kind(X))
    before, text = model.traverse(1, 0, [0.1]), model.summary()
    codes *= 10
    model.codes_ -= 1
    model.eigenvalues_[0][:] = 0
    np.testing.assert_array_equal(model.traverse(1, 0, [0.1]), before)
    assert model.summary() == text


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_are_answered_with_tensors(model, dtype):
    tensor = torch.tensor(X, dtype=dtype)
    fitted = ConstrDRKM((6, 3)).fit(tensor)
    Z = fitted.transform(tensor[:5])
    outs = (fitted.codes_, fitted.multipliers_, *fitted.eigenvalues_, Z, fitted.denoise(tensor[:5]))
    for out in (
        *outs,
        fitted.inverse_transform(Z),
        fitted.fit_transform(tensor),
        fitted.sample(2),
        fitted.traverse(1, 0, torch.zeros(2, requires_grad=True)),
        fitted.traverse(1, 0, [0], tensor[0]),
    ):
        assert isinstance(out, torch.Tensor)
        assert out.device == tensor.device
        assert not out.requires_grad
    assert relative(fitted.codes_, model.codes_) < 1e-4


def test_a_model_answers_in_the_kind_it_is_asked_in(model):
    assert isinstance(model.transform(torch.tensor(NEW)), torch.Tensor)
    np.testing.assert_array_equal(model.transform(torch.tensor(NEW)).numpy(), model.transform(NEW))
    assert isinstance(model.encode(torch.tensor(NEW)).residual, torch.Tensor)


def test_tensors_that_require_gradients_and_integers_are_taken(model):
    assert isinstance(model.transform(torch.tensor(NEW, requires_grad=True)), torch.Tensor)
    whole = (16 * X).astype(int)
    assert ConstrDRKM((6, 3)).fit(torch.tensor(whole)).codes_.dtype == torch.float64
    np.testing.assert_array_equal(ConstrDRKM((6, 3)).fit(whole).codes_, ConstrDRKM((6, 3)).fit(16 * X).codes_)


@pytest.mark.parametrize("given", [X + 1e7, torch.tensor(X + 1e7), X * 1e-50], ids=["array", "tensor", "tiny"])
def test_samples_that_single_precision_cannot_tell_apart_are_refused(given):
    with pytest.raises(
        ValueError, match=r"^X: float32 loses \d+% of what tells the samples apart: .* dtype=\"float64\""
    ):
        ConstrDRKM((6, 3), dtype="float32").fit(given)


def test_samples_in_a_file_that_single_precision_cannot_tell_apart_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", X + 1e7)
    with pytest.raises(ValueError, match=r"^X: float32 loses \d+% of what tells the samples apart"):
        ConstrDRKM((6, 3), dtype="float32", gram="tiled").fit(tmp_path / "X.npy")


def test_single_precision_takes_features_far_from_zero_that_are_constant_or_vary_enough(model):
    given = np.hstack([X + 1e3, np.full((len(X), 1), 1e9)])
    assert ConstrDRKM((6, 3), dtype="float32").fit(given).objective_ == pytest.approx(model.objective_, rel=1e-3)


def test_inputs_are_left_as_they_were(model):
    mine = X.copy()
    mine.setflags(write=False)
    fitted = ConstrDRKM((6, 3)).fit(mine)
    fitted.denoise(mine[:3])
    fitted.transform(mine)
    np.testing.assert_array_equal(mine, X)
    strided = np.asfortranarray(X)
    np.testing.assert_array_equal(ConstrDRKM((6, 3)).fit(strided).codes_, model.codes_)


# From codes to points


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("axes", ["ritz", "varimax"])
def test_inverse_transform_of_codes_is_denoising_by_the_first_layer(center, axes):
    fitted = ConstrDRKM((6, 3), center=center, axes=axes).fit(X)
    expected = fitted.denoise(NEW, components="layer 1")
    assert relative(fitted.inverse_transform(fitted.transform(NEW)), expected) < 1e-5


def test_denoise_takes_components_by_layer_or_by_pair(model):
    pairs = [(2, i) for i in range(3)]
    np.testing.assert_allclose(model.denoise(NEW, pairs), model.denoise(NEW, "layer 2"), atol=1e-9)
    every = [(1, i) for i in range(6)] + pairs
    np.testing.assert_allclose(model.denoise(NEW, every), model.denoise(NEW), atol=1e-6)
    assert model.denoise(NEW, [(1, 0)]).shape == NEW.shape
    for method in ("fixed-point", "gradient", "ridge"):
        assert np.isfinite(model.denoise(NEW, method=method)).all()


def test_score_is_minus_the_mean_squared_error_of_denoise(model):
    expected = -((model.denoise(NEW) - NEW) ** 2).sum(1).mean()
    np.testing.assert_allclose(model.score(NEW), expected, rtol=1e-12)
    np.testing.assert_allclose(model.score(torch.tensor(NEW)), expected, rtol=1e-12)
    assert isinstance(model.score(NEW), float)
    few, many = ConstrDRKM(1).fit(X), ConstrDRKM(40).fit(X)
    assert few.score(X) < many.score(X) <= 0


@pytest.mark.parametrize("name", ["transform", "denoise", "reconstruct", "score", "score_samples"])
def test_points_are_read_once(model, name, monkeypatch):
    read, seen = inputs.read, []
    monkeypatch.setattr(inputs, "read", lambda *given, **options: seen.append(1) or read(*given, **options))
    getattr(model, name)(NEW)
    assert len(seen) == 1


def test_denoise_in_place_warns_of_noise_by_the_points_that_it_was_given():
    told = []
    for in_place in (False, True):
        points = make_half_circle(200, 0.1, random_state=1)[0]
        model = ConstrDRKM(30, sigma2=0.05).fit(points)
        with pytest.warns(NoiseWarning) as caught:
            model.denoise(points, out=points if in_place else None)
        told.append([str(warning.message) for warning in caught])
    assert told[0] == told[1]


@pytest.mark.parametrize("gram", ["dense", Nystroem(100)])
def test_traverse_does_not_begin_at_an_isolated_sample(gram):
    table = StandardScaler().fit_transform(load_breast_cancer().data)
    fitted = ConstrDRKM(10, gram=gram, random_state=0).fit(table)
    lengths = np.linalg.norm(fitted.codes_, axis=1)
    nearest = np.linalg.norm(fitted.codes_ - fitted.codes_.mean(axis=0), axis=1).argmin()
    assert lengths[nearest] < 0.05 * lengths.mean(), "the isolated sample is not nearest to the mean any more"
    row = typical_row(fitted.codes_, fitted.fitted_)
    assert lengths[row] > 0.5 * lengths.mean()
    np.testing.assert_array_equal(fitted.traverse(1, 0, [0.1]), fitted.traverse(1, 0, [0.1], row))
    assert Strips(Subject(fitted, table), fitted.codes_).bases == {"a typical sample": row}
    # Codes of about zero are not isolated where the mean is zero.
    linear = ConstrDRKM(1, kernel="linear").fit(table)
    assert typical_row(linear.codes_, linear.fitted_) == np.abs(linear.codes_[:, 0] - linear.codes_.mean()).argmin()


def test_traverse_moves_one_code_of_a_base_point(model):
    values = [-0.2, 0.0, 0.2]
    for base in (None, 3, NEW[0]):
        out = model.traverse(2, 1, values, base)
        assert out.shape == (3, 64)
        assert isinstance(out, np.ndarray)
        assert np.ptp(out, axis=0).max() > 1e-6
    codes = np.repeat(model.codes_[3:4], 3, axis=0)
    codes[:, 7] = values
    np.testing.assert_allclose(model.traverse(2, 1, values, 3), model.inverse_transform(codes), atol=1e-9)
    own = model.codes_[3, 7]
    expected = model.denoise(X[3:4], components="layer 1")
    np.testing.assert_allclose(model.traverse(2, 1, [own], 3), expected, atol=1e-4)


@pytest.mark.parametrize("gram", ["dense", Nystroem(m=40, deep=Dense())], ids=["dense", "nystroem"])
@pytest.mark.parametrize("center", [False, True])
def test_samples_and_traversals_are_in_the_codes_of_the_encoder(gram, center, tmp_path):
    paper = ConstrDRKM((6, 3), encoder="projection", center=center, gram=gram).fit(X)
    paper.save(tmp_path / "model")
    for fitted in (paper, load(tmp_path / "model")):
        for layer in (1, 2):
            expected = fitted.traverse(layer, 0, [-0.5, 0.5], X[3])
            np.testing.assert_allclose(fitted.traverse(layer, 0, [-0.5, 0.5], 3), expected, atol=1e-6)
        drawn = fitted.transform(fitted.sample(60, random_state=0))
        assert 0.7 < drawn.std(axis=0).max() / fitted.transform(X).std(axis=0).max() < 1.4


def test_codes_are_drawn_where_there_are_some_and_not_between():
    rng = np.random.RandomState(0)
    centres = np.array([[-1.0, 0.0], [1.0, 0.5]])[rng.randint(2, size=200)]
    drawn = CodeDensity(torch.tensor(centres + 0.05 * rng.randn(200, 2))).draw(100, rng).numpy()
    distances = np.linalg.norm(drawn[:, None] - np.unique(centres, axis=0), axis=2)
    assert distances.min(axis=1).max() < 0.3
    assert set(distances.argmin(axis=1)) == {0, 1}


def test_the_first_codes_that_are_drawn_are_like_the_others():
    rng = np.random.RandomState(0)
    groups = np.where(rng.rand(300, 1) < 0.5, -1.0, 1.0) * [1.0, 0.5] + 0.05 * rng.randn(300, 2)
    right = CodeDensity(torch.tensor(groups)).draw(400, rng).numpy()[:, 0] > 0
    # Five standard deviations of the difference of two shares.
    assert abs(right[:200].mean() - right[200:].mean()) < 0.25


def test_samples_are_reproducible_and_near_the_data(model):
    drawn = model.sample(8, random_state=0)
    assert drawn.shape == (8, 64)
    np.testing.assert_array_equal(drawn, model.sample(8, random_state=0))
    assert relative(model.sample(8, random_state=1), drawn) > 1e-3
    distance = np.sqrt(((drawn[:, None] - X[None]) ** 2).sum(2).min(1))
    spread = np.sqrt(((X[:, None] - X[None]) ** 2).sum(2)).max()
    assert (distance < spread).all()


def test_the_density_of_the_codes_is_fitted_once_and_to_a_bounded_number_of_samples(model, monkeypatch):
    fitted_to = []
    fit = GaussianMixture.fit
    monkeypatch.setattr(GaussianMixture, "fit", lambda self, data: fitted_to.append(len(data)) or fit(self, data))
    monkeypatch.setattr("drkm.inference.density.MAX_SAMPLES", 50)
    again = clone(model).fit(X)
    first = again.sample(2, random_state=0)
    assert set(fitted_to) == {50}
    count = len(fitted_to)
    np.testing.assert_array_equal(again.sample(2, random_state=0), first)
    assert len(fitted_to) == count


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_pre_images_begin_at_a_given_start(make):
    model = ConstrDRKM((6, 3), random_state=0).fit(X)
    start = X[5:10] + 0.01
    found = model.reconstruct(X[:5], start=make(start), max_iter=1)
    default = model.reconstruct(X[:5], max_iter=1)
    assert not np.array_equal(found.points, default.points)
    with pytest.raises(ValueError, match="start: expected \"point\" or an array of points, got 'pont'"):
        model.reconstruct(X[:5], start="pont")
