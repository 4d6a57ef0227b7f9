"""Read damaged copies of one kind of data file as the command line does: run as a script, in a process with limits.

    python data_readers.py FOLDER COUNT SEED KIND...

prints for each kind the numbers of copies that were read and refused, and what was wrong with the others.
"""

import contextlib
import gzip
import io
import json
import resource
import signal
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import originals
from mutations import damaged_copies

from drkm import datasets
from drkm.cli._data import check_finite, prepare
from drkm.cli._options import TrainingData
from drkm.cli._outcome import MENDABLE, run
from drkm.datasets import cars3d, dsprites, smallnorb

#: bytes that reading may take in addition to Python and its libraries
MEMORY = 1 << 29
#: limit on processor time, which other work on the machine does not increase
SECONDS = 5
CAR = "data/cars/a.mat"
SPRITES = (3, 1, 2, 1, 2)
VALUES = np.random.RandomState(0).uniform(0, 255, (12, 30))


def make_npy(folder: Path) -> Path:
    np.save(folder / "x.npy", VALUES)
    return folder / "x.npy"


def make_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "x.npz", data=VALUES.astype(np.float32), labels=np.arange(12))
    return folder / "x.npz"


def make_csv(folder: Path) -> Path:
    names = ",".join(f"column{index}" for index in range(VALUES.shape[1]))
    np.savetxt(folder / "x.csv", VALUES, delimiter=",", header=names, comments="", fmt="%.5g")
    return folder / "x.csv"


