"""Strange data cause a warning, real data none."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from command_line import drkm as command
from drkm import AnomalyDetector, ConstrDRKM, datasets, load, select
from drkm.datasets import DatasetError
from drkm.files.rows import Rows
from drkm.gram import Fourier, Nystroem
from drkm.kernels import RBF, FeatureMap
from drkm.strange_data import StrangeDataWarning, complaints

WINE, CELLS = load_wine().data, load_breast_cancer().data
STANDARD = StandardScaler().fit_transform(WINE)
TRAINED, NEW = STANDARD[::2], STANDARD[1::2]
FAR = "are unlike all training samples"
CONSTANT = r"^X: column 13 \(of 14, counted from 0\) has one value in all samples and says nothing: leave it out"


def of_pixels(name):
    images, _ = getattr(datasets, f"load_{name}")().sample(400, 0)
    return images.reshape(len(images), -1) / 255.0


REAL = {
    "digits": lambda: load_digits().data[:600] / 16,
    "breast cancer": lambda: StandardScaler().fit_transform(CELLS),
    "wine": lambda: STANDARD,
    "diabetes": lambda: load_diabetes().data,
    "cars3d": functools.partial(of_pixels, "cars3d"),
    "smallnorb": functools.partial(of_pixels, "smallnorb"),
    "dsprites": functools.partial(of_pixels, "dsprites"),
}

MODELS = {
    "rbf": {},
    "one layer": {"n_components": 3},
    "centred": {"center": True},
    "laplacian": {"kernel": ["laplacian", "rbf"]},
    "matern": {"kernel": ["matern", "rbf"]},
    "nystroem": {"gram": Nystroem(m=40)},
    "fourier": {"gram": Fourier(300)},
    "linear": {"kernel": ["linear", "rbf"]},
    "centred linear": {"kernel": ["linear", "rbf"], "center": True},
    "polynomial": {"kernel": ["polynomial", "rbf"]},
    "feature map": {"kernel": [FeatureMap(lambda x: torch.cat([x, x**2], dim=1), normalize=False), "rbf"]},
    "projection": {"encoder": "projection"},
    "float32": {"dtype": "float32"},
}


@functools.cache
def fitted(name):
    return ConstrDRKM(**{"n_components": (4, 2), "max_iter": 3000, **MODELS[name]}).fit(TRAINED)


@pytest.mark.parametrize("name", MODELS)
class TestNewData:
    @pytest.mark.parametrize("factor", [1e3, 1e-3])
    def test_in_other_units_are_named(self, name, factor):
        model = fitted(name)
        with pytest.warns(StrangeDataWarning, match=rf"{len(NEW)} of {len(NEW)} rows {FAR}"):
            model.transform(NEW * factor)
        assert np.all(model.encode(NEW * factor).strange)

    def test_like_the_samples_are_not(self, name):
        encoding = fitted(name).encode(NEW)
        assert encoding.strange.shape == (len(NEW),)
        assert not np.any(encoding.strange)

    def test_are_told_apart_row_by_row(self, name):
        mixed = NEW.copy()
        mixed[::7] *= 1e4
        strange = np.asarray(fitted(name).encode(mixed, ambiguity=False).strange)
        np.testing.assert_array_equal(strange.nonzero()[0], np.arange(0, len(NEW), 7))

    def test_are_named_by_denoise_too(self, name):
        model = fitted(name)
        # No warning for a caller who asks for the marks.
        assert np.all(model.reconstruct(NEW[:2] * 1e4).strange)
        with pytest.warns(StrangeDataWarning, match=FAR) as caught:
            model.denoise(NEW[:2] * 1e4)
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "polynomial"}, {"kernel": "linear"}, {"gram": Fourier(200)}],
    ids=str,
)
def test_no_training_sample_is_unlike_all_training_samples(options):
    X = np.random.default_rng(0).standard_normal((1000, 5))
    X[37] *= 1000
    with pytest.warns(StrangeDataWarning, match="row 37"):
        model = ConstrDRKM(3, random_state=0, **options).fit(X)
    with warnings.catch_warnings(action="error", category=StrangeDataWarning):
        model.transform(X)


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_samples_without_common_features_are_like_themselves(kernel):
    X = np.eye(300)
    assert not ConstrDRKM(3, kernel=kernel).fit(X).encode(X).strange.any()


def test_a_short_sample_of_a_precomputed_kernel_is_like_itself():
    X = TRAINED.copy()
    X[3] *= 1e-7
    assert not ConstrDRKM(3, kernel="precomputed").fit(X @ X.T).encode(X @ X.T).strange.any()


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(StrangeDataWarning, match=FAR) as caught:
        fitted("rbf").transform(NEW * 1e3)
    assert caught[0].filename == __file__
    with pytest.warns(StrangeDataWarning, match=FAR) as caught:
        fitted("rbf").score(NEW * 1e3)
    assert caught[0].filename == __file__
    with pytest.warns(StrangeDataWarning, match=r"1 of 1 row is unlike") as caught:
        fitted("rbf").traverse(1, 0, [0.0], base=NEW[0] * 1e3)
    assert caught[0].filename == __file__


CALLS = {
    "fit_transform": lambda: ConstrDRKM(2).fit_transform(WINE),
    "fit_predict": lambda: AnomalyDetector().fit_predict(WINE),
    "select": lambda: select(WINE, {"n_components": [2]}, noise=1.0),
    "last step": lambda: make_pipeline(FunctionTransformer(), ConstrDRKM(2)).fit(WINE),
    "first step": lambda: make_pipeline(ConstrDRKM(2), FunctionTransformer()).fit(WINE),
    "transform": lambda: make_pipeline(FunctionTransformer(), fitted("one layer")).transform(NEW * 1e3),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_warning_points_at_the_callers_line_through_other_functions(name):
    with pytest.warns(StrangeDataWarning) as caught:
        CALLS[name]()
    assert {one.filename for one in caught} == {__file__}


def test_a_cosine_knows_no_units_and_names_what_is_orthogonal_to_all_samples():
    X = np.abs(STANDARD) * ([1] * 12 + [0])
    with pytest.warns(StrangeDataWarning, match=r"column 12 \(of 13, counted from 0\) has one value"):
        model = ConstrDRKM((4, 2), kernel=["cosine", "rbf"], max_iter=3000).fit(X[::2])
    assert not model.encode(X[1::2] * 1e3).strange.any()
    assert model.encode(np.eye(13)[12:]).strange.all()


def test_a_precomputed_kernel_is_judged_by_its_values():
    model = ConstrDRKM((4, 2), kernel=["precomputed", "rbf"], max_iter=3000).fit(TRAINED @ TRAINED.T)
    assert not model.encode(NEW @ TRAINED.T).strange.any()
    assert model.encode(1e3 * NEW @ TRAINED.T).strange.mean() > 0.9
    assert model.encode(1e-12 * NEW @ TRAINED.T).strange.all()


def test_one_strange_point_is_called_one():
    with pytest.warns(
        StrangeDataWarning, match=r"^1 of 1 row is unlike .* and its codes .* say little: is it in other"
    ):
        fitted("rbf").transform(NEW[:1] * 1e3)


def test_a_file_in_batches_gives_one_warning(tmp_path):
    np.save(tmp_path / "far.npy", np.tile(NEW * 1e3, (30, 1)))
    with pytest.warns(StrangeDataWarning) as caught:
        fitted("rbf").transform(tmp_path / "far.npy")
    assert [str(warning.message).split(" rows")[0] for warning in caught] == ["2670 of 2670"]


@pytest.mark.parametrize("name", ["rbf", "nystroem", "fourier", "linear"])
def test_a_model_from_a_file_warns_as_before(tmp_path, name):
    fitted(name).save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    mixed = NEW * np.where(np.arange(len(NEW)) % 2, 1, 1e4)[:, None]
    strange = fitted(name).encode(mixed).strange
    assert strange.sum() == len(NEW[::2])
    np.testing.assert_array_equal(again.encode(mixed).strange, strange)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("seed", [0, 1])
def test_halves_of_real_data_are_not_strange(name, seed):
    try:
        X = REAL[name]()
    except DatasetError as error:
        pytest.skip(str(error))
    order = np.random.default_rng(seed).permutation(len(X))
    known, held_out = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    for kernel in ("rbf", "laplacian", "linear", "cosine"):
        with warnings.catch_warnings(action="error", category=StrangeDataWarning):
            model = ConstrDRKM(5, kernel=kernel).fit(known)
            model.transform(held_out)
            model.transform(held_out[:1])


class TestColumns:
    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial", "cosine"])
    @pytest.mark.parametrize(("X", "columns"), [(WINE, "12"), (CELLS, "23, 3")], ids=["wine", "cells"])
    def test_in_their_own_units_are_named(self, X, columns, kernel):
        with pytest.warns(
            StrangeDataWarning,
            match=rf"X: columns? {columns}.* \(of \d+, counted from 0\) ha.* standardise the columns",
        ):
            ConstrDRKM(2, kernel=kernel).fit(X)

    def test_are_called_by_their_names(self):
        frame = load_wine(as_frame=True).data
        with pytest.warns(
            StrangeDataWarning, match=r"X: column 'proline' \(of 13\) has 99\.\d% of the squared distances"
        ):
            ConstrDRKM(2).fit(frame)

    @pytest.mark.parametrize("gram", [Nystroem(m=40), Fourier(300)])
    def test_are_named_through_an_approximation(self, gram):
        with pytest.warns(StrangeDataWarning, match=r"column 12 \(of 13, counted from 0\)"):
            ConstrDRKM(2, gram=gram).fit(WINE)

    @pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian"])
    def test_that_are_constant_do_no_harm_to_distances(self, kernel):
        X = np.column_stack([STANDARD, np.full(len(STANDARD), 1e3)])
        with pytest.warns(StrangeDataWarning, match=CONSTANT):
            model = ConstrDRKM((4, 2), kernel=[kernel, "rbf"], max_iter=3000).fit(X)
        plain = ConstrDRKM((4, 2), kernel=[kernel, "rbf"], max_iter=3000).fit(STANDARD)
        assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)

    @pytest.mark.parametrize("kernel", ["linear", "polynomial", "cosine"])
    def test_that_are_constant_and_large_are_named_once_where_lengths_count(self, kernel):
        X = np.column_stack([STANDARD, np.full(len(STANDARD), 1e3)])
        with pytest.warns(
            StrangeDataWarning,
            match=r"X: column 13 \(of 14, counted from 0\) .* of the squared lengths .* leave it out",
        ) as caught:
            ConstrDRKM(3, kernel=kernel).fit(X)
        assert len(caught) == 1
        with pytest.warns(StrangeDataWarning, match=CONSTANT):
            ConstrDRKM(3, kernel="linear", center=True).fit(X)


class TestOneConstantColumn:
    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear", "polynomial", "cosine"])
    @pytest.mark.parametrize("value", [0.0, 0.3, -1e-8])
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_is_named_whatever_its_value(self, kernel, value, dtype):
        X = np.column_stack([STANDARD, np.full(len(STANDARD), value)])
        with pytest.warns(StrangeDataWarning, match=CONSTANT):
            ConstrDRKM(2, kernel=kernel, dtype=dtype).fit(X)

    def test_is_called_by_its_name(self):
        frame = pd.DataFrame(STANDARD, columns=load_wine().feature_names).assign(hue=0.7)
        with pytest.warns(StrangeDataWarning, match=r"^X: column 'hue' \(of 13\) has one value in all samples"):
            ConstrDRKM(2).fit(frame)

    def test_is_named_beside_columns_in_other_units(self):
        with pytest.warns(StrangeDataWarning) as caught:
            ConstrDRKM(2).fit(np.column_stack([WINE, np.ones(len(WINE))]))
        assert [str(warning.message)[:19] for warning in caught] == ["X: column 12 (of 14", "X: column 13 (of 14"]

    def test_is_named_with_a_second_one(self):
        X = np.column_stack([np.ones(len(STANDARD)), STANDARD, np.zeros(len(STANDARD))])
        with pytest.warns(
            StrangeDataWarning,
            match=r"^X: columns 0, 14 \(of 15, counted from 0\) have one value .* say nothing: leave them",
        ):
            ConstrDRKM(2).fit(X)

    def test_is_none_if_one_sample_of_many_differs(self, tmp_path):
        X = np.column_stack([np.tile(STANDARD, (20, 1)), np.ones(20 * len(STANDARD))])
        with pytest.warns(StrangeDataWarning, match=CONSTANT):
            ConstrDRKM(2, gram=Nystroem(m=20)).fit(X)
        X[1234, 13] = 2
        ConstrDRKM(2, gram=Nystroem(m=20)).fit(X)
        np.save(tmp_path / "X.npy", X)
        ConstrDRKM(2, gram=Nystroem(m=20)).fit(tmp_path / "X.npy")

    @pytest.mark.parametrize("constant", [1, 2, 3])
    def test_is_no_alarm_where_others_hardly_vary(self, constant):
        """Some pixels at a border are constant by chance."""
        pixels = load_digits().data[:600] / 16
        varies = pixels.std(axis=0) > 0
        assert (~varies).sum() == 5
        ConstrDRKM(2).fit(np.column_stack([pixels[:, varies], pixels[:, ~varies][:, :constant]]))

    def test_is_no_alarm_in_few_samples_or_where_nothing_varies(self):
        ConstrDRKM(2).fit(np.column_stack([STANDARD[:9], np.ones(9)]))
        ConstrDRKM(2).fit(np.ones((30, 1)))


class TestOneFarSample:
    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear", "polynomial"])
    def test_is_named(self, kernel):
        X = STANDARD.copy()
        X[17] *= 1e3
        with pytest.warns(StrangeDataWarning) as caught:
            ConstrDRKM(4, kernel=kernel).fit(X)
        # A warning about the outlier only, not about the column in which it is farthest out.
        assert len(caught) == 1
        dots = kernel in ("linear", "polynomial")
        why = (
            "is longer than all other samples together"
            if dots
            else "has a kernel value of about 0 with every other sample"
        )
        assert f"X: row 17 (counted from 0) {why}: it gets a component of its own" in str(caught[0].message)

    def test_does_not_matter_to_a_cosine(self):
        X = STANDARD.copy()
        X[17] *= 1e3
        ConstrDRKM(4, kernel="cosine").fit(X)

    def test_is_found_in_a_file(self, tmp_path):
        X = np.tile(STANDARD, (20, 1))
        X[1234, 3] = 1e5
        np.save(tmp_path / "X.npy", X)
        with pytest.warns(StrangeDataWarning, match="row 1234 "):
            ConstrDRKM(3, gram="tiled").fit(tmp_path / "X.npy")

    def test_is_looked_for_in_two_passes_over_a_file(self, tmp_path, monkeypatch):
        np.save(tmp_path / "X.npy", TRAINED)
        rows, whole, passed = Rows(np.load(tmp_path / "X.npy", mmap_mode="r")), Rows._read, []
        monkeypatch.setattr(Rows, "_read", lambda self, index: passed.append(index) or whole(self, index))
        assert complaints(RBF(5.0), rows, center=False) == []
        assert [index for index in passed if isinstance(index, slice)].count(slice(0, len(rows))) == 2

    def test_is_told_from_a_kernel_that_is_too_narrow_for_all(self):

        with pytest.warns(
            StrangeDataWarning, match="at least 10 samples are far from all others, is sigma2 too narrow"
        ):
            ConstrDRKM(4, kernel=RBF(1e-3)).fit(STANDARD)


def test_frames_and_tensors_get_flags_of_their_kind():
    frame = pd.DataFrame(TRAINED)
    assert isinstance(ConstrDRKM(2).fit(frame).encode(frame).strange, np.ndarray)
    tensor = torch.from_numpy(TRAINED)
    assert ConstrDRKM(2).fit(tensor).encode(tensor).strange.dtype == torch.bool


def strange_table(n=40):
    """Return a table with one constant column and one row far from all others."""
    rows = np.random.default_rng(0).standard_normal((n, 6))
    frame = pd.DataFrame(rows, columns=[f"c{index}" for index in range(6)])
    frame.loc[n - 2] += 1e3
    frame["c5"] = 3.0
    return frame


def test_a_selection_warns_once_with_names_of_columns_and_places_of_rows():
    with pytest.warns(StrangeDataWarning) as caught:
        select(strange_table(), {"n_components": [2, 3], "sigma2": [1.0, 2.0]}, noise=0.1)
    told = sorted(str(one.message) for one in caught if one.category is StrangeDataWarning)
    assert len(told) == 2, told
    assert told[0].startswith("X: column 'c5' (of 6) has one value")
    assert told[1].startswith("X: row 38 (counted from 0) has a kernel value of about 0")


@pytest.mark.parametrize("words", [("select",), ("denoise", "--auto", "-o", "clean.csv")], ids=lambda words: words[0])
def test_commands_that_choose_a_model_name_strange_columns(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    strange_table().iloc[:38].to_csv("t.csv", index=False)
    done = command(words[0], "t.csv", *words[1:], "--noise", "0.5", "--max-seconds", "0.001")
    assert done.code == 0, done.err
    assert "warning: data: column 'c5' (of 6) has one value in all samples" in done.err
    assert done.err.count("warning") == 1


def test_a_strange_row_of_a_drawn_part_has_its_number_in_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = strange_table()
    frame.to_csv("t.csv", index=False)
    seed = next(seed for seed in range(9) if 38 in np.random.default_rng(seed).choice(40, 20, replace=False))
    done = command("fit", "t.csv", "-o", "m.safetensors", "--sample", "20", "--seed", seed, "--components", "3")
    assert done.code == 0, done.err
    assert "warning: data: row 38 (counted from 0) has a kernel value of about 0" in done.err
