"""Saved models: one safetensors file, the same bits after loading, and one sentence for any other file."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits

import drkm
from drkm import ConstrDRKM, load
from drkm.files import container
from drkm.gram import Dense, Fourier, Fused, Nystroem, Tiled
from drkm.kernels import RBF, FeatureMap, FourierFeatures, Laplacian, Matern, NystroemFeatures, Polynomial
from drkm.persistence.model_file import VERSION
from drkm.solvers import LBFGS, Eigensolver, TrustRegion
from drkm.solvers.state import Dimensions
from drkm.training.checkpoint import Checkpoint

DIGITS = load_digits().data / 16
X, NEW = DIGITS[:60], DIGITS[60:80]
SOURCE = Path(drkm.__file__).parent


@pytest.fixture(scope="module")
def model():
    return ConstrDRKM((4, 2), axes="varimax").fit(X)


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "model.safetensors"
    model.save(path)
    return path.read_bytes()


def refused(path, error=(ValueError, OSError), **options) -> str:
    with pytest.raises(error, match=r"\S") as caught:
        load(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search(r"[.!?] +[A-Z]", message), message
    return message


CASES = {
    "default": {"n_components": (4, 2)},
    "one layer": {"n_components": 3},
    "three layers, centred": {"n_components": (4, 2, 1), "center": True},
    "other kernels": {"n_components": (4, 2), "kernel": [Laplacian(), Matern(1.5, 0.3)], "eta": (1.0, 2.0)},
    "polynomial": {"n_components": (4, 2), "kernel": [Polynomial(2), "rbf"], "axes": "ica"},
    "float32": {"n_components": (4, 2), "dtype": "float32"},
    "projection": {"n_components": (4, 2), "encoder": "projection", "lam": (2.0, 3.0), "axes": None},
    "learned": {"n_components": (4, 2), "learn_bandwidth": True},
    "several starts": {"n_components": (4, 2), "n_init": 2, "random_state": 5},
    "array start": {"n_components": (4, 2), "init": np.linalg.qr(NEW.T[:60, :6])[0]},
}


@pytest.mark.filterwarnings("ignore:.*the tolerance is reached:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_gives_equal_bits(name, tmp_path):
    fitted = ConstrDRKM(**CASES[name]).fit(X)
    fitted.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    np.testing.assert_array_equal(copy.codes_, fitted.codes_)
    assert copy.codes_.dtype == fitted.codes_.dtype
    np.testing.assert_array_equal(copy.transform(NEW), fitted.transform(NEW))
    np.testing.assert_array_equal(copy.denoise(NEW[:3]), fitted.denoise(NEW[:3]))
    np.testing.assert_array_equal(
        copy.inverse_transform(fitted.codes_[:3]), fitted.inverse_transform(fitted.codes_[:3])
    )
    np.testing.assert_array_equal(copy.multipliers_, fitted.multipliers_)
    for mine, theirs in zip(copy.eigenvalues_, fitted.eigenvalues_, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for attribute in ("objective_", "feasibility_", "stationarity_", "converged_", "n_iter_", "kernels_"):
        assert getattr(copy, attribute) == getattr(fitted, attribute)
    assert copy.history_[-1] == fitted.history_[-1]
    assert copy.layer_slices_ == fitted.layer_slices_
    assert copy.n_features_in_ == 64
    assert copy.summary() == fitted.summary()


def test_parameters_come_back(model, tmp_path):
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    for name in ("n_components", "center", "eta", "axes", "encoder", "tol", "max_iter", "n_init", "solver", "init"):
        assert getattr(copy, name) == getattr(model, name)
    assert copy.fit(X).objective_ == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "gram"),
    [
        ("rbf", "auto"),
        ("matern", "nystroem"),
        (["rbf", Matern(1.5, "scale")], "auto"),
        ([RBF("median"), RBF(0.3)], "auto"),
        (RBF("auto"), "auto"),
        (["linear", Polynomial(2)], "auto"),
    ],
)
def test_a_loaded_model_fits_other_data_by_the_rules_that_were_asked_for(kernel, gram, tmp_path):
    model = ConstrDRKM((4, 2), kernel=kernel, gram=gram).fit(X)
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert copy.kernel == kernel
    assert copy.fit(3 * X).kernels_[0].describe() == model.fit(3 * X).kernels_[0].describe()


LANDMARKS = NystroemFeatures(RBF(2.0), torch.from_numpy(X[:20]))
FREQUENCIES = FourierFeatures(RBF(2.0), torch.linspace(-2, 2, 64 * 30, dtype=torch.float64).sin().view(64, 30))
DRAWN = FourierFeatures.drawn(RBF(2.0), 64, 50, orthogonal=True, random_state=0, like=torch.empty(0).double())


@pytest.mark.parametrize("kernel", [LANDMARKS, FREQUENCIES, DRAWN, [LANDMARKS, "rbf"]], ids=str)
def test_a_model_whose_kernel_is_an_approximation_can_be_loaded_and_fitted_again(kernel, tmp_path):
    model = ConstrDRKM((3, 2) if isinstance(kernel, list) else 3, kernel=kernel).fit(X)
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    for name in ("transform", "denoise"):
        np.testing.assert_array_equal(getattr(copy, name)(NEW), getattr(model, name)(NEW))
    np.testing.assert_array_equal(copy.fit(X).codes_, model.codes_)


def test_a_loaded_approximation_has_the_bandwidth_before_it_was_learned(tmp_path):
    model = ConstrDRKM(3, kernel=LANDMARKS, learn_bandwidth=True).fit(X)
    model.save(tmp_path / "model")
    copy = load(tmp_path / "model")
    assert (copy.kernel.bandwidth, copy.kernels_[0].bandwidth) == (2.0, model.kernels_[0].bandwidth)


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path):
    eta, degree, gamma = (np.float32(1), np.float64(2)), np.int64(2), np.float32(0.5)
    kernel = (Polynomial(degree, gamma), RBF(np.float32(0.5)))
    sizes = (np.int64(3), np.int64(2))
    model = ConstrDRKM(sizes, kernel=kernel, eta=eta, center=np.bool_(True), random_state=np.int64(3)).fit(X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[:5]), model.transform(X[:5]))
    assert (loaded.n_components, loaded.eta, loaded.center, loaded.random_state) == ((3, 2), (1.0, 2.0), True, 3)


@pytest.mark.parametrize(
    "gram", [Dense(), Tiled(), Tiled(1e9), Fused(), Fused(Tiled()), Nystroem(20, deep=Fused()), Fourier(30)], ids=repr
)
def test_the_object_behind_gram_comes_back(gram, tmp_path):
    ConstrDRKM((3, 2), gram=gram).fit(X).save(tmp_path / "model")
    assert repr(load(tmp_path / "model").gram) == repr(gram)


def test_a_file_holds_what_was_fitted_and_not_what_is_set_for_the_next_fit(tmp_path):
    fitted = ConstrDRKM((3, 2)).fit(X)
    fitted.set_params(encoder="projection", center=True, axes="ica", kernel="linear", n_components=(2, 2), eta=3.0)
    fitted.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.summary() == fitted.summary()
    assert loaded.get_params() == ConstrDRKM((3, 2)).get_params()


def test_a_loaded_model_saves_to_the_same_model(model, tmp_path):
    model.save(tmp_path / "one")
    load(tmp_path / "one").save(tmp_path / "two")
    np.testing.assert_array_equal(load(tmp_path / "two").transform(NEW), model.transform(NEW))


def test_names_of_features_and_kinds_of_arrays_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    ConstrDRKM((4, 2)).fit(frame).save(tmp_path / "frame")
    copy = load(tmp_path / "frame")
    assert copy.feature_names_in_.tolist() == frame.columns.tolist()
    assert isinstance(copy.transform(frame), pd.DataFrame)
    ConstrDRKM((4, 2)).fit(torch.tensor(X)).save(tmp_path / "tensor")
    assert isinstance(load(tmp_path / "tensor").codes_, torch.Tensor)


@pytest.mark.parametrize("solver", [LBFGS(memory=4), TrustRegion(max_inner=7), "trust-region"], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, np.float32, np.dtype("float32"), "float32"], ids=repr)
def test_the_solver_and_the_precision_come_back(solver, dtype, tmp_path):
    path = tmp_path / "model"
    ConstrDRKM((3, 2), solver=solver, dtype=dtype).fit(X[:30]).save(path)
    assert load(path).solver == solver
    assert load(path).dtype == "float32"


def test_an_eigensolver_comes_back_and_a_solver_of_ones_own_does_not(tmp_path):
    class Own(LBFGS):
        pass

    for sizes, solver, expected in ((3, Eigensolver(), Eigensolver()), ((3, 2), Own(), "auto")):
        ConstrDRKM(sizes, solver=solver).fit(X[:30]).save(tmp_path / "model")
        assert load(tmp_path / "model").solver == expected


def test_a_precomputed_kernel_comes_back(tmp_path):
    K = RBF(3.0)(torch.tensor(X), torch.tensor(X)).numpy()
    fitted = ConstrDRKM((4, 2), kernel=["precomputed", "rbf"]).fit(K)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(K[:5]), fitted.transform(K[:5]))


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "auto"], ids=str)
def test_a_model_loads_on_a_given_device(model, tmp_path, device):
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model", device=device).transform(NEW), model.transform(NEW))


def test_paths_may_be_text_or_path_objects(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("with space and ü.safetensors")
    assert load(Path("with space and ü.safetensors")).converged_
    model.save(os.fspath(tmp_path / "absolute"))
    assert load(str(tmp_path / "absolute")).converged_


# Feature maps: their code is the caller's


def test_a_feature_map_model_needs_its_maps(tmp_path):
    torch.manual_seed(0)
    make = lambda: torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh())  # noqa: E731
    fitted = ConstrDRKM((4, 2), kernel=[FeatureMap(make(), trainable=True), "rbf"]).fit(X)
    fitted.save(tmp_path / "model")
    assert "feature_maps={1: map}" in refused(tmp_path / "model", ValueError)
    assert "feature_maps" in refused(tmp_path / "model", ValueError, feature_maps={2: make()})
    mine = make()
    before = [parameter.clone() for parameter in mine.parameters()]
    copy = load(tmp_path / "model", feature_maps={1: mine})
    np.testing.assert_array_equal(copy.transform(NEW), fitted.transform(NEW))
    for parameter, old in zip(mine.parameters(), before, strict=True):
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, old)


def test_a_module_of_another_shape_is_refused(tmp_path):
    torch.manual_seed(0)
    ConstrDRKM(2, kernel=FeatureMap(torch.nn.Linear(64, 8))).fit(X).save(tmp_path / "model")
    assert "feature_maps" in refused(tmp_path / "model", ValueError, feature_maps={1: torch.nn.Linear(64, 9)})


def square(x: torch.Tensor) -> torch.Tensor:
    return x.square()


def test_a_function_as_feature_map_is_given_back(tmp_path):
    fitted = ConstrDRKM(2, kernel=FeatureMap(square)).fit(X)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model", feature_maps={1: square}).transform(NEW), fitted.transform(NEW)
    )


# What is not a model


def test_a_missing_path_and_a_folder_are_refused(tmp_path):
    assert "there is no file" in refused(tmp_path / "nothing", FileNotFoundError)
    refused(tmp_path)
    refused("")


def test_truncated_files_are_refused_wherever_they_end(content, tmp_path):
    path = tmp_path / "cut"
    for length in np.linspace(0, len(content) - 1, 50).astype(int):
        path.write_bytes(content[:length])
        assert str(path) in refused(path, ValueError)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, 5000])
def test_random_bytes_are_refused(size, tmp_path):
    path = tmp_path / "noise"
    for seed in range(5):
        path.write_bytes(np.random.RandomState(seed).bytes(size))
        refused(path, ValueError)


def test_a_flipped_bit_is_noticed_wherever_it_is(content, tmp_path):
    path = tmp_path / "flipped"
    header = 8 + struct.unpack("<Q", content[:8])[0]
    random = np.random.RandomState(0)
    for position in [*random.randint(0, header, 300), *random.randint(header, len(content), 100)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << random.randint(8)
        path.write_bytes(damaged)
        refused(path, ValueError)


def test_a_file_without_checksums_is_read(content, tmp_path, model):
    path = tmp_path / "older"
    path.write_bytes(rewritten(content, lambda header: header))
    np.testing.assert_array_equal(load(path).transform(NEW), model.transform(NEW))


def rewritten(content: bytes, change) -> bytes:
    """Return the file with changed metadata, and without the checksums that would detect the change."""
    length = struct.unpack("<Q", content[:8])[0]
    outer = json.loads(content[8 : 8 + length])
    inner = json.loads(outer["__metadata__"]["drkm"])
    del inner["has_checksums"]
    outer["__metadata__"] = {"drkm": json.dumps(change(inner))}
    text = json.dumps(outer).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def test_a_newer_version_is_refused_with_advice(content, tmp_path):
    path = tmp_path / "newer"
    path.write_bytes(rewritten(content, lambda header: {**header, "version": 99}))
    message = refused(path, ValueError)
    assert "newer" in message
    assert "99" in message
    assert "upgrade" in message


@pytest.mark.parametrize("version", ["two", None, [1], 1.5, True, 0, -1])
def test_a_version_that_is_no_number_is_refused(content, tmp_path, version):
    path = tmp_path / "odd"
    path.write_bytes(rewritten(content, lambda header: {**header, "version": version}))
    refused(path, ValueError)


@pytest.mark.parametrize("key", ["parameters", "kernels", "sizes", "eta", "lam", "axes", "n_features", "result"])
@pytest.mark.parametrize("value", ["missing", None, "text", -7, {"a": 1}, [1, 2, 3]], ids=str)
def test_metadata_without_a_part_or_of_another_kind_is_refused(content, tmp_path, key, value):
    if key == "axes" and value is None:
        pytest.skip("None is a choice of axes")

    def change(header):
        if value == "missing":
            return {name: entry for name, entry in header.items() if name != key}
        return {**header, key: value}

    path = tmp_path / "damaged"
    path.write_bytes(rewritten(content, change))
    assert "path" in refused(path, ValueError)


@pytest.mark.parametrize("header", ["[]", "null", "3", '"text"', "{", "{}"])
def test_metadata_that_is_not_ours_is_refused(content, tmp_path, header):
    path = tmp_path / "foreign"
    save_file({"a": torch.ones(3)}, path, {"drkm": header})
    assert "drkm model" in refused(path, ValueError)


def test_a_foreign_safetensors_file_and_a_checkpoint_are_refused(tmp_path):
    save_file({"weight": torch.ones(3)}, tmp_path / "foreign")
    assert "not a drkm model" in refused(tmp_path / "foreign", ValueError)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    dimensions = Dimensions(60, (4, 2), torch.float64, torch.device("cpu"), (True, True))
    checkpoint.bind("fingerprint", LBFGS(), dimensions)
    checkpoint._write()
    assert "not a drkm model" in refused(tmp_path / "checkpoint", ValueError)


def test_tensors_of_the_wrong_shape_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    for name, wrong in (
        ("H", tensors["H"][:-1]),
        ("X", tensors["X"][:-1]),
        ("multipliers", tensors["multipliers"][1:]),
        ("history", tensors["history"][:, 1:]),
        ("history", tensors["history"] + 0.5),
        ("history", tensors["history"][0]),
    ):
        container.write(tmp_path / "wrong", {**tensors, name: wrong}, header)
        assert "path" in refused(tmp_path / "wrong", ValueError)


@pytest.mark.parametrize("name", ["H", "X", "multipliers", "rotation0", "eigenvalues1", "history"])
@pytest.mark.parametrize("spoil", ["dtype", "nan", "inf"])
def test_tensors_of_another_precision_or_not_finite_are_refused(model, tmp_path, name, spoil):
    model.save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    wrong = tensors[name].float() if spoil == "dtype" else tensors[name].clone()
    if spoil != "dtype":
        wrong.view(-1)[-1] = float(spoil)
    container.write(tmp_path / "wrong", {**tensors, name: wrong}, header)
    assert str(tmp_path / "wrong") in refused(tmp_path / "wrong", ValueError)


@pytest.mark.parametrize("degree", [10**9, 101, 10**400, 0, 2.5])
def test_an_absurd_degree_is_refused_at_once(tmp_path, degree):
    ConstrDRKM((3, 2), kernel=[Polynomial(2), "rbf"]).fit(X).save(tmp_path / "model")
    tensors, header = container.read(tmp_path / "model", "model", VERSION)
    header["kernels"][0]["parameters"]["degree"] = degree
    container.write(tmp_path / "wrong", tensors, header)
    assert "degree" in refused(tmp_path / "wrong", ValueError)


class Halved(RBF):
    """A custom kernel, which no file can hold."""

    def __call__(self, x, y):
        return 0.5 * super().__call__(x, y)


@pytest.mark.parametrize("kernel", [Halved(2.0), [Halved(2.0), "rbf"]], ids=["all", "first"])
def test_a_kernel_of_ones_own_is_refused_by_save(kernel, tmp_path):
    fitted = ConstrDRKM((3, 2), kernel=kernel, max_iter=300).fit(X)
    with pytest.raises(ValueError, match="kernel: a file holds no code, and Halved is not registered"):
        fitted.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# Writing


def test_a_failing_write_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch):
    path = tmp_path / "model"
    model.save(path)
    old = path.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_, **__):
                raise OSError(28, "No space left on device")

            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="No space left"):
                model.save(path)
        assert path.read_bytes() == old
        assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_refused(model, tmp_path):
    with pytest.raises(OSError, match=r"path: cannot write .*nowhere"):
        model.save(tmp_path / "nowhere" / "model")


def test_saving_onto_a_folder_is_refused(model, tmp_path):
    with pytest.raises(OSError, match=r"\S"):
        model.save(tmp_path)
    assert not [entry for entry in tmp_path.parent.iterdir() if entry.suffix == ".tmp"]


def test_a_saved_file_has_the_permissions_of_any_new_file(model, tmp_path):
    (tmp_path / "plain").write_text("")
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_no_source_file_unpickles_or_runs_text():
    forbidden = re.compile(r"\bimport pickle\b|\bfrom pickle\b|torch\.load\(|(?<![.\w])eval\(|(?<![.\w])exec\(")
    for path in sorted(SOURCE.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not forbidden.search(line), f"{path.relative_to(SOURCE)}:{number}: {line}"
