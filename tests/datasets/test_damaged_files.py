"""Truncated, bit-flipped and foreign files: one clear sentence, or the very same images."""

import contextlib
import io
import zipfile

import numpy as np
import originals
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drkm import datasets
from drkm.datasets import DatasetError, cars3d, dsprites, smallnorb

CARS = ("elevation", "azimuth", "object_type")
NORB = ("category", "elevation", "azimuth", "lighting")


def _dsprites(folder, monkeypatch):
    path = originals.dsprites_npz(folder / "dsprites.npz", (3, 1, 2, 1, 2))
    return path, lambda p: dsprites.read_original(p, (3, 1, 2, 1, 2))


def _compact(folder, monkeypatch):
    path = originals.compact_npz(folder / "cars.npz", CARS, (2, 2, 1), (64, 64, 3))
    return path, datasets.load_cars3d


def _cars(folder, monkeypatch):
    originals.small_cars(monkeypatch, objects=1)
    member = {"data/cars/a.mat": originals.mat_bytes({"im": originals.car(0, 2, 1)})}
    path = originals.cars_tar(folder / "cars.tar.gz", member)
    return path, cars3d.read_original


def _norb(folder, monkeypatch):
    originals.small_norb(monkeypatch, folder)
    path = folder / smallnorb.SMALLNORB_TESTING[0].name
    return path, datasets.load_smallnorb


def _norb_info(folder, monkeypatch):
    originals.small_norb(monkeypatch, folder)
    path = folder / smallnorb.SMALLNORB_TESTING[2].name
    return path, datasets.load_smallnorb


KINDS = pytest.mark.parametrize("kind", [_dsprites, _compact, _cars, _norb, _norb_info])


def images_of(data):
    return data.images_at(data.factors_at(np.arange(len(data))))


def expect_sentence_or_same(path, load, original):
    try:
        images = images_of(load(path))
    except DatasetError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert path.name in sentence or path.parent.name in sentence
        assert len(sentence) < 600
    else:
        np.testing.assert_array_equal(images, original)


@KINDS
def test_truncated_files(kind, tmp_path, monkeypatch):
    path, load = kind(tmp_path, monkeypatch)
    content = path.read_bytes()
    for length in np.unique(np.linspace(0, len(content) - 1, 40).astype(int)):
        path.write_bytes(content[:length])
        with pytest.raises(DatasetError, match=path.name):
            load(path)


@KINDS
def test_flipped_bytes(kind, tmp_path, monkeypatch):
    path, load = kind(tmp_path, monkeypatch)
    original = images_of(load(path))
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    ends = np.concatenate([np.arange(64), len(content) - 1 - np.arange(64)])
    for position in np.concatenate([ends, rng.integers(0, len(content), 300)]):
        kept = content[position]
        content[position] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        expect_sentence_or_same(path, load, original)
        content[position] = kept


@KINDS
def test_foreign_files(kind, tmp_path, monkeypatch):
    path, load = kind(tmp_path, monkeypatch)
    plain, archive = io.BytesIO(), io.BytesIO()
    np.save(plain, np.zeros((3, 3)))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("hello.txt", "hello")
    for content in (b"", b"\0" * 500, b"<html>404</html>", plain.getvalue(), archive.getvalue()):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=path.name):
            load(path)


