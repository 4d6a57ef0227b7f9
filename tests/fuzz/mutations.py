"""Damaged copies of a file, the same for the same seed."""

import random
from collections.abc import Callable, Iterator

#: numbers that are difficult for readers: signs, overflows, sizes of many gigabytes
ODD_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)

#: ten thousand copies in parts, one test per part, so that processes can share them; a part is a seed
COPIES_IN_PART, PARTS = 1000, range(1, 11)


def damaged_copies(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield copies of the data, each damaged in one or several ways and different from the data."""
    source = random.Random(seed)
    made = 0
    while made < count:
        copy = bytearray(data)
        for _ in range(source.choice((1, 1, 1, 2, 4))):
            source.choice(DAMAGES)(copy, source)
        if bytes(copy) != data:
            made += 1
            yield bytes(copy)


def _flip(copy: bytearray, source: random.Random) -> None:
    if copy:
        copy[_place(copy, source)] ^= 1 << source.randrange(8)


def _overwrite(copy: bytearray, source: random.Random) -> None:
    begin = _place(copy, source)
    length = source.choice((1, 2, 4, 16))
    copy[begin : begin + length] = source.randbytes(len(copy[begin : begin + length]))


def _odd_number(copy: bytearray, source: random.Random) -> None:
    begin = _place(copy, source)
    length = source.choice((1, 2, 4, 8))
    number = source.choice(ODD_NUMBERS) & ((1 << 8 * length) - 1)
    copy[begin : begin + length] = number.to_bytes(length, source.choice(("little", "big")))


def _truncate(copy: bytearray, source: random.Random) -> None:
    del copy[_place(copy, source) :]


def _remove(copy: bytearray, source: random.Random) -> None:
    begin = _place(copy, source)
    del copy[begin : begin + source.randint(1, 64)]


def _repeat(copy: bytearray, source: random.Random) -> None:
    begin = _place(copy, source)
    copy[begin:begin] = copy[begin : begin + source.randint(1, 64)]


def _insert(copy: bytearray, source: random.Random) -> None:
    begin = _place(copy, source)
    copy[begin:begin] = source.randbytes(source.randint(1, 16))


def _digit(copy: bytearray, source: random.Random) -> None:
    """Replace one digit of a number that is written as text."""
    digits = [index for index, byte in enumerate(copy[:4096]) if 48 <= byte <= 57]
    if digits:
        copy[source.choice(digits)] = source.choice(b"0123456789-e.")


def _place(copy: bytearray, source: random.Random) -> int:
    """Return a place to damage: in half of the cases near the beginning, where formats have their headers."""
    if not copy:
        return 0
    return source.randrange(min(len(copy), 512) if source.random() < 0.5 else len(copy))


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip,
    _overwrite,
    _odd_number,
    _truncate,
    _remove,
    _repeat,
    _insert,
    _digit,
)
