from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from dense_oracle import LargestTensor
from drkm import ConstrDRKM, load
from drkm.files.rows import AbsentRows, Rows, largest_values, open_rows
from drkm.gram import Dense, NotEnoughMemory, Tiled, TiledGram
from drkm.inference.first_gram import energy_of
from drkm.kernels import RBF, Cosine, Polynomial
from drkm.machine import memory
from drkm.problem.energy import Energy, workload
from drkm.solvers import LBFGS
from drkm.training import Plan
from drkm.training.run import resolve_kernels

SETTINGS = {"n_components": (3, 2), "tol": 1e-5}


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(80, 6)


@pytest.fixture
def npy(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return tmp_path / "X.npy"


@pytest.fixture
def hdf5(X, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["samples"] = X
        file["other"] = X[:, 0]
    return tmp_path / "X.h5"


class TestRows:
    def test_give_the_rows_asked_for(self, X, npy):
        rows = open_rows(npy)
        assert len(rows) == 80
        assert rows.shape == (80, 6)
        np.testing.assert_array_equal(rows[10:17], X[10:17])
        index = torch.tensor([5, 79, 0, 5])
        np.testing.assert_array_equal(rows[index], X[index])
        np.testing.assert_array_equal(rows.tensor(), X)

    def test_of_hdf5_give_the_rows_asked_for(self, X, hdf5):
        rows = open_rows(f"{hdf5}:samples")
        np.testing.assert_array_equal(rows[10:17], X[10:17])
        index = torch.tensor([5, 79, 0, 5])
        np.testing.assert_array_equal(rows[index], X[index])

    def test_know_their_mean(self, X, npy, monkeypatch):
        monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 6 * 7)
        np.testing.assert_allclose(open_rows(npy).mean(), X.mean(axis=0), rtol=1e-13, atol=1e-15)

    def test_come_in_the_precision_asked_for(self, npy):
        rows = open_rows(npy).to(dtype=torch.float32, device=torch.device("cpu"))
        assert rows[:3].dtype == rows.mean().dtype == rows.tensor().dtype == torch.float32

    def test_leave_the_file_as_it_was(self, X, npy):
        rows = open_rows(npy)
        rows[:5].zero_()
        np.testing.assert_array_equal(np.load(npy), X)

    @pytest.mark.parametrize(
        ("array", "kind", "sentence"),
        [
            (np.zeros(3), ValueError, "X: expected 2 dimensions"),
            (np.array([["a"]]), TypeError, "X: expected real numbers"),
        ],
    )
    def test_refuse_what_is_no_matrix_of_numbers(self, array, kind, sentence):
        with pytest.raises(kind, match=sentence):
            Rows(array)

    def test_unknown_files_and_datasets_are_refused(self, hdf5, tmp_path):
        with pytest.raises(ValueError, match=r"X: expected a \.npy, \.h5 or \.hdf5 file"):
            open_rows(tmp_path / "X.csv")
        with pytest.raises(ValueError, match=r"X: expected the name of one dataset .* the file holds other, samples"):
            open_rows(hdf5)
        with pytest.raises(ValueError, match="X: expected the name of one dataset"):
            open_rows(f"{hdf5}:nothing")
        folder = tmp_path / "folder.npy"
        folder.mkdir()
        with pytest.raises(FileNotFoundError, match=r"^X: there is no file"):
            open_rows(folder)

    @pytest.mark.parametrize("name", ["group", "link"])
    def test_what_is_no_dataset_of_an_hdf5_file_is_refused(self, hdf5, name):
        h5py = pytest.importorskip("h5py")
        with h5py.File(hdf5, "a") as file:
            file.create_group("group")
            file["link"] = h5py.SoftLink("/nowhere")
        with pytest.raises(ValueError, match=r"^X: expected the name of one dataset .* group, link, other, samples"):
            open_rows(f"{hdf5}:{name}")
        with h5py.File(hdf5) as file, pytest.raises(TypeError, match=r"^X: expected a dataset of an open HDF5 file"):
            ConstrDRKM(**SETTINGS).fit(file["group"])

    def test_a_closed_hdf5_file_is_refused(self, hdf5):
        h5py = pytest.importorskip("h5py")
        with h5py.File(hdf5) as file:
            held = file["samples"]
            rows = Rows(held)
        with pytest.raises(TypeError, match=r"^X: expected a dataset of an open HDF5 file, got <Closed HDF5 dataset>"):
            ConstrDRKM(**SETTINGS).fit(held)
        with pytest.raises(OSError, match=r"^X: .*X.h5 cannot be read, is it damaged or closed\?"):
            rows[:3]

    def test_a_damaged_block_of_an_hdf5_file_is_refused(self, X, tmp_path):
        h5py = pytest.importorskip("h5py")
        path = tmp_path / "blocks.h5"
        with h5py.File(path, "w") as file:
            block = file.create_dataset("samples", data=X, chunks=(20, 6), compression="gzip").id.get_chunk_info(1)
        content = bytearray(path.read_bytes())
        content[block.byte_offset : block.byte_offset + block.size] = bytes(block.size)
        path.write_bytes(content)
        with pytest.raises(OSError, match=r"^X: .*blocks.h5 cannot be read, is it damaged or closed\?"):
            ConstrDRKM(**SETTINGS).fit(path)

    def test_an_hdf5_file_that_is_being_written_is_refused(self, hdf5):
        pytest.importorskip("h5py")
        writer = "import h5py, sys; file = h5py.File(sys.argv[1], 'a'); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", writer, str(hdf5)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "open\n"
            with pytest.raises(ValueError, match=r"^X: .*X.h5 is open for writing in another process$"):
                open_rows(f"{hdf5}:samples")
            process.stdin.close()

    def test_without_h5py_the_extra_is_named(self, hdf5, monkeypatch):
        monkeypatch.setitem(sys.modules, "h5py", None)
        with pytest.raises(ImportError, match=r"HDF5 files need h5py: pip install 'drkm\[data\]'"):
            open_rows(hdf5)

    def test_an_npy_file_with_objects_is_not_unpickled(self, tmp_path):
        np.save(tmp_path / "objects.npy", np.array([[object()]]), allow_pickle=True)
        with pytest.raises(ValueError, match=r"^X: .*objects.npy holds Python objects, which are never read$"):
            open_rows(tmp_path / "objects.npy")

    def test_damaged_and_foreign_files_are_refused(self, npy, hdf5, tmp_path):
        whole = npy.read_bytes()
        for held in (whole[:-100], whole[:40], b"", b"no array"):
            npy.write_bytes(held)
            with pytest.raises(ValueError, match=r"^X: .*X.npy is damaged or not a .npy file of numbers \("):
                open_rows(npy)
        np.savez(tmp_path / "archive", whole)
        (tmp_path / "archive.npz").rename(npy)
        with pytest.raises(ValueError, match=r"^X: .*X.npy is damaged or not a .npy file of numbers \("):
            open_rows(npy)
        hdf5.write_bytes(hdf5.read_bytes()[:100])
        with pytest.raises(ValueError, match=r"^X: .*X.h5 is damaged or not an HDF5 file \("):
            open_rows(hdf5)


class TestFit:
    def test_of_a_file_equals_that_of_the_array_and_leaves_the_samples_there(self, X, npy):
        held = ConstrDRKM(gram="tiled", **SETTINGS).fit(X)
        for source in (npy, str(npy), np.load(npy, mmap_mode="r"), open_rows(npy)):
            model = ConstrDRKM(gram="tiled", **SETTINGS).fit(source)
            assert isinstance(model.fitted_.X, Rows)
            np.testing.assert_array_equal(model.codes_, held.codes_)
            np.testing.assert_allclose(model.transform(source), held.transform(X), atol=1e-12)
            assert isinstance(model.transform(source), np.ndarray)

    def test_of_hdf5_equals_that_of_the_array(self, X, hdf5):
        h5py = pytest.importorskip("h5py")
        held = ConstrDRKM(gram="tiled", **SETTINGS).fit(X)
        with h5py.File(hdf5) as file:
            model = ConstrDRKM(gram="tiled", **SETTINGS).fit(file["samples"])
            np.testing.assert_array_equal(model.codes_, held.codes_)
            np.testing.assert_allclose(model.transform(file["samples"]), held.transform(X), atol=1e-12)

    def test_with_a_stored_matrix_reads_the_file(self, X, npy):
        model = ConstrDRKM(gram="dense", **SETTINGS).fit(np.load(npy, mmap_mode="r"))
        assert isinstance(model.fitted_.X, torch.Tensor)
        np.testing.assert_array_equal(model.codes_, ConstrDRKM(gram="dense", **SETTINGS).fit(X).codes_)

    def test_of_bytes_never_makes_a_copy_of_all_samples_in_floating_point(self, tmp_path, monkeypatch):
        np.save(tmp_path / "X.npy", np.random.RandomState(0).randint(0, 2, (300, 50), dtype=np.uint8))
        monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 50 * 100)
        monkeypatch.setitem(sys.modules["drkm.gram.tiles"].TILE_ROWS, "cpu", 100)
        monkeypatch.setattr("drkm.training.run.MEDIAN_ROWS", 100)
        monkeypatch.setattr("drkm.strange_data.samples.MEDIAN_ROWS", 100)
        largest = []
        whole = Rows._read
        monkeypatch.setattr(Rows, "_read", lambda self, index: largest.append(whole(self, index)) or largest[-1])
        model = ConstrDRKM(gram="tiled", **SETTINGS).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
        assert model.converged_
        assert max(map(len, largest)) == 100

    @pytest.mark.parametrize("kernel", [Cosine(), Polynomial(2, 0.1), RBF(9.0)], ids=lambda kernel: kernel.describe())
    @pytest.mark.parametrize("center", [False, True])
    def test_of_a_file_with_other_kernels_equals_that_of_the_array(self, X, npy, kernel, center):
        settings = {**SETTINGS, "kernel": [kernel, "rbf"], "center": center}
        stored = ConstrDRKM(gram="dense", **settings).fit(X)
        model = ConstrDRKM(gram="tiled", **settings).fit(npy)
        assert model.objective_ == pytest.approx(stored.objective_, rel=1e-8)

    @pytest.mark.parametrize("center", [False, True])
    def test_learns_bandwidths_by_the_gradient_of_dense(self, X, npy, center):
        H = torch.linalg.qr(torch.from_numpy(X[:, :5]))[0]
        kernels = [RBF(9.0), RBF(0.1)]
        points = (open_rows(npy), torch.from_numpy(X), torch.from_numpy(X))
        found, held, expected = (
            Energy(source, kernels, (3, 2), (1.0, 1.0), strategy, center).bandwidth_gradient(H, 0)
            for source, strategy in zip(points, (Tiled(), Tiled(), Dense()), strict=True)
        )
        assert found == held == pytest.approx(expected, rel=1e-9)

    def test_of_a_precomputed_matrix_in_a_file_equals_that_of_the_array(self, X, tmp_path):
        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 20)
        np.save(tmp_path / "K.npy", K)
        settings = {**SETTINGS, "kernel": ["precomputed", "rbf"]}
        held = ConstrDRKM(gram="tiled", **settings).fit(K)
        assert ConstrDRKM(gram="tiled", **settings).fit(tmp_path / "K.npy").objective_ == held.objective_

    def test_can_be_saved_denoised_scored_and_resumed(self, X, npy, tmp_path):
        held = ConstrDRKM(gram="tiled", **SETTINGS).fit(X)
        model = ConstrDRKM(gram="tiled", checkpoint=tmp_path / "checkpoint", **SETTINGS).fit(npy)
        np.testing.assert_allclose(model.denoise(X[:5]), held.denoise(X[:5]), atol=1e-10)
        assert model.score(npy) == pytest.approx(held.score(X), rel=1e-9)
        model.save(tmp_path / "model")
        np.testing.assert_allclose(load(tmp_path / "model").transform(X), held.transform(X), atol=1e-12)

    def test_is_saved_without_reading_the_whole_file_at_once(self, X, npy, tmp_path, monkeypatch):
        model, read, sizes = ConstrDRKM(gram="tiled", **SETTINGS).fit(npy), Rows._read, []
        monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 10 * X[0].nbytes * 8 // 6)
        monkeypatch.setattr(Rows, "_read", lambda rows, index: sizes.append(len(found := read(rows, index))) or found)
        model.save(tmp_path / "model")
        assert sum(sizes) >= len(X)
        assert max(sizes) < 20
        np.testing.assert_array_equal(load(tmp_path / "model").fitted_.X.numpy(), X)

    def test_nan_in_a_file_and_too_few_samples_are_refused(self, X, tmp_path):
        X[70, 3] = np.nan
        np.save(tmp_path / "X.npy", X)
        with pytest.raises(ValueError, match=r"X: .*X.npy: contains NaN or infinity"):
            ConstrDRKM(**SETTINGS).fit(tmp_path / "X.npy")
        np.save(tmp_path / "X.npy", X[:1])
        with pytest.raises(ValueError, match=r"X: .*X.npy: expected at least 2 samples, got 1"):
            ConstrDRKM(**SETTINGS).fit(tmp_path / "X.npy")

    def test_a_file_that_does_not_fit_is_refused_by_dense_and_taken_by_tiled(self, npy, monkeypatch):
        monkeypatch.setattr(memory, "TRIFLE", 0)
        monkeypatch.setitem(sys.modules["drkm.gram.tiles"].TILE_ROWS, "cpu", 10)
        model = ConstrDRKM(gram="tiled", **SETTINGS).fit(npy)
        work = workload(open_rows(npy), model.kernels_, (3, 2))
        enough = 2 * Tiled(keep=0).cost(work).bytes
        monkeypatch.setattr(memory, "available", lambda device: enough)
        monkeypatch.setattr(Dense, "matrices", enough / (work.n**2 * work.item))
        with pytest.raises(NotEnoughMemory, match='gram="tiled" would need'):
            ConstrDRKM(gram="dense", **SETTINGS).fit(npy)
        again = ConstrDRKM(gram="tiled", **SETTINGS).fit(npy)
        assert isinstance(energy_of(again.fitted_).first, TiledGram)


