import io
import os
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from originals import DSPRITES_SIZES, dsprites_npz

import drkm
from drkm import datasets
from drkm.datasets import DatasetError
from drkm.datasets._sprites import render
from drkm.datasets.dsprites import FACTOR_NAMES, RenderedDSprites, read_original
from drkm.datasets.noisy_dsprites import NoisyDSprites

REAL = os.environ.get("DRKM_DATA") and os.path.join(os.environ["DRKM_DATA"], "dsprites_grid46080.npz")
real_data = pytest.mark.skipif(not (REAL and os.path.isfile(REAL)), reason="needs dsprites_grid46080.npz in DRKM_DATA")


def polygon(shape, scale, angle, x, y):
    """Apply the recipe again, one vertex at a time, in exact multiples of 1/256 pixel."""
    if shape == 0:
        outline = [(-9.6, -9.6), (9.6, -9.6), (9.6, 9.6), (-9.6, 9.6)]
    elif shape == 1:
        ts = [2 * np.pi * k / 100 for k in range(100)]
        outline = [(9.6 * 1.33 * np.cos(t), 9.6 / 1.33 * np.sin(t)) for t in ts]
    else:
        ts = [2 * np.pi * k / 150 for k in range(150)]
        outline = [
            (
                9.6 * np.sin(t) ** 3,
                -(19.2 / 29) * (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) - 1.44,
            )
            for t in ts
        ]
    c, s = np.cos(angle), np.sin(angle)
    return [
        (
            round(256 * (16 + 32 * x + scale * (u * c + w * s))),
            round(256 * (16 + 32 * y + scale * (-u * s + w * c))),
        )
        for u, w in outline
    ]


def inside(vertices, px, py):
    """Even-odd ray test, with left and bottom edges in, right and top edges out."""
    hit = False
    for (x0, y0), (x1, y1) in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        if (y0 < py) != (y1 < py):
            if y0 > y1:
                x0, y0, x1, y1 = x1, y1, x0, y0
            if (px - x0) * (y1 - y0) >= (py - y0) * (x1 - x0):
                hit = not hit
    return hit


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_rendering_agrees_with_testing_every_pixel(shape):
    rng = np.random.default_rng(shape)
    for _ in range(3):
        # Some sprites are partly outside and are cut.
        scale, angle, x, y = rng.uniform([0.5, 0, -0.4, -0.4], [1.2, 7, 1.4, 1.4])
        image = render(*(np.array([v]) for v in (shape, scale, angle, x, y)))[0]
        vertices = polygon(shape, scale, angle, x, y)
        oracle = [[255 * inside(vertices, 256 * i + 128, 256 * j + 128) for i in range(64)] for j in range(64)]
        np.testing.assert_array_equal(image, oracle)


def test_ties_go_left_and_bottom():
    # At scale 7.5/9.6 the square's edges lie exactly on pixel centres: 15 wide edges, 15 pixels, not 16.
    image = render(*(np.array([v]) for v in (0, 7.5 / 9.6, 0.0, 0.5, 0.5)))[0]
    rows, columns = np.nonzero(image)
    assert columns.min() == 24
    assert columns.max() == 38
    assert rows.min() == 25
    assert rows.max() == 39


def test_turning_a_square_by_a_quarter_changes_nothing_but_ties():
    at = RenderedDSprites({"orientation": [0.0, np.pi / 2]})
    factors = np.array([[0, 3, o, 7, 9] for o in (0, 1)])
    first, second = at.images_at(factors)
    assert np.count_nonzero(first != second) == 0


def test_sprites_have_the_area_of_their_shapes():
    grid = RenderedDSprites({"scale": [1.0], "orientation": [0.3], "pos_x": [0.5], "pos_y": [0.5]})
    area = (grid.images_at([[k, 0, 0, 0, 0] for k in range(3)]) > 0).sum((1, 2))
    assert area[0] == pytest.approx(19.2**2, rel=0.02)
    assert area[1] == pytest.approx(np.pi * 9.6**2, rel=0.02)


def test_positions_move_the_sprite_right_and_down():
    data = datasets.load_dsprites(source="rendered")
    images = data.images_at([[1, 0, 0, 0, 0], [1, 0, 0, 31, 0], [1, 0, 0, 0, 31]])
    y, x = ([np.average(np.arange(64), weights=im.sum(axis)) for im in images] for axis in (1, 0))
    assert x[1] - x[0] == pytest.approx(32, abs=0.5)
    assert y[1] - y[0] == pytest.approx(0, abs=0.01)
    assert y[2] - y[0] == pytest.approx(32, abs=0.5)
    assert x[2] - x[0] == pytest.approx(0, abs=0.01)


