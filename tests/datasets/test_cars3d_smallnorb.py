import os

import numpy as np
import originals
import pytest

from drkm import datasets
from drkm.datasets import DatasetError, cars3d, smallnorb
from drkm.datasets._resize import lanczos_matrix, shrink


def real(name):
    folder = os.environ.get("DRKM_DATA")
    path = folder and os.path.join(folder, name)
    return pytest.mark.skipif(not (path and os.path.isfile(path)), reason=f"needs {name} in DRKM_DATA")


@pytest.fixture
def cars(tmp_path, monkeypatch):
    originals.small_cars(monkeypatch)
    views = {f"car_{i:03d}_mesh": originals.car(i, 2, 1) for i in (2, 1)}
    members = {f"data/cars/{name}.mat": originals.mat_bytes({"im": im}) for name, im in views.items()}
    members |= {
        "data/cars/list.txt": b"car",
        "data/cars/._car_001_mesh.mat": b"a note",
        "data/sprites/a.mat": b"another set",
        "../data/cars/readme": b"",
    }
    return originals.cars_tar(tmp_path / "nips2015-analogy-data.tar.gz", members), views


def test_original_cars_are_read_in_grid_order_and_nothing_is_unpacked(cars, tmp_path):
    path, views = cars
    data = datasets.load_cars3d(path)
    assert data.factor_names == ("elevation", "azimuth", "object_type")
    assert data.factor_sizes == (1, 2, 2)
    for k, name in enumerate(sorted(views)):
        for azimuth in range(2):
            expected = shrink(views[name][None, ..., azimuth, 0])
            np.testing.assert_array_equal(data.images_at([[0, azimuth, k]]), expected)
    assert os.listdir(tmp_path) == [path.name]


def test_saved_compact_file_holds_the_same_images(cars, tmp_path):
    data = datasets.load_cars3d(cars[0])
    data.save_compact(tmp_path / "cars3d_64.npz")
    again = datasets.load_cars3d(tmp_path / "cars3d_64.npz")
    images, factors = data.sample(len(data), random_state=0)
    np.testing.assert_array_equal(images, again.images_at(factors))


def test_a_compact_file_that_cannot_be_written_leaves_the_old_one(cars, tmp_path, monkeypatch):
    data = datasets.load_cars3d(cars[0])
    (tmp_path / "cars3d_64.npz").write_bytes(b"old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        data.save_compact(tmp_path / "cars3d_64.npz")
    assert (tmp_path / "cars3d_64.npz").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({}, "should hold 2 files data/cars/.*, holds 0"),
        ({"data/cars/a.mat": {"im": np.zeros((128, 128, 3, 2, 1), np.uint8)}}, "holds 1"),
        ({"data/cars/a.mat": {"im": np.zeros((128, 128, 3), np.uint8)}}, "holds data/cars/a.mat, whose 'im' should be"),
        ({"data/cars/a.mat": {"im": np.zeros((128, 128, 3, 2, 1))}}, "is double of"),
        ({"data/cars/a.mat": {"views": np.zeros(3)}}, "is missing"),
        ({"data/cars/a.mat": b"not a mat file"}, "is damaged or not the original Cars3D archive"),
    ],
)
def test_foreign_archives_are_refused(tmp_path, monkeypatch, members, sentence):
    originals.small_cars(monkeypatch)
    content = {n: m if isinstance(m, bytes) else originals.mat_bytes(m) for n, m in members.items()}
    with pytest.raises(DatasetError, match=sentence):
        datasets.load_cars3d(originals.cars_tar(tmp_path / "foreign.tar.gz", content))


def test_huge_members_are_refused_before_reading(cars, monkeypatch):
    monkeypatch.setattr(cars3d, "_MAX_MEMBER", 100)
    with pytest.raises(DatasetError, match="larger than expected"):
        datasets.load_cars3d(cars[0])


@pytest.mark.parametrize("instance", [0, 4, 5])
def test_original_norb_gives_one_instance_from_its_split(tmp_path, monkeypatch, instance):
    views = originals.small_norb(monkeypatch, tmp_path)
    data = datasets.load_smallnorb(tmp_path, instance=instance)
    assert data.factor_names == ("category", "elevation", "azimuth", "lighting")
    assert data.factor_sizes == (5, 1, 2, 1)
    np.testing.assert_array_equal(data.images_at([[3, 0, 1, 0]])[0], shrink(views[instance, 3, 1][None])[0])
    np.testing.assert_array_equal(data.factors_at(np.arange(3)), [[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]])


def test_original_norb_gives_all_instances_as_a_factor(tmp_path, monkeypatch):
    views = originals.small_norb(monkeypatch, tmp_path)
    data = datasets.load_smallnorb(tmp_path, instance="all")
    assert data.factor_names == ("category", "instance", "elevation", "azimuth", "lighting")
    assert len(data) == 100
    for (i, c, a), view in views.items():
        np.testing.assert_array_equal(data.images_at([[c, i, 0, a, 0]])[0], shrink(view[None])[0])


