"""Strange surroundings in which programs must do the same: table.toml has them."""

import signal
from pathlib import Path

import msgspec

from tests.conftest import ROOT

_TABLE = Path(__file__).with_name("table.toml")


class Surrounding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to start a command."""

    name: str
    launcher: list[str]
    ignored: str = ""
    blocked: str = ""
    slow: str = ""
    read_only: bool = False

    def command(self, folder: Path, words: list[str]) -> list[str]:
        """The words that start the command; `folder` is the play's own."""
        places = {"{folder}": str(folder), "{checkout}": str(ROOT)}
        return [*(places.get(word, word) for word in self.launcher), *words]

    def signal(self) -> signal.Signals | None:
        """The signal that the command inherits as ignored or blocked, if any."""
        name = self.ignored or self.blocked
        return signal.Signals[name] if name else None


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of `cachemark`."""

    arguments: list[str]
    status: tuple[int, ...] = (0,)
    same: bool = False
    sets_up: bool = False


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    surrounding: list[Surrounding]
    program: list[Program]


def _read() -> _Table:
    return msgspec.toml.decode(_TABLE.read_bytes(), type=_Table)


SURROUNDINGS = {row.name: row for row in _read().surrounding}
PROGRAMS = _read().program