@pytest.mark.parametrize("compress", [False, True])
def test_damage_inside_an_intact_archive(compress, tmp_path, monkeypatch):
    originals.small_cars(monkeypatch, objects=1)
    mat = bytearray(originals.mat_bytes({"im": originals.car(0, 2, 1)}, compress))
    path = tmp_path / "cars.tar.gz"
    rng = np.random.default_rng(1)
    for position in np.concatenate([np.arange(192), rng.integers(0, len(mat), 200)]):
        kept = mat[position]
        mat[position] ^= 1 << rng.integers(8)
        originals.cars_tar(path, {"data/cars/a.mat": bytes(mat)})
        # Flipped pixels cannot be detected here, only by the checksum of the archive.
        with contextlib.suppress(DatasetError):
            assert len(cars3d.read_original(path)) == 2
        mat[position] = kept


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400), suffix=st.sampled_from([".npz", ".tar.gz"]))
def test_random_bytes(content, suffix, tmp_path):
    path = tmp_path / f"random{suffix}"
    path.write_bytes(content)
    loaders = [datasets.load_cars3d] if suffix == ".tar.gz" else [datasets.load_dsprites, datasets.load_smallnorb]
    for load in loaders:
        with pytest.raises(DatasetError, match="random"):
            load(path)


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"images": None}, "has no array 'images', it holds factor_names, factors"),
        ({"factor_names": np.array(["a", "b", "c"])}, "is not cars3d: its factors are"),
        ({"factors": np.zeros((4, 3))}, "'factors' that should hold integers"),
        ({"factors": np.zeros((3, 3), np.int16)}, "'factors' that should hold integers of shape"),
        ({"factors": np.zeros((4, 3), np.int16)}, "each combination of classes once"),
        ({"factors": np.full((4, 3), 200, np.int16)}, "expected 0 to 3 for elevation, got 200 to 200"),
        ({"images": np.zeros((4, 32, 32, 3), np.uint8)}, "'images' that should be uint8 of shape"),
        ({"images": np.zeros((4, 64, 64, 3))}, "'images' that should be uint8"),
        ({"images": np.array([{}, {}, {}, {}])}, "holds Python objects, which are never read"),
    ],
)
def test_compact_files_with_other_arrays(replaced, sentence, tmp_path):
    path = originals.compact_npz(tmp_path / "cars.npz", CARS, (2, 2, 1), (64, 64, 3), **replaced)
    with pytest.raises(DatasetError, match=sentence):
        datasets.load_cars3d(path)


def test_compact_files_in_fortran_order_are_read_the_same(tmp_path):
    path = originals.compact_npz(tmp_path / "cars.npz", CARS, (2, 2, 2), (64, 64, 3))
    with np.load(path) as file:
        columns = {name: np.asfortranarray(file[name]) for name in file.files}
    np.savez(tmp_path / "columns.npz", **columns)
    expected, found = (images_of(datasets.load_cars3d(p)) for p in (path, tmp_path / "columns.npz"))
    np.testing.assert_array_equal(found, expected)


def test_future_array_formats_are_refused(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros(3), version=(3, 0))
    path = tmp_path / "new.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("images", "factors", "factor_names"):
            file.writestr(f"{name}.npy", stream.getvalue())
    with pytest.raises(DatasetError, match=r"npy format \(3, 0\)"):
        datasets.load_cars3d(path)


def test_compact_norb_without_factors_is_refused(tmp_path):
    path = originals.compact_npz(tmp_path / "norb.npz", NORB, (5, 1, 1, 1), (64, 64), factors=None)
    with pytest.raises(DatasetError, match="has no array 'factors'"):
        datasets.load_smallnorb(path)


def test_a_car_that_unpacks_to_more_than_expected_is_refused_before_it_is_read(tmp_path, monkeypatch):
    member = originals.mat_bytes({"im": np.zeros((128, 128, 3, 24, 5), np.uint8)})
    path = originals.cars_tar(tmp_path / "cars.tar.gz", {"data/cars/a.mat": member})
    monkeypatch.setattr("scipy.io.loadmat", None)
    with pytest.raises(DatasetError, match=r"'im' should be uint8 of \(128, 128, 3, 24, 4\), is uint8 of .* 5\)"):
        cars3d.read_original(path)


def test_more_cars_than_there_are_are_refused(tmp_path, monkeypatch):
    originals.small_cars(monkeypatch, objects=1)
    member = originals.mat_bytes({"im": originals.car(0, 2, 1)})
    path = originals.cars_tar(tmp_path / "cars.tar.gz", {"data/cars/a.mat": member, "data/cars/b.mat": b"never read"})
    with pytest.raises(DatasetError, match=r"cars.tar.gz: holds more than 1 files data/cars/\*.mat"):
        cars3d.read_original(path)


def test_a_machine_without_room_for_a_dataset_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr("drkm.files._guarded.available_on_host", lambda: 40_000_000)
    path = originals.cars_tar(tmp_path / "cars.tar.gz", {})
    with pytest.raises(DatasetError, match=r"cars.tar.gz: holds 17568 images: that takes 432 MB of memory, 40 MB are"):
        cars3d.read_original(path)
    path = originals.norb_matrix(tmp_path / "x.mat.gz", np.zeros((1000, 2, 96, 96), np.uint8))
    monkeypatch.setattr("drkm.files._guarded.available_on_host", lambda: 1_000_000)
    monkeypatch.setattr("drkm.files._guarded.TRIFLE", 1_000_000)
    with pytest.raises(DatasetError, match=r"x.mat.gz: declares uint8 of shape \(1000, .*\): that takes 18.4 MB"):
        next(smallnorb.read_matrix(path, (1000, 2, 96, 96), "uint8"))
