"""Data files that are damaged, or declare more than fits: refused with one sentence, before memory is allocated."""

import io
import struct
import sys
import tokenize
import tracemalloc
import types
import warnings
import zipfile
import zlib

import numpy as np
import pytest

from drkm.files import Refused, read_labels, read_table, reading
from drkm.files.rows import open_rows
from refusals import refused

#: more than what is always granted, less than what the files below declare
SMALL = 40_000_000


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with little available memory, of which reading takes almost nothing."""
    monkeypatch.setattr("drkm.files._guarded.available_on_host", lambda: SMALL)
    tracemalloc.start()
    yield
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < SMALL / 4


def zipped_zeros(path, shape, kind):
    """An .npz file of a few kilobytes with an array of zeros of any size, written piece by piece."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    left = int(np.prod(shape)) * np.dtype(kind).itemsize
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("data.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        while left > 0:
            member.write(bytes(min(left, 1 << 20)))
            left -= 1 << 20
    return path


def png(path, width, height):
    """Write an image that declares its size and holds a single byte of pixels."""
    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [b"IHDR" + size, b"IDAT" + zlib.compress(b"\0"), b"IEND"]
    parts = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    return path


@pytest.mark.parametrize("kind", ["<f8", "|u1"])
def test_an_archive_that_unpacks_to_more_than_fits_is_refused(kind, tmp_path, small_machine):
    path = zipped_zeros(tmp_path / "x.npz", (10_000, 600), kind)
    assert path.stat().st_size < 100_000
    refused(lambda: read_table(path), ValueError, "x.npz declares", "(10000, 600)", "48 MB", "40 MB are available")


def test_an_archive_whose_header_unpacks_to_more_than_fits_is_refused(tmp_path, small_machine):
    path, length = tmp_path / "x.npz", 60_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("data.npy", "w") as member:
        member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", length))
        for _ in range(length // 1_000_000):
            member.write(b" " * 1_000_000)
    assert path.stat().st_size < 100_000
    refused(lambda: read_table(path), ValueError, "x.npz cannot be read as .npz")


def test_an_array_that_does_not_fit_is_refused(tmp_path, small_machine):
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype="<f8", shape=(10_000, 600))
    refused(lambda: read_table(path), ValueError, "x.npy declares float64 of shape (10000, 600)", "48 MB", "40 MB")
    assert open_rows(path).shape == (10_000, 600)


@pytest.mark.parametrize(("rows", "held"), [(29, "7.2 kB"), (31, "7.2 kB"), (10**12, "7.2 kB"), (10**400, "7.2 kB")])
def test_an_array_of_another_length_than_its_header_says_is_refused(rows, held, tmp_path):
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (rows, 30)})
        file.write(np.ones((30, 30)).tobytes())
    for read in (read_table, open_rows):
        said = refused(lambda read=read: read(path), ValueError, "x.npy")
        assert rows == 10**400 or f"holds {held}" in said


def test_a_table_of_text_that_does_not_fit_is_refused(tmp_path, small_machine):
    path = tmp_path / "x.csv"
    with path.open("w") as file:
        for _ in range(5_000):
            file.write(",".join(["17"] * 100) + "\n")
    refused(lambda: read_table(path), ValueError, "x.csv holds about 5e+05 entries", "42.1 MB", "40 MB are available")


def test_a_table_that_is_denser_than_its_beginning_is_refused_before_it_is_parsed(tmp_path, small_machine):
    path = tmp_path / "x.csv"
    with path.open("w") as file:
        file.writelines("a" * 130_000 + "\n" for _ in range(9))
        file.write(",\n" * 200_000)
    refused(lambda: read_table(path), ValueError, "x.csv holds at least", "entries", "40 MB are available")


def pyarrow_of(version, monkeypatch, read_metadata):
    """Stand for a version of pyarrow, which reads this of any file."""
    parquet = types.SimpleNamespace(read_metadata=read_metadata)
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(parquet=parquet, __version__=version))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)


