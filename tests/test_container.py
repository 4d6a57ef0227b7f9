"""Tensors from a file are in separate memory, at addresses that do not depend on the file."""

from __future__ import annotations

import json
import os
import re
import struct
import tracemalloc

import numpy as np
import pytest
import torch

from drkm import ConstrDRKM, load
from drkm.files import container, tensor_file
from drkm.files.tensor_file import DTYPES
from drkm.machine import memory
from drkm.machine.memory import NotEnoughMemory
from versions import skip_before

SAMPLES = np.random.RandomState(0).randn(60, 5)


def read(path):
    return container.read(path, "thing", 1)


def write(path, tensors, **more):
    container.write(path, tensors, {"kind": "thing", "version": 1, **more})


def flipped(path, old: bytes, new: bytes):
    """Replace some bytes of the file by as many others."""
    content = path.read_bytes()
    assert old in content
    assert len(old) == len(new)
    path.write_bytes(content.replace(old, new))


def numbers(dtype):
    """Return eleven numbers of a type: an odd count, so that the next tensor begins at an odd place."""
    return (10 * torch.randn(11, dtype=torch.float64)).to(dtype)


TENSORS = {
    "double": torch.randn(7, 3, dtype=torch.float64),
    "single": torch.randn(5, generator=torch.Generator().manual_seed(0)),
    "half": torch.ones(3, dtype=torch.float16),
    "brain": torch.ones(3, dtype=torch.bfloat16),
    "whole": torch.arange(4),
    "short": torch.arange(3, dtype=torch.int16),
    "truth": torch.tensor([True, False, True]),
    "scalar": torch.tensor(2.5),
    "none": torch.zeros(0, 4),
    # all types that a file can hold
    **{f"state.{name}": numbers(getattr(torch, dtype)) for name, (dtype, _) in DTYPES.items()},
}


def test_tensors_begin_at_multiples_of_64_bytes_wherever_they_lie_in_the_file(tmp_path):
    for length in range(24):
        write(tmp_path / "file", TENSORS, padding="x" * length)
        found, header = read(tmp_path / "file")
        assert header["padding"] == "x" * length
        assert found.keys() == TENSORS.keys()
        for name, tensor in found.items():
            assert tensor.data_ptr() % 64 == 0, (name, length)
            assert tensor.untyped_storage().nbytes() == tensor.nbytes
            assert tensor.is_contiguous()
            assert torch.equal(tensor, TENSORS[name])
            assert tensor.dtype == TENSORS[name].dtype


def test_a_model_survives_the_end_of_its_file(tmp_path):
    path = tmp_path / "model"
    ConstrDRKM((3, 2)).fit(SAMPLES).save(path)
    model, expected = load(path), load(path).transform(SAMPLES)
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))
    np.testing.assert_array_equal(model.transform(SAMPLES), expected)
    os.truncate(path, 1000)
    np.testing.assert_array_equal(model.transform(SAMPLES), expected)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    write(tmp_path / "file", {"large": torch.zeros(5_000_000, dtype=torch.float64)})
    monkeypatch.setattr(memory, "available", lambda device: 30_000_000)
    with pytest.raises(NotEnoughMemory, match=re.escape(f"path: reading {tmp_path / 'file'} needs 40 MB")):
        read(tmp_path / "file")


def header_of(shape, offsets, dtype="F64", **more) -> bytes:
    return json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}}).encode()