def test_one_norb_file_as_path_finds_the_others(tmp_path, monkeypatch):
    originals.small_norb(monkeypatch, tmp_path)
    assert len(datasets.load_smallnorb(tmp_path / smallnorb.SMALLNORB_TESTING[0].name)) == 10


def test_norb_names_the_file_that_is_missing(tmp_path, monkeypatch):
    originals.small_norb(monkeypatch, tmp_path)
    (tmp_path / smallnorb.SMALLNORB_TRAINING[2].name).unlink()
    assert len(datasets.load_smallnorb(tmp_path)) == 10
    with pytest.raises(DatasetError, match=r"smallnorb: found no .*training-info"):
        datasets.load_smallnorb(tmp_path, instance="all")


def test_norb_matrices_of_another_shape_are_refused(tmp_path, monkeypatch):
    originals.small_norb(monkeypatch, tmp_path)
    cat = tmp_path / smallnorb.SMALLNORB_TESTING[1].name
    originals.norb_matrix(cat, np.zeros(49, np.int32))
    with pytest.raises(DatasetError, match=r"testing-cat.mat.gz: should hold int32 of shape \(50,\), holds"):
        datasets.load_smallnorb(tmp_path)
    originals.norb_matrix(cat, np.full(50, 9, np.int32))
    with pytest.raises(DatasetError, match="expected 0 to 4 for category"):
        datasets.load_smallnorb(tmp_path)
    originals.norb_matrix(cat, np.zeros(50, np.int32))
    with pytest.raises(DatasetError, match="some twice"):
        datasets.load_smallnorb(tmp_path)


@pytest.mark.parametrize("instance", [10, -1, "some", True, 1.5])
def test_bad_instance_is_refused(instance):
    with pytest.raises(ValueError, match="instance: expected 0 to 9 or 'all', got"):
        datasets.load_smallnorb(instance=instance)


def test_compact_norb_holds_instance_0_alone(tmp_path):
    names = ("category", "elevation", "azimuth", "lighting")
    path = originals.compact_npz(tmp_path / "norb.npz", names, (5, 1, 2, 1), (64, 64))
    assert len(datasets.load_smallnorb(path)) == 10
    with pytest.raises(DatasetError, match="holds instance 0 alone, got instance='all'"):
        datasets.load_smallnorb(path, instance="all")


@pytest.mark.parametrize("load", [datasets.load_cars3d, datasets.load_smallnorb])
def test_what_is_no_path_is_refused(load):
    with pytest.raises(ValueError, match=r"^path: expected a path or None, got 5$"):
        load(5)


@pytest.mark.parametrize("load", [datasets.load_cars3d, datasets.load_smallnorb])
def test_missing_files_say_where_they_belong(load, tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"found no .* in .*drkm datasets download .* or place it there by hand"):
        load()


@pytest.mark.parametrize("size", [96, 128])
@pytest.mark.parametrize("colour", [False, True])
def test_shrinking_agrees_with_pillow(size, colour):
    image_module = pytest.importorskip("PIL.Image")
    shape = (3, size, size, 3) if colour else (3, size, size)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    for ours, image in zip(shrink(images), images, strict=True):
        theirs = np.asarray(image_module.fromarray(image).resize((64, 64), image_module.Resampling.LANCZOS))
        assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_shrinking_keeps_constants_and_sums_to_one():
    np.testing.assert_allclose(lanczos_matrix(96, 64).sum(1), 1, rtol=1e-6)
    assert np.all(shrink(np.full((1, 128, 128, 3), 200, np.uint8)) == 200)


@real("cars3d_64.npz")
def test_real_cars_fill_the_grid():
    data = datasets.load_cars3d(os.path.join(os.environ["DRKM_DATA"], "cars3d_64.npz"))
    assert len(data) == 17_568
    assert data.factor_sizes == (4, 24, 183)
    images, factors = data.sample(50, random_state=0)
    np.testing.assert_array_equal(images, data.images_at(factors))
    # Neighbouring azimuths look more alike than opposite ones.
    near, far = factors.copy(), factors.copy()
    near[:, 1], far[:, 1] = (near[:, 1] + 1) % 24, (far[:, 1] + 6) % 24
    error = [np.mean((data.images_at(f) - images.astype(float)) ** 2) for f in (near, far)]
    assert error[0] < 0.7 * error[1]


@real("smallnorb_inst0_left_64.npz")
def test_real_norb_fills_the_grid():
    data = datasets.load_smallnorb(os.path.join(os.environ["DRKM_DATA"], "smallnorb_inst0_left_64.npz"))
    assert len(data) == 4_860
    assert data.factor_sizes == (5, 9, 18, 6)
    assert data.sample(5, random_state=0)[0].shape == (5, 64, 64)
