"""The content of a page, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import torch

from drkm import ConstrDRKM
from drkm.explorer import Subject, page, record
from drkm.explorer.colouring import OTHERS, labelled
from drkm.explorer.content import Content
from drkm.explorer.details import Details, anomalies
from drkm.explorer.packing import MISSING, packed, quantised
from drkm.inputs.preparation import Preparation
from explorer.subjects import HOSTILE, digits, new_digits, wine


def unpacked(part: dict) -> np.ndarray:
    values = np.frombuffer(zlib.decompress(base64.b64decode(part["data"])), dtype=f"<{part['type']}")
    return values.reshape(part["shape"])


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.inside: list[str] = []
        self.within = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append("")
        self.within = True

    def handle_endtag(self, tag):
        self.within = False

    def handle_data(self, data):
        if self.within:
            self.inside[-1] += data

    def texts(self, tag: str) -> list[str]:
        return [text for (name, _), text in zip(self.elements, self.inside, strict=True) if name == tag]


@pytest.fixture(scope="module")
def images():
    return digits()


@pytest.fixture(scope="module")
def table():
    return wine(HOSTILE)


def test_numbers_are_stored_to_half_a_step_and_missing_ones_are_missing():
    values = np.random.RandomState(0).randn(50, 3) * [1, 1e6, 0]
    values[4, 0] = np.nan
    part = quantised(values)
    stored = unpacked(part)
    assert stored[0, 4] == MISSING
    back = np.array(part["low"])[:, None] + np.array(part["step"])[:, None] * stored
    error = np.abs(back.T - values)[~np.isnan(values)]
    assert (error <= np.broadcast_to(np.array(part["step"]) * 0.501 + 1e-12, values.shape)[~np.isnan(values)]).all()


def test_an_array_that_a_page_cannot_hold_is_refused_and_others_arrive_whole():
    values = np.arange(12, dtype=np.uint32).reshape(3, 4)
    np.testing.assert_array_equal(unpacked(packed(values)), values)
    with pytest.raises(StopIteration):
        packed(np.zeros(3, dtype=complex))


def test_few_different_entries_are_classes_and_many_numbers_are_numbers():
    classes = labelled("digit", [10, 9, 9])
    assert (classes["kind"], classes["classes"]) == ("classes", ["9", "10"])
    assert unpacked(classes["values"]).tolist() == [1, 0, 0]
    assert labelled("size", np.linspace(0, 1, 50))["kind"] == "numbers"
    assert labelled("name", ["b", "a", "b"])["classes"] == ["a", "b"]


def test_classes_with_similar_numbers_stay_apart():
    assert labelled("site", [1000001, 1000002])["classes"] == ["1000001", "1000002"]
    assert labelled("share", [0.1234567, 0.12345671])["classes"] == ["0.1234567", "0.12345671"]


def test_the_rarest_of_many_classes_are_shown_as_one():
    entries = [f"class {i}" for i in range(50)] + ["class 49"]
    found = labelled("many", entries)
    assert len(found["classes"]) == 35
    assert found["classes"][-1] == OTHERS
    assert "class 49" in found["classes"]


def test_the_record_holds_the_codes_and_reconstructions_of_the_model(images):
    found = json.loads(json.dumps(record(images), allow_nan=False))
    part = found["codes"]
    codes = np.array(part["low"])[:, None] + np.array(part["step"])[:, None] * unpacked(part)
    np.testing.assert_allclose(codes.T, images.model.codes_, atol=2e-5)
    expected = np.clip(images.model.denoise(images.training), 0, 1) * 255
    assert np.abs(unpacked(found["sample"]["reconstruction"]) - expected).max() <= 255 / 63 / 2 + 1
    assert [layer["components"] for layer in found["model"]["layers"]] == [6, 3]
    assert found["model"]["converged"] is True
    assert found["reference"] is None


def test_strips_are_what_traverse_gives(images):
    content = Content(images)
    found = content.strips.record()
    base = found["bases"][0]
    row, steps = base["row"], found["steps"]
    for code, (layer, index) in enumerate([(1, 0), (1, 5), (2, 1)], start=0):
        column = [0, 5, 7][code]
        expected = images.model.traverse(layer, index, content.strips.values[column], base=row)
        shown = unpacked(base["strips"])[column]
        assert shown.shape == (steps, 64)
        assert np.abs(shown - np.clip(expected, 0, 1) * 255).max() <= 255 / 63 / 2 + 1


def test_the_first_base_is_the_typical_sample_and_others_are_those_of_classes(images):
    bases = Content(images).strips.bases
    codes = images.model.codes_
    assert next(iter(bases.values())) == np.linalg.norm(codes - codes.mean(axis=0), axis=1).argmin()
    assert any("digit" in name for name in bases)


def test_the_samples_that_sliders_begin_at_are_whole_in_a_page_that_has_little_room(table, monkeypatch):
    from drkm.explorer import details

    monkeypatch.setattr(details, "TABLE_BYTES", 2 * 4 * 13 * 4)
    content = Content(table)
    shown = unpacked(content.record()["sample"]["rows"])
    assert set(content.strips.bases.values()) <= set(shown.tolist())
    assert len(shown) < 10


def test_anomalies_of_a_table_are_errors_in_deviations(table):
    values = table.preparation.undo(table.samples)
    error = (table.preparation.undo(table.model.denoise(table.samples)) - values) / values.std(axis=0)
    np.testing.assert_allclose(anomalies(table, Details(table)), np.sqrt((error**2).mean(axis=1)), rtol=1e-9)


def test_new_samples_have_training_samples_beside_them_and_strange_ones_are_marked():
    subject = new_digits()
    found = record(subject)
    assert found["training"] is False
    assert unpacked(found["reference"]["codes"]).shape == (120, 9)
    np.testing.assert_allclose(unpacked(found["reference"]["codes"]), subject.model.codes_, atol=1e-6)
    assert unpacked(found["reference"]["original"]).shape == (120, 64)


def test_training_data_that_are_given_again_are_known_as_such(images):
    again = Subject(images.model, np.array(images.training), images.preparation)
    assert again.is_training
    other = np.array(images.training)
    other[3, 20] += 0.5
    assert not Subject(images.model, other, images.preparation).is_training


@pytest.mark.parametrize("convert", [np.array, torch.tensor, pd.DataFrame, np.ndarray.tolist])
def test_samples_may_be_of_any_kind_that_models_take(convert):
    expected = new_digits()
    found = Subject(expected.model, convert(expected.rows), expected.preparation, expected.title)
    assert record(found) == record(expected)


@pytest.mark.filterwarnings("error")
def test_features_have_the_names_of_the_frame_that_the_model_was_fitted_to():
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), columns=["load", "cpu", "detach"])
    model = ConstrDRKM((2, 1)).fit(frame)
    for rows in (None, frame, frame[:9]):
        assert record(Subject(model, rows))["sample"]["columns"] == ["load", "cpu", "detach"]
    assert Subject(model, columns=["a", "b", "c"]).features == ["a", "b", "c"]
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        Subject(model, frame[["cpu", "load", "detach"]])


def test_work_and_room_are_bounded(table, monkeypatch):
    from drkm.explorer import details

    monkeypatch.setattr(details, "WORK", 20 * 178 * 23 * 50)
    monkeypatch.setattr(details, "TABLE_BYTES", 2 * 4 * 13 * 20)
    found = Details(table)
    scores = anomalies(table, found)
    assert np.isfinite(scores).sum() == len(found.rows) == 50
    held = unpacked(found.record()["rows"])
    assert 10 <= len(held) <= 20
    assert np.nanargmax(scores) in held


@pytest.mark.parametrize("shape", [(200, 120), (100, 100, 3)])
def test_large_images_are_shown_smaller(shape):
    rng = np.random.RandomState(0)
    X = rng.rand(12, *shape)
    subject = Subject(ConstrDRKM(2).fit(X.reshape(12, -1)), preparation=Preparation(shape=shape, white=1.0))
    height, width, channels = subject.picture_shape
    assert max(height, width) <= 96
    shown = subject.pictures(subject.samples).reshape(12, height, width, channels)
    blocks = X[:, : subject.shrink, : subject.shrink].reshape(12, -1, channels).mean(axis=1)
    np.testing.assert_allclose(shown[:, 0, 0], blocks * 255, rtol=1e-6)


def test_no_text_of_the_data_becomes_markup(table):
    shown = record(table)
    text = page(shown)
    reader = Reader(text)
    assert [tag for tag, _ in reader.elements].count("script") == 2
    assert [tag for tag, _ in reader.elements].count("img") == 0
    assert reader.texts("title") == [f"{HOSTILE}: drkm explorer"]
    assert json.loads(reader.texts("script")[0]) == json.loads(json.dumps(shown))


def test_the_policy_names_the_only_script_and_the_only_style(table):
    reader = Reader(page(record(table)))
    meta = next(a for tag, a in reader.elements if tag == "meta" and "http-equiv" in a)
    policy = dict(part.strip().split(" ", 1) for part in meta["content"].split(";"))
    assert policy["default-src"] == policy["connect-src"] == "'none'"
    (style,), script = reader.texts("style"), reader.texts("script")[1]
    for directive, held in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(held.encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    attributes = [name for _, given in reader.elements for name in given]
    assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text_without_data(reader))


def text_without_data(reader: Reader) -> str:
    return reader.texts("style")[0] + reader.texts("script")[1] + str(reader.elements)


def test_labels_must_be_as_many_as_samples(images):
    with pytest.raises(ValueError, match=r"^digit: expected 120 entries, one per sample, got 3$"):
        Subject(images.model, preparation=images.preparation, labels={"digit": [1, 2, 3]})


def test_a_model_of_a_precomputed_kernel_has_nothing_to_show():
    X = np.random.RandomState(0).randn(20, 3)
    model = ConstrDRKM(2, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="a precomputed kernel has no samples to show"):
        Subject(model)


def test_the_decoder_gives_what_inverse_transform_gives(images):
    codes = images.model.codes_[:5] * 1.1
    np.testing.assert_allclose(images.model.decoder()(codes), images.model.inverse_transform(codes), atol=1e-9)
