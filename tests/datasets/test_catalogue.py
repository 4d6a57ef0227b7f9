import gc
import hashlib
import http.server
import threading
import warnings
from pathlib import Path

import originals
import pytest

from drkm import datasets
from drkm.datasets import DatasetError, _catalogue, downloads

CONTENT = b"pictures"


@pytest.fixture(autouse=True)
def collected():
    """Collect garbage here: closing the sockets of unfinished answers gives warnings."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def server(tmp_path):
    """A web server on this machine, so that downloads are tested without the internet."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file.bin").write_bytes(CONTENT)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path / "served"))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def remote(url, name="file.bin", content=CONTENT):
    return downloads.RemoteFile(name, f"{url}/{name}", "sha256:" + hashlib.sha256(content).hexdigest())


def test_download_fetches_once_and_checks(server, folder, capsys):
    pytest.importorskip("pooch")
    path = downloads.fetch(remote(server), folder)
    assert path.read_bytes() == CONTENT
    # An intact file is kept, even if the server is gone.
    assert downloads.fetch(remote("http://127.0.0.1:9"), folder) == path


def test_download_replaces_a_damaged_file(server, folder):
    pytest.importorskip("pooch")
    folder.mkdir()
    (folder / "file.bin").write_bytes(b"damaged")
    assert downloads.fetch(remote(server), folder, progress=False).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"url": "http://127.0.0.1:9"}, "could not be downloaded"),
        ({"name": "nothing.bin"}, "could not be downloaded"),
        ({"content": b"other"}, "arrived damaged"),
    ],
)
def test_failed_downloads_say_where_to_put_the_file(server, folder, change, sentence):
    pytest.importorskip("pooch")
    file = remote(**({"url": server} | change))
    with pytest.raises(DatasetError, match=sentence) as caught:
        downloads.fetch(file, folder, progress=False)
    for part in (file.url, str(folder / file.name), file.checksum, "offline"):
        assert part in str(caught.value)
    assert not (folder / file.name).exists()


def test_a_folder_that_cannot_be_made_is_refused(server, tmp_path):
    pytest.importorskip("pooch")
    (tmp_path / "blocked").write_text("a file, not a folder")
    with pytest.raises(DatasetError, match="could not be downloaded"):
        downloads.fetch(remote(server), tmp_path / "blocked" / "data", progress=False)


def test_without_pooch_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DatasetError, match=r"install drkm\[data\], or place http"):
        downloads.fetch(remote("http://127.0.0.1:9"), folder)


def test_download_takes_all_files_of_a_dataset(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(downloads, "fetch", lambda file, where, progress: asked.append(file.name) or where / file.name)
    paths = datasets.download("smallnorb")
    assert len(asked) == 6
    assert all(path.parent == folder for path in paths)
    with pytest.raises(
        ValueError, match="unknown name 'mnist', allowed are dsprites, noisy_dsprites, cars3d, smallnorb"
    ):
        datasets.download("mnist")


def test_list_tells_what_is_there(folder):
    names = [info.name for info in datasets.list_datasets()]
    assert names == ["dsprites", "noisy_dsprites", "cars3d", "smallnorb"]
    assert all(info.present() == [] for info in datasets.list_datasets())
    folder.mkdir()
    (folder / "cars3d_64.npz").write_bytes(b"")
    assert [info.name for info in datasets.list_datasets() if info.present()] == ["cars3d"]


def test_verify_tells_ok_missing_and_damaged_apart(folder, monkeypatch):
    folder.mkdir()
    info = _catalogue.DATASETS["cars3d"]
    file = remote("http://127.0.0.1:9", info.files[0].name)
    monkeypatch.setitem(_catalogue.DATASETS, "cars3d", _catalogue.DatasetInfo(**{**vars(info), "files": (file,)}))

    def states():
        return {check.path.name: check.state for check in datasets.verify("cars3d")}

    assert states() == {file.name: "missing"}
    assert datasets.verify("cars3d")[0].message == f"download it, or place {file.url} there"
    (folder / "cars3d_64.npz").write_bytes(b"damaged")
    assert datasets.verify("cars3d")[0].message == "cars3d_64.npz is read in its place"
    (folder / file.name).write_bytes(b"damaged")
    (folder / "cars3d_64.npz").write_bytes(b"damaged")
    assert states() == {file.name: "damaged", "cars3d_64.npz": "damaged"}
    (folder / file.name).write_bytes(CONTENT)
    originals.compact_npz(folder / "cars3d_64.npz", ("elevation", "azimuth", "object_type"), (2, 2, 1), (64, 64, 3))
    assert states() == {file.name: "ok", "cars3d_64.npz": "ok"}
    assert all(check.state == "missing" for check in datasets.verify("dsprites"))
    assert len(datasets.verify()) == 1 + 1 + 2 + 6


def test_checksums_are_whole():
    lengths = {"md5": 32, "sha256": 64}
    for info in datasets.list_datasets():
        for file in info.files:
            algorithm, digits = file.checksum.split(":")
            assert len(digits) == lengths[algorithm]
            assert file.url.endswith(file.name)


def test_data_folder_is_the_variable_else_the_cache_of_the_platform(monkeypatch):
    monkeypatch.setenv("DRKM_DATA", "/somewhere")
    assert datasets.data_dir() == Path("/somewhere")
    monkeypatch.delenv("DRKM_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setenv("LOCALAPPDATA", "/cache")
    for platform, expected in {
        "linux": "/cache/drkm",
        "win32": "/cache/drkm",
        "darwin": "Library/Caches/drkm",
    }.items():
        monkeypatch.setattr(downloads.sys, "platform", platform)
        assert datasets.data_dir().as_posix().endswith(expected)