@pytest.mark.parametrize(
    "header",
    [
        header_of([2], [0, 8]),
        header_of([10**15], [0, 8 * 10**15]),
        header_of([-1, -1], [0, 8]),
        header_of([1.0], [0, 8]),
        header_of([True], [0, 8]),
        header_of([0, 10**30], [0, 0]),
        header_of([1], [0, 8], dtype="F65"),
        header_of([1], [0, 8], more=1),
        header_of([1], [8, 16]),
        header_of([1] * 1000, [0, 8]),
        header_of([10**15] * 4000, [0, 8]),
        header_of(None, None),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"__metadata__": {"drkm": 3}}',
        b'{"__metadata__": []}',
    ],
    ids=lambda header: repr(header[:40]),
)
def test_headers_that_do_not_describe_their_file_are_refused(header, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(ValueError, match=re.escape(f"path: {path} is truncated or not a drkm thing")) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_header_longer_than_the_file_is_refused(length, tmp_path):
    (tmp_path / "file").write_bytes(struct.pack("<Q", length) + bytes(100))
    with pytest.raises(ValueError, match="truncated or not a drkm thing"):
        read(tmp_path / "file")


def test_a_header_nested_deeply_is_refused(tmp_path):
    path = tmp_path / "file"
    write(path, {"a": torch.ones(2)}, part="x" * 200_000)
    flipped(path, b"x" * 200_000, b"[" * 200_000)
    flipped(path, b'\\"' + b"[" * 200_000 + b'\\"', b"  " + b"[" * 200_000 + b"  ")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read(path)


PARTS = (
    *(
        "[],",
        "{},",
        '{"":1},',
        '{"":{}},',
        '{"":[]},',
        '{"":{"":{"":{}}}},',
        "[[[[[[[[]]]]]]]],",
        '"ab",',
        '"Āb",',
        "1.5,",
    ),
    *("300,", '{"":"ab"},', '{"a":[1.5,2.5]},'),
)


@pytest.mark.parametrize("part", PARTS)
def test_parsing_a_header_needs_the_memory_that_is_asked_for(part, monkeypatch):
    text, asked = f"[{part * (300_000 // len(part))}0]", []
    monkeypatch.setattr(tensor_file, "require", lambda needed, device, what: asked.append(needed))
    tracemalloc.start()
    tensor_file.parsed(text, "this")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken <= asked[0]


def test_keys_of_a_header_need_the_memory_that_is_asked_for(monkeypatch):
    for form in ('"%d":1', '"%x":[]', '"%d":{}', '"a long name of a tensor %d":1.5'):
        text, asked = f"{{{','.join(form % number for number in range(50_000))}}}", []
        monkeypatch.setattr(tensor_file, "require", lambda needed, device, what, asked=asked: asked.append(needed))
        tracemalloc.start()
        tensor_file.parsed(text, "this")
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken <= asked[0]


@pytest.mark.parametrize("inside", [False, True])
def test_a_header_that_does_not_fit_into_memory_once_it_is_parsed_is_refused(inside, tmp_path, monkeypatch):
    path, text = tmp_path / "file", f"[{'[],' * 1_000_000}0]"
    described = {"__metadata__": {"drkm": text}} if inside else {"a": json.loads(text)}
    header = json.dumps(described).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    monkeypatch.setattr(memory, "available", lambda device: 100_000_000)
    for use in (read, load):
        tracemalloc.start()
        with pytest.raises(NotEnoughMemory, match=re.escape(f"path: reading {path} needs ")):
            use(path)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < 20_000_000


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    write(tmp_path / "file", {"a": torch.ones(2)})
    before = (tmp_path / "file").read_bytes()
    monkeypatch.setattr(tensor_file, "LARGEST_HEADER", 10_000)
    sentence = "path: a file has room for 10 kB besides its tensors, got 20"
    with pytest.raises(ValueError, match=sentence):
        write(tmp_path / "file", {"a": torch.ones(2)}, more="x" * 20_000)
    assert (tmp_path / "file").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_flipped_bit_switches_checking_off(tmp_path):
    path = tmp_path / "file"
    write(path, {"a": torch.ones(2)})
    whole = path.read_bytes()
    for name in (b"checksums", b"has_checksums", b"drkm"):
        begin = whole.index(b'"' + name) if name != b"has_checksums" else whole.index(name)
        for bit in range(8 * (len(name) + 2)):
            damaged = bytearray(whole)
            damaged[begin + bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=re.escape(str(path))):
                read(path)


@pytest.mark.skipif(**skip_before("safetensors", "0.6"))
def test_the_library_of_the_format_reads_what_is_written(tmp_path):
    from safetensors import safe_open

    # Columns apart, and one tensor under two names.
    tensors = {**TENSORS, "turned": TENSORS["double"].T, "again": TENSORS["double"]}
    write(tmp_path / "file", tensors)
    with safe_open(tmp_path / "file", "pt") as file:
        assert sorted(file.keys()) == sorted(tensors)
        assert all(torch.equal(file.get_tensor(name), tensor) for name, tensor in tensors.items())
        assert json.loads(file.metadata()["drkm"])["kind"] == "thing"
    length = int.from_bytes((tmp_path / "file").read_bytes()[:8], "little")
    assert length % 8 == 0


def test_a_promise_of_checksums_that_are_not_there_is_damage(tmp_path):
    from safetensors.torch import save_file

    header = {"kind": "thing", "version": 1}
    save_file({"a": torch.ones(2)}, tmp_path / "first", {"drkm": json.dumps(header)})
    assert torch.equal(read(tmp_path / "first")[0]["a"], torch.ones(2))
    save_file({"a": torch.ones(2)}, tmp_path / "later", {"drkm": json.dumps({**header, "has_checksums": True})})
    with pytest.raises(ValueError, match="damaged"):
        read(tmp_path / "later")