@pytest.mark.parametrize("version", ["7.0.0", "13.0.0", "14.0.0"])
def test_a_parquet_file_is_not_read_by_a_pyarrow_that_runs_its_code(version, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    read = []
    pyarrow_of(version, monkeypatch, read.append)
    monkeypatch.setattr(pandas, "read_parquet", read.append)
    (tmp_path / "x.parquet").touch()
    sentence = f"x.parquet needs pyarrow 14.0.1 or newer: {version} would run code that a file can hold"
    refused(lambda: read_table(tmp_path / "x.parquet"), ValueError, sentence)
    refused(lambda: read_labels(tmp_path / "x.parquet"), ValueError, sentence)
    assert not read


@pytest.mark.parametrize("version", ["14.0.1", "14.0.2.dev3", "15.0.0", "26.0.0+local.1"])
def test_a_parquet_file_is_read_by_a_later_pyarrow(version, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pyarrow_of(version, monkeypatch, lambda file: types.SimpleNamespace(num_rows=2, num_columns=1))
    monkeypatch.setattr(pandas, "read_parquet", lambda file: pandas.DataFrame({"a": [1.0, 2.0]}))
    (tmp_path / "x.parquet").touch()
    assert read_table(tmp_path / "x.parquet").values.tolist() == [[1.0], [2.0]]


def test_a_parquet_file_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setattr("drkm.files._guarded.available_on_host", lambda: SMALL)
    pyarrow_of("15.0.0", monkeypatch, lambda file: types.SimpleNamespace(num_rows=10_000, num_columns=600))
    (tmp_path / "x.parquet").touch()
    sentence = "x.parquet declares 10000 rows of 600 columns"
    refused(lambda: read_table(tmp_path / "x.parquet"), ValueError, sentence, "48 MB", "40 MB")


class TestPictures:
    @pytest.fixture(autouse=True)
    def _library(self):
        self.Image = pytest.importorskip("PIL.Image")

    def test_of_too_many_pixels_is_refused_without_a_warning(self, tmp_path, small_machine):
        path = png(tmp_path / "x.png", 13_300, 13_300)
        sentence = "x.png declares 13300x13300 pixels, more than the 89478485 that are read: shrink it first"
        refused(lambda: read_table(path), ValueError, sentence)
        refused(lambda: read_table(tmp_path), ValueError, "holds x.png, which declares 13300x13300 pixels")

    def test_that_does_not_fit_is_refused(self, tmp_path, small_machine):
        path = png(tmp_path / "x.png", 2_000, 1_500)
        refused(lambda: read_table(path), ValueError, "x.png declares 1500x2000 pixels", "48 MB", "40 MB are available")

    def test_of_which_all_do_not_fit_are_refused_after_the_first(self, tmp_path, small_machine):
        self.Image.new("L", (500, 500)).save(tmp_path / "0.png")
        for number in range(1, 100):
            (tmp_path / f"{number}.png").write_bytes(b"never looked at")
        refused(
            lambda: read_table(tmp_path), ValueError, "holds 100 pictures of 500x500", "50 MB", "40 MB are available"
        )

    def test_whose_checksum_is_wrong_is_refused(self, tmp_path):
        path = tmp_path / "x.png"
        self.Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).save(path)
        assert read_table(path).values.tolist() == [list(range(12))]
        checksum = path.read_bytes().index(b"IEND") - 8
        refused(
            lambda: read_table(changed(path, (checksum, 1))), ValueError, "x.png cannot be read", "checksum in b'IDAT'"
        )

    def test_of_another_kind_are_refused_whatever_their_name(self, tmp_path):
        self.Image.new("RGB", (32, 32)).save(tmp_path / "x.ico")
        (tmp_path / "x.ico").rename(tmp_path / "x.png")
        refused(lambda: read_table(tmp_path / "x.png"), ValueError, "x.png cannot be read as an image")


class TestHDF5:
    @pytest.fixture
    def declaring(self, tmp_path):
        h5py = pytest.importorskip("h5py")

        def make(shape, **more):
            with h5py.File(tmp_path / "x.h5", "w") as file:
                file.create_dataset("samples", shape, "f8", **more)
            return tmp_path / "x.h5"

        return make

    def test_that_declares_more_than_a_file_can_hold_is_refused(self, declaring):
        path = declaring((10**12, 4), chunks=(100, 4))
        refused(lambda: open_rows(path), ValueError, "x.h5 declares float64 of shape (1000000000000, 4), 32 TB")

    def test_of_which_not_one_row_fits_is_refused(self, declaring, monkeypatch):
        monkeypatch.setattr("drkm.files.rows.MOST_COMPRESSION", 10**9)
        monkeypatch.setattr("drkm.files._guarded.available_on_host", lambda: SMALL)
        for path in (declaring((3, 6_000_000), chunks=(1, 100)), declaring((3 * 10**6, 4), chunks=(1_500_000, 4))):
            refused(lambda path=path: open_rows(path), ValueError, "x.h5 declares", "48 MB", "40 MB are available")

    def test_that_is_refused_is_closed(self, declaring):
        h5py = pytest.importorskip("h5py")
        path = declaring((10**12, 4), chunks=(100, 4))
        refused(lambda: open_rows(path), ValueError, "x.h5 declares")
        with h5py.File(path, "a") as file:
            file["more"] = 1


@pytest.fixture
def npz(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", data=np.random.RandomState(0).randn(20, 3), labels=np.arange(20))
    return tmp_path / "x.npz"


def changed(path, *places):
    content = bytearray(path.read_bytes())
    for place, value in places:
        content[place] = value
    path.write_bytes(content)
    return path


def test_archives_that_zipfile_cannot_unpack_are_refused(npz):
    content = npz.read_bytes()
    entry = content.index(b"PK\x01\x02")
    for damage, reason in (
        ([(6, 1), (entry + 8, 1)], "encrypted"),
        ([(8, 99), (entry + 10, 99)], "compression method"),
        ([(content.index(b"data.npy") + 28, 7)], "error -3 while decompressing"),
    ):
        npz.write_bytes(content)
        refused(lambda damage=damage: read_table(changed(npz, *damage)), ValueError, "x.npz cannot be read as", reason)


def test_an_array_whose_name_lost_its_ending_is_not_passed_over_for_another(npz):
    place = npz.read_bytes().rindex(b"data.npy") + 5
    refused(lambda: read_table(changed(npz, (place, 2))), ValueError, r"x.npz should hold one array", r"'data.\x02py'")


def test_a_header_that_python_cannot_parse_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    for header in (
        b"{'descr': ((",
        b"{'descr': '<f8', 'shape': (1L" + b"(" * 3000,
        b"{'a': " + b"-" * 9000 + b"1}",
        b"\xff",
    ):
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        refused(lambda: read_table(path), ValueError, "x.npy cannot be read as .npy")


@pytest.mark.parametrize(
    "error",
    [
        zlib.error("Error -3 while decompressing data"),
        tokenize.TokenError("EOF in multi-line statement", (2, 0)),
        OverflowError("too large"),
        NotImplementedError("That compression method is not supported"),
        RuntimeError("File 'x' is encrypted, password required for extraction"),
        struct.error("unpack requires a buffer of 8 bytes"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        RecursionError("maximum recursion depth exceeded"),
        SyntaxError("invalid syntax"),
        EOFError(),
        KeyError("x"),
        ValueError("first line\nsecond\x1b[2J line " + 1000 * "x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_reader_raises_becomes_one_sentence(error):
    def read():
        with reading("data: x.npy", "cannot be read"):
            raise error

    said = refused(read, ValueError, "data: x.npy cannot be read (")
    assert said.isprintable()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "data: x.npy needs more memory than is available"),
        (PermissionError(13, "Permission denied"), "data: x.npy cannot be read: permission denied"),
        (FileNotFoundError(2, "No such file"), "data: x.npy does not exist"),
        (Refused("is a folder"), "data: x.npy is a folder"),
    ],
)
def test_what_can_be_said_better_is(error, sentence):
    def read():
        with reading("data: x.npy", "cannot be read"):
            raise error

    assert refused(read, ValueError) == sentence


def test_what_is_not_installed_and_ctrl_c_pass():
    for error in (ImportError("needs pandas"), KeyboardInterrupt()):
        with pytest.raises(type(error)), reading("data: x.npy", "cannot be read"):
            raise error


def test_files_of_python_2_are_read_without_a_warning(tmp_path):
    path = tmp_path / "x.npy"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + np.arange(6.0).tobytes())
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(read_table(path).values, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_arrays_of_any_order_and_kind_are_read_as_numpy_reads_them(suffix, tmp_path):
    values = np.random.RandomState(0).randint(0, 100, (4, 5, 6))
    for kind in ("<f8", ">f4", "<f2", "|u1", ">i2", "|b1"):
        for array in (values.astype(kind), np.asfortranarray(values.astype(kind)), values.astype(kind)[0, 0]):
            path = tmp_path / f"x.{suffix}"
            np.save(path, array) if suffix == "npy" else np.savez(path, data=array)
            found = read_table(path).values
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array.reshape(len(array), -1))