@real_data
def test_at_most_ten_real_images_differ_by_one_pixel():
    with np.load(REAL, allow_pickle=False) as file:
        images, factors = file["images"], file["factors"]
    drawn = datasets.load_dsprites(source="rendered").images_at(factors)
    pixels = np.count_nonzero((drawn > 0) != (images > 0), axis=(1, 2))
    assert np.count_nonzero(pixels) <= 10
    assert pixels.max() <= 1


@real_data
def test_compact_file_is_read_and_knows_its_gaps():
    data = datasets.load_dsprites(REAL)
    assert len(data) == 46_080
    assert data.factor_sizes == (3, 6, 40, 32, 32)
    images, factors = data.sample(100, random_state=0)
    assert set(np.unique(images)) == {0, 255}
    np.testing.assert_array_equal(images, data.images_at(factors))
    with pytest.raises(ValueError, match=r"holds 46080 of 737280 combinations, and not \(0, 0, 1, 0, 0\)"):
        data.images_at([[0, 0, 1, 0, 0]])


def test_original_file_is_read_without_its_pickle(tmp_path, monkeypatch):
    import pickle

    path = dsprites_npz(tmp_path / "original.npz")
    monkeypatch.setattr(pickle, "load", lambda *a, **k: pytest.fail("unpickled"))
    monkeypatch.setattr(pickle, "loads", lambda *a, **k: pytest.fail("unpickled"))
    data = read_original(path, DSPRITES_SIZES)
    images, factors = data.sample(len(data), random_state=0)
    np.testing.assert_array_equal(images, RenderedDSprites().images_at(factors))


def test_headers_of_python_2_are_read(tmp_path):
    path = dsprites_npz(tmp_path / "new.npz")
    old = tmp_path / "old.npz"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(old, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            # numpy pads its headers, so there is room for the suffix of a Python 2 long.
            target.writestr(name, data.replace(b"(72, 64, 64), } ", b"(72L, 64, 64), }", 1))
    with zipfile.ZipFile(old) as file:
        assert b"72L" in file.read("imgs.npy")[:128]
    assert len(read_original(old, DSPRITES_SIZES)) == 72


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"images": np.zeros((72, 64, 64), np.float32)}, "'imgs' that should be uint8"),
        ({"images": np.zeros((72, 64, 32), np.uint8)}, "'imgs' that should be uint8 of shape"),
        ({"images": np.asfortranarray(np.zeros((72, 64, 64), np.uint8))}, "in Fortran order"),
        ({"images": np.full((72, 64, 64), 7, np.uint8)}, "pixels that should be 0 or 1, found 7"),
        ({"classes": np.zeros((72, 6), np.int64)}, "are not the rows of the factor grid"),
    ],
)
def test_foreign_arrays_are_refused(tmp_path, change, sentence):
    path = dsprites_npz(tmp_path / "original.npz", **change)
    with pytest.raises(DatasetError, match=sentence):
        read_original(path, DSPRITES_SIZES)


def test_auto_draws_without_a_file_and_reads_it_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    assert isinstance(datasets.load_dsprites(), RenderedDSprites)
    with pytest.raises(DatasetError, match=r"dsprites: found no dsprites_nd.* or place it there"):
        datasets.load_dsprites(source="file")
    path = tmp_path / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    dsprites_npz(path)
    # A file of the wrong size is an error, not a reason to draw images instead.
    with pytest.raises(DatasetError, match="latents_classes"):
        datasets.load_dsprites()
    assert isinstance(datasets.load_dsprites(source="rendered"), RenderedDSprites)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"source": "web"}, "source: expected 'auto', 'rendered' or 'file', got 'web'"),
        ({"source": "rendered", "path": "x.npz"}, "path: expected None"),
        ({"source": "file", "values": {"scale": [1.0]}}, "values: another grid"),
        ({"values": {"colour": [1.0]}}, "values: unknown name 'colour', allowed are shape, "),
        ({"values": [1.0]}, r"values: expected a mapping of factor names to arrays, got \[1.0\]"),
        ({"path": 5}, "path: expected a path or None, got 5"),
        ({"values": {"scale": [0.0]}}, "expected numbers above 0 for scale"),
        ({"values": {"scale": []}}, "expected a 1-d array of finite numbers for scale"),
        ({"values": {"pos_x": [np.nan]}}, "expected a 1-d array of finite numbers for pos_x"),
        ({"values": {"pos_x": [1e9]}}, "expected numbers between .* for pos_x"),
        ({"values": {"shape": [3]}}, "expected 0 .* for shape"),
        ({"path": "no/such/file.npz"}, "no/such/file.npz: no such file"),
    ],
)
def test_bad_parameters_are_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        datasets.load_dsprites(**arguments)