def make_picture(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from PIL import Image

        Image.fromarray(VALUES.astype(np.uint8)[:, :, None].repeat(3, 2)).save(folder / f"x.{suffix}")
        return folder / f"x.{suffix}"

    return make


def make_hdf5(**layout: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import h5py

        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("samples", data=VALUES, **layout)
        return folder / "x.h5"

    return make


def make_cars3d(folder: Path) -> Path:
    originals.small_cars(sizes, azimuths=2, elevations=2, objects=1)
    member = originals.mat_bytes({"im": originals.car(0, 2, 2)})
    return originals.cars_tar(folder / "cars.tar.gz", {CAR: member})


def make_cars3d_compact(folder: Path) -> Path:
    return originals.compact_npz(folder / "cars.npz", cars3d.FACTOR_NAMES, (2, 2, 1), (64, 64, 3))


def make_smallnorb(part: int) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        originals.small_norb(sizes, folder)
        return folder / smallnorb.SMALLNORB_TESTING[part].name

    return make


def make_smallnorb_compact(folder: Path) -> Path:
    names = (smallnorb.FACTOR_NAMES[0], *smallnorb.FACTOR_NAMES[2:])
    return originals.compact_npz(folder / "norb.npz", names, (2, 1, 2, 1), (64, 64))


def make_dsprites(folder: Path) -> Path:
    return originals.dsprites_npz(folder / "dsprites.npz", SPRITES)


def read_table(path: Path) -> np.ndarray:
    table, preparation = prepare(path, TrainingData())
    check_finite(path, table)
    return preparation.apply(table.values)


def read_rows(path: Path) -> np.ndarray:
    from drkm import ConstrDRKM, inputs

    rows = inputs.read(ConstrDRKM(), path, reset=True)
    try:
        return rows.tensor().numpy()
    finally:
        rows.array.file.close()


def read_images(load: Callable[[Path], datasets.FactorDataset]) -> Callable[[Path], np.ndarray]:
    def read(path: Path) -> np.ndarray:
        data = load(path)
        return data.images_at(data.factors_at(np.arange(len(data))))

    return read


class Sizes:
    """Stands in for the `pytest.MonkeyPatch` that `originals` needs; its changes last as long as the process."""

    def setattr(self, module: Any, name: str, value: Any) -> None:
        mock.patch.object(module, name, value).start()


sizes = Sizes()


def zipped(content: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", content)


def unzipped(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read("data.npy")


def tarred(content: bytes, path: Path) -> None:
    originals.cars_tar(path, {CAR: content})


def untarred(path: Path) -> bytes:
    with tarfile.open(path) as archive:
        return archive.extractfile(CAR).read()


@dataclass(frozen=True)
class Kind:
    """A kind of data file.

    Attributes
    ----------
    make, read : how a file is made, and how it is read
    has_checksums : whether damage must be detected, so that only original values are ever read
    take, put : which bytes of a file are damaged, and how they are put back, as if packed into an archive
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], np.ndarray]
    has_checksums: bool = False
    take: Callable[[Path], bytes] = Path.read_bytes
    put: Callable[[bytes, Path], object] = lambda content, path: path.write_bytes(content)


read_cars3d, read_norb = read_images(datasets.load_cars3d), read_images(datasets.load_smallnorb)
KINDS = {
    "npy": Kind(make_npy, read_table),
    "npz": Kind(make_npz, read_table, True),
    "npz-inside": Kind(make_npz, read_table, False, unzipped, zipped),
    "csv": Kind(make_csv, read_table),
    "png": Kind(make_picture("png"), read_table, True),
    **{suffix: Kind(make_picture(suffix), read_table) for suffix in ("jpg", "bmp", "tif", "gif", "webp", "ppm")},
    "hdf5": Kind(make_hdf5(chunks=(5, 30), compression="gzip"), read_rows),
    "hdf5-plain": Kind(make_hdf5(), read_rows),
    "hdf5-checked": Kind(make_hdf5(chunks=(5, 30), fletcher32=True), read_rows),
    "dsprites": Kind(make_dsprites, read_images(lambda path: dsprites.read_original(path, SPRITES)), True),
    "cars3d": Kind(make_cars3d, read_cars3d, True),
    "cars3d-inside": Kind(make_cars3d, read_cars3d, False, untarred, tarred),
    "cars3d-compact": Kind(make_cars3d_compact, read_cars3d, True),
    "smallnorb-images": Kind(make_smallnorb(0), read_norb, True),
    "smallnorb-factors": Kind(make_smallnorb(2), read_norb, True),
    "smallnorb-inside": Kind(
        make_smallnorb(2),
        read_norb,
        False,
        lambda path: gzip.decompress(path.read_bytes()),
        lambda content, path: path.write_bytes(gzip.compress(content)),
    ),
    "smallnorb-compact": Kind(make_smallnorb_compact, read_norb, True),
}


def outcome(read: Callable[[Path], np.ndarray], path: Path) -> tuple[int, str, np.ndarray | None]:
    """Return the exit code of a command that reads the file, its message, and the values it read."""
    found: list[np.ndarray] = []
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = run(lambda words, **options: found.append(read(path)), ["read"])
    return code, said.getvalue(), found[0] if found else None


def wrong(path: Path, outcome: tuple[int, str, np.ndarray | None], original: np.ndarray | None) -> str | None:
    """Return what was wrong in reading a damaged file; `original` is given if damage must be detected."""
    code, said, found = outcome
    if code == 0:
        same = original is None or np.array_equal(found, original)
        return None if same else "other values in silence"
    sentences = [line for line in said.splitlines() if not line.startswith("drkm: warning: ")]
    as_promised = code == MENDABLE and len(sentences) == 1 and str(path.parent) in said and sentences[0].isprintable()
    return None if as_promised else f"exit code {code}: {said}"


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def fuzz(kind: Kind, folder: Path, count: int, seed: int) -> dict[str, Any]:
    folder.mkdir()
    path = kind.make(folder)
    _, said, whole = outcome(kind.read, path)
    assert whole is not None, said
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        # Only now, because the libraries that read files have to be imported first.
        limit_memory()
    counts = Counter(read=0, refused=0)
    problems = []
    for number, copy in enumerate(damaged_copies(kind.take(path), count, seed)):
        # A new file, because HDF5 identifies files by their place on the disk.
        path.unlink()
        kind.put(copy, path)
        # Without a Python handler, which would wait for a hanging library, the signal ends the process.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        found = outcome(kind.read, path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts["read" if found[0] == 0 else "refused"] += 1
        problem = wrong(path, found, whole if kind.has_checksums else None)
        if problem:
            problems.append(f"copy {number}: {problem}")
    return {**counts, "problems": problems}


def main(folder: Path, count: int, seed: int, names: Sequence[str]) -> None:
    for name in names:
        print(json.dumps({"kind": name}), flush=True)
        print(json.dumps(fuzz(KINDS[name], folder / name, count, seed)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
