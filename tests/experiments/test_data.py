import pytest

from drkm.datasets import DatasetError
from drkm.experiments import data
from drkm.experiments.registry import TASKS
from drkm.runs.configuration import Configuration

CARS = Configuration("disentangle", {"dataset": "cars3d"}, 0)


def key(run: Configuration) -> str:
    return TASKS.identify(run).key


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    return tmp_path


def test_the_key_depends_on_what_is_in_the_files_of_the_dataset(folder):
    file = folder / "cars3d_64.npz"
    file.write_bytes(b"one")
    first = key(CARS)
    file.write_bytes(b"two!")
    second = key(CARS)
    file.write_bytes(b"one")
    assert key(CARS) == first != second


def test_the_original_file_counts_where_there_are_both(folder):
    (folder / "cars3d_64.npz").write_bytes(b"compact")
    compact = data.checksum("cars3d")
    (folder / "nips2015-analogy-data.tar.gz").write_bytes(b"original")
    original = data.checksum("cars3d")
    (folder / "cars3d_64.npz").unlink()
    assert data.checksum("cars3d") == original != compact


def test_drawn_images_have_a_version_and_need_no_files(folder):
    assert data.checksum("sprites") == "drawn 1"
    assert data.checksum("noisy_sprites") != data.checksum("sprites")
    assert data.load("sprites").image_shape == (64, 64)
    assert data.load("noisy_sprites").image_shape == (64, 64, 3)


@pytest.mark.parametrize("name", ["cars3d", "smallnorb", "dsprites", "noisy_dsprites"])
def test_absent_data_are_refused_with_a_sentence_that_says_how_to_get_them(name, folder):
    with pytest.raises(DatasetError, match=f"'drkm datasets download {name}'") as caught:
        TASKS.identify(Configuration("disentangle", {"dataset": name}))
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_datasets_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown name 'cats', allowed are sprites, .*smallnorb"):
        TASKS.identify(Configuration("disentangle", {"dataset": "cats"}))


def test_every_task_can_be_imported():
    for task in TASKS.tasks.values():
        assert callable(task.resolve())
