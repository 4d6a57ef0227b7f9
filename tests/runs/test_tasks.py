import pytest

from drkm.datasets import DatasetError
from drkm.runs import data, tasks
from drkm.runs.configuration import Configuration
from drkm.runs.tasks import TASKS, Task, identify, perform

CARS = Configuration("probe", {"dataset": "cars3d"}, 0)


def key(run: Configuration) -> str:
    return identify(run).key


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    return tmp_path


def test_the_key_depends_on_task_parameters_seed_and_revision_and_on_nothing_else(monkeypatch):
    one = Configuration("probe", {"rounds": 1, "name": "a"}, 0)
    assert key(one) == key(Configuration("probe", {"name": "a", "rounds": 1}, 0))
    assert key(Configuration("probe", {"s": (1, 2)})) == key(Configuration("probe", {"s": [1, 2]}))
    others = [Configuration("probe", {"rounds": 2, "name": "a"}, 0), Configuration("probe", {"rounds": 1}, 0)]
    others.append(Configuration("probe", {"rounds": 1, "name": "a"}, 1))
    before = key(one)
    monkeypatch.setitem(TASKS, "probe", Task("drkm.runs._probe:probe", revision=2))
    assert len({before, key(one), *map(key, others)}) == 5


def test_the_key_depends_on_the_version_of_the_code(monkeypatch):
    before = key(Configuration("probe"))
    monkeypatch.setattr("drkm.runs.configuration.__version__", "99.0")
    assert key(Configuration("probe")) != before


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


def test_drawn_images_have_a_version_and_curves_need_none(folder):
    assert data.checksum("sprites") == "drawn 1"
    assert data.checksum("noisy_sprites") != data.checksum("sprites")
    assert data.checksum("square_spiral") == ""
    assert identify(Configuration("probe", {"rounds": 1})).data == ""


def test_drawn_sprites_are_loaded_without_files(folder):
    assert data.load("sprites").image_shape == (64, 64)
    assert data.load("noisy_sprites").image_shape == (64, 64, 3)


@pytest.mark.parametrize("name", ["cars3d", "smallnorb", "dsprites", "noisy_dsprites"])
def test_absent_data_are_one_sentence_that_says_how_to_get_them(name, folder):
    with pytest.raises(DatasetError, match=f"'drkm datasets download {name}'") as caught:
        identify(Configuration("probe", {"dataset": name}))
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match="unknown name 'cats', allowed are probe"):
        perform(Configuration("cats"))
    with pytest.raises(ValueError, match=r"unknown name 'cats', allowed are sprites, .*square"):
        identify(Configuration("probe", {"dataset": "cats"}))


def test_every_task_of_the_table_can_be_imported():
    for task in TASKS.values():
        assert callable(task.resolve())


def test_a_task_sees_lists_and_never_tuples(monkeypatch):
    monkeypatch.setattr("drkm.runs._probe.probe", lambda parameters, seed: {"kind": str(type(parameters["s"]))})
    assert tasks.perform(Configuration("probe", {"s": (1, 2)})) == {"kind": "<class 'list'>"}
