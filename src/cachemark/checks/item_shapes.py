"""The items that a server is filled with: lengths of keys and sizes of values."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from cachemark.host.engine_output import write_tape
from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.model.tape_header import read_header

# So many lengths are drawn; then they are repeated.
_MAX_DRAWN = 100_000
_PREFIX = b"cachemark-"
_PLAIN_DIGITS = 10


class ItemShapes(msgspec.Struct, frozen=True, kw_only=True):
    """The length of each item's key and the size of its value, in bytes, repeated."""

    key_bytes: list[int]
    value_bytes: list[int]

    @property
    def mean_bytes(self) -> float:
        """Key and value of an item, on average."""
        return sum(self.key_bytes) / len(self.key_bytes) + self.mean_value_bytes

    @property
    def mean_value_bytes(self) -> float:
        """The value of an item, on average."""
        return sum(self.value_bytes) / len(self.value_bytes)

    def value_size(self, number: int) -> int:
        """The size of an item's value."""
        return self.value_bytes[number % len(self.value_bytes)]

    def key(self, number: int) -> bytes:
        """The key of an item, which no other item has."""
        length = self.key_bytes[number % len(self.key_bytes)]
        if length < len(_PREFIX) + _PLAIN_DIGITS:
            return b"%0*d" % (length, number)
        return _PREFIX + b"%0*d" % (length - len(_PREFIX), number)

    def data_bytes(self, items: int) -> int:
        """The bytes of the keys and values of the first items."""
        whole, rest = divmod(items, len(self.key_bytes))
        sizes = [key + value for key, value in zip(self.key_bytes, self.value_bytes, strict=True)]
        return whole * sum(sizes) + sum(sizes[:rest])


def fixed_shapes(value_bytes: int, key_bytes: int = 20) -> ItemShapes:
    """Items that are all alike."""
    return ItemShapes(key_bytes=[key_bytes], value_bytes=[value_bytes])


def drawn_shapes(items: int, size: str, key_length: str) -> ItemShapes:
    """Items whose lengths follow the texts of --size and --key-length. Raises UsageError."""
    with temporary_folder() as folder:
        path = folder / "tape"
        words = ["--keys", str(min(items, _MAX_DRAWN)), "--ops", "1", "--mix", "set=1"]
        write_tape(path, *words, "--size", size, "--key-length", key_length)
        shapes = _of_tape(path)
    shortest = min(shapes.key_bytes)
    if shortest < len(str(items)):
        raise UsageError(
            f"--key-length {key_length}: {shortest} bytes are too short for {items:,} keys",
            f"at least {len(str(items))}",
        )
    return shapes


def _of_tape(path: Path) -> ItemShapes:
    header = read_header(path)
    count = header.key_count
    lengths = np.memmap(path, dtype="<u4", mode="r", offset=header.lengths_at, shape=(count,))
    ends = np.memmap(path, dtype="<u4", mode="r", offset=header.key_offsets_at, shape=(count + 1,))
    return ItemShapes(key_bytes=np.diff(ends).tolist(), value_bytes=lengths.tolist())