def test_bandwidths_of_a_file_are_those_of_the_array_to_the_last_digit():
    array = np.random.RandomState(0).randn(1_000_000, 1)
    plan = Plan((1,), (RBF(),), (1.0,), (1.0,), Dense(), LBFGS())
    (in_file,), (in_memory,) = (resolve_kernels(X, plan) for X in (Rows(array), torch.from_numpy(array)))
    assert in_file == in_memory


class TestOut:
    def test_codes_and_points_are_written_where_asked(self, X, npy, tmp_path):
        model = ConstrDRKM(**SETTINGS).fit(X)
        codes = np.lib.format.open_memmap(tmp_path / "codes.npy", mode="w+", shape=(80, 5), dtype=np.float64)
        assert model.transform(npy, out=codes) is codes
        np.testing.assert_array_equal(codes, model.transform(X))
        points = np.zeros((80, 6), dtype=np.float32)
        assert model.denoise(npy, out=points) is points
        np.testing.assert_allclose(points, model.denoise(X), atol=1e-5)

    @pytest.mark.parametrize(
        ("out", "kind", "sentence"),
        [
            (np.zeros((3, 5)), ValueError, r"out: expected shape \(80, 5\), got \(3, 5\)"),
            (np.zeros((80, 5), dtype=int), TypeError, "out: expected a writable numpy array of float32 or float64"),
            ([0.0], TypeError, "out: expected a writable numpy array"),
        ],
    )
    def test_a_place_that_does_not_fit_is_refused(self, X, out, kind, sentence):
        with pytest.raises(kind, match=sentence):
            ConstrDRKM(**SETTINGS).fit(X).transform(X, out=out)

    def test_nothing_as_large_as_all_new_points_by_all_samples_is_formed(self, X, tmp_path, monkeypatch):
        np.save(tmp_path / "new.npy", np.random.RandomState(1).randn(2000, 6))
        model = ConstrDRKM(**SETTINGS).fit(X)
        monkeypatch.setattr("drkm.gram.cost.BATCH_ROWS", 50)
        codes = np.empty((2000, 5))
        with LargestTensor() as seen:
            model.transform(tmp_path / "new.npy", out=codes)
        assert 50 * 80 <= seen.entries <= 2000 * 6
        np.testing.assert_allclose(codes, model.transform(np.load(tmp_path / "new.npy")), atol=1e-9)

    def test_batches_change_nothing(self, X, npy, monkeypatch):
        model = ConstrDRKM(**SETTINGS).fit(X)
        codes, points = model.transform(X), model.denoise(X)
        monkeypatch.setattr("drkm.gram.cost.BATCH_ROWS", 7)
        np.testing.assert_allclose(model.transform(npy), codes, atol=1e-9)
        np.testing.assert_allclose(model.denoise(npy), points, atol=1e-6)


def test_largest_values_are_those_of_all_samples_wherever_they_are(tmp_path, monkeypatch):
    X = np.random.RandomState(0).randn(50, 3)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr("drkm.files.rows.PASS_BYTES", 8 * 3 * 7)
    for samples in (torch.from_numpy(X), open_rows(tmp_path / "X.npy")):
        np.testing.assert_array_equal(largest_values(samples), X.max(axis=0, keepdims=True))
    absent = AbsentRows((50, 3), torch.from_numpy(X.max(axis=0, keepdims=True)))
    assert len(absent) == 50
    np.testing.assert_array_equal(largest_values(absent), X.max(axis=0, keepdims=True))
    with pytest.raises(ValueError, match="X: the model was saved without its samples"):
        absent.tensor()