@pytest.mark.parametrize("definition", ["gaussian", "uniform"])
def test_noise_leaves_the_sprite_white(definition):
    data = datasets.load_noisy_dsprites(source="rendered", definition=definition)
    images, factors = data.sample(40, random_state=0)
    sprite = datasets.load_dsprites(source="rendered").images_at(factors) > 0
    assert images.shape == (40, 64, 64, 3)
    assert images.dtype == np.uint8
    assert np.all(images[sprite] == 255)
    background = images[~sprite] / 255
    if definition == "uniform":
        assert background.mean() == pytest.approx(0.5, abs=0.01)
        assert background.var() == pytest.approx(1 / 12, rel=0.02)
    else:
        assert np.mean(background == 0) == pytest.approx(0.5, abs=0.01)
        assert np.mean(background == 1) == pytest.approx(0.16, abs=0.01)


def test_uncut_gaussian_noise_has_unit_variance_and_differs_by_channel():
    data = datasets.load_noisy_dsprites(source="rendered")
    images = data.float_images_at([[0, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    corner = images[:, 40:, 40:]
    assert corner.mean() == pytest.approx(0, abs=0.05)
    assert corner.std() == pytest.approx(1, rel=0.03)
    assert np.abs(np.corrcoef(corner.reshape(-1, 3).T) - np.eye(3)).max() < 0.1
    assert not np.array_equal(corner[0], corner[1])


def test_noise_belongs_to_the_factors_and_the_seed(tmp_path):
    drawn = datasets.load_dsprites(source="rendered")
    factors = np.array([[2, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
    images = NoisyDSprites(drawn).images_at(factors)
    np.testing.assert_array_equal(images[::-1], NoisyDSprites(drawn).images_at(factors[::-1]))
    assert not np.array_equal(images, NoisyDSprites(drawn, seed=1).images_at(factors))
    # A file that holds a part of the grid gives the same noise as the whole grid.
    part = tmp_path / "part.npz"
    np.savez(part, images=drawn.images_at(factors), factors=factors, factor_names=np.array(FACTOR_NAMES))
    np.testing.assert_array_equal(images, datasets.load_noisy_dsprites(part).images_at(factors))


@pytest.mark.parametrize(("name", "value"), [("definition", "pink"), ("seed", -1), ("seed", 2**64)])
def test_bad_noise_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}: expected .* got"):
        datasets.load_noisy_dsprites(source="rendered", **{name: value})


def test_import_is_light():
    # Import the subpackage under an empty parent, to exclude imports of the parent.
    code = (
        "import sys, types; parent = sys.modules['drkm'] = types.ModuleType('drkm'); "
        f"parent.__path__ = {list(drkm.__path__)!r}; import drkm.datasets; "
        "print([m for m in ('torch', 'sklearn', 'pooch', 'scipy', 'tqdm') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert answer.stdout.strip() == "[]", answer.stderr


def test_header_is_not_trusted_about_its_size(tmp_path):
    path = tmp_path / "big.npz"
    stream = io.BytesIO()
    np.save(stream, np.zeros((4, 64, 64), np.uint8))
    header = stream.getvalue().replace(b"(4, 64, 64), }          ", b"(4000000000, 64, 64), } ", 1)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("images.npy", header)
        for name, value in {"factors": np.zeros((4, 5), int), "factor_names": np.array(FACTOR_NAMES)}.items():
            stream = io.BytesIO()
            np.save(stream, value)
            file.writestr(f"{name}.npy", stream.getvalue())
    with pytest.raises(DatasetError, match=r"big.npz: has an array 'images', uint8 of shape .* does not fit"):
        datasets.load_dsprites(path)


@pytest.mark.slow
def test_a_file_of_the_original_size_is_read_in_little_memory(tmp_path):
    path = tmp_path / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    drawn = RenderedDSprites()
    n = len(drawn)
    classes = np.column_stack([np.zeros(n, np.int64), drawn.factors_at(np.arange(n))])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("latents_classes.npy", "w") as stream:
            np.save(stream, classes)
        with file.open("imgs.npy", "w", force_zip64=True) as stream:
            header = {"descr": "|u1", "fortran_order": False, "shape": (n, 64, 64)}
            np.lib.format.write_array_header_1_0(stream, header)
            for start in range(0, n, 8192):
                stream.write((drawn.images_at(classes[start : start + 8192, 1:]) // 255).tobytes())
    tracemalloc.start()
    data = datasets.load_dsprites(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600e6
    images, factors = data.sample(1000, random_state=0)
    np.testing.assert_array_equal(images, drawn.images_at(factors))
