"""Tables that ship with cachemark are read strictly."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cachemark.model.shipped_rows import shipped_rows


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


def test_rows_keep_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text('[[row]]\nname = "b"\n[[row]]\nname = "a"\n')
    assert shipped_rows(path, "row", Row) == (Row(name="b"), Row(name="a"))


@pytest.mark.parametrize(
    "text",
    ['[[row]]\nname = "a"\n[[rows]]\nname = "b"\n', '[[row]]\nname = "a"\nage = 1\n', ""],
    ids=["another table", "another field", "no table"],
)
def test_a_file_with_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(text)
    with pytest.raises(msgspec.ValidationError):
        shipped_rows(path, "row", Row)
