"""Runs the dialogues of dialogues.toml: requests, and the replies that they must get."""

import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.probe.raw_connection import AnswerError, Patience, RawConnection
from cachemark.model.audit import ProbeResult
from cachemark.model.shipped_rows import shipped_rows

_HELD = {"a": b"hello", "b": b"hello", "n": b"10"}


class ProbedServer:
    """The server that is probed: its address, and whether it needs a space before line ends."""

    def __init__(self, address: str, space: bytes = b"") -> None:
        self.address = address
        self.space = space
        self._patience = Patience()
        # A server that already runs may hold keys of others.
        self._token = secrets.token_hex(6).encode()
        self._used = 0

    def connection(self) -> RawConnection:
        """A new connection. Raises AnswerError."""
        return RawConnection(self.address, self._patience)

    def key(self, name: str) -> bytes:
        """A key that no other check uses."""
        self._used += 1
        return b"cachemark-probe-%s-%d-%s" % (self._token, self._used, name.encode())

    def store(self, connection: RawConnection, key: bytes, value: bytes) -> None:
        """Store a value. Raises AnswerError."""
        request = b"set %s 0 0 %d%s\r\n%s\r\n" % (key, len(value), self.space, value)
        connection.ask(request, rb"STORED\r\n")

    @contextmanager
    def keys(self, names: list[str], long: tuple[str, ...] = ()) -> Generator[dict[str, bytes]]:
        """Keys by name; those in `long` have 250 bytes. The end of the context deletes them."""
        keys = {name: self.key(name) for name in names}
        keys |= {name: self.key(name).ljust(250, b"k") for name in long}
        try:
            yield keys
        finally:
            self._forget(list(keys.values()))

    def _forget(self, keys: list[bytes]) -> None:
        """Delete keys, as far as the server allows it."""
        for key in keys:
            try:
                with self.connection() as connection:
                    connection.ask(
                        b"delete %s%s\r\n" % (key, self.space), rb"(DELETED|NOT_FOUND)\r\n"
                    )
            except AnswerError:
                return


def talked(name: str, talk: Callable[[], None], means: str, *excludes: str) -> ProbeResult:
    """The result of a check: fit, or, if `talk` raises AnswerError, unfit as the caller says."""
    try:
        talk()
    except AnswerError as error:
        return unfit(name, str(error), means, *excludes)
    return ProbeResult(name=name, fit=True, seen="as it should be")


def unfit(name: str, seen: str, means: str, *excludes: str) -> ProbeResult:
    """The result of a check where a server is unlike memcached."""
    return ProbeResult(name=name, fit=False, seen=seen, means=means, excludes=list(excludes))


class Dialogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check. The head of dialogues.toml explains the fields."""

    name: str
    steps: list[tuple[str, str]]
    means: str
    excludes: list[str] = []
    quirk: str = ""

    def run(self, probed: ProbedServer) -> ProbeResult:
        """Run the dialogue with a server."""
        found = talked(self.name, lambda: self._talk(probed), self.means, *self.excludes)
        return found if found.fit else msgspec.structs.replace(found, quirk=self.quirk)

    def _talk(self, probed: ProbedServer) -> None:
        text = "".join(sent for sent, _ in self.steps)
        long = ("k250",) if "{k250}" in text else ()
        with probed.keys([n for n in "abnx" if f"{{{n}}}" in text], long) as keys:
            words = {**keys, "_": probed.space}
            with probed.connection() as connection:
                for name in keys:
                    if name in _HELD:
                        probed.store(connection, keys[name], _HELD[name])
                for sent, wanted in self.steps:
                    request = _filled(sent, words)
                    try:
                        match = connection.ask(request, _filled(wanted, words))
                    except AnswerError as error:
                        raise AnswerError(f"{sent.split(' ')[0].strip()}: {error}") from error
                    words |= match.groupdict()


def _filled(text: str, words: dict[str, bytes]) -> bytes:
    filled = text.encode("latin-1")
    for name, word in words.items():
        filled = filled.replace(b"{%s}" % name.encode(), word)
    return filled


def dialogues() -> tuple[Dialogue, ...]:
    """All rows of the table."""
    return shipped_rows(Path(__file__).with_name("dialogues.toml"), "check", Dialogue)
