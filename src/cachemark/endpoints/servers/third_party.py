"""Memcached's relatives, each a row of third_party.toml: a program that is told its port."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.port_process import Launch, Place, running_program, which
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import Missing, ServerSpec, positive, read_options
from cachemark.model.errors import UsageError

FOLDER = Path(__file__).parent


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option of a server; one without a default must be given."""

    form: str
    default: str | None = None


class Original(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table; what each field means stands at its head."""

    name: str
    summary: str
    program: str
    remedy: str
    command: list[str]
    options: dict[str, Option] = {}
    files: dict[str, str] = {}
    needs: str = ""
    setup: str = ""
    ready_s: float = 0
    quirks: list[str] = []
    note: str = ""

    @property
    def form(self) -> str:
        """How it is named."""
        given = [f"{n}={o.form}" for n, o in self.options.items() if o.default is None]
        more = [f"{n}={o.form}" for n, o in self.options.items() if o.default is not None]
        inside = ",".join(given) + (f"[{',' if given else ''}{','.join(more)}]" if more else "")
        return f"{self.name}:{inside}" if given else f"{self.name}[:{inside[1:]}"

    def parse(self, text: str, details: str) -> ServerSpec:
        """Read its options. Raises UsageError."""
        options = read_options(text, details, tuple(self.options))
        spec = ServerSpec(text=text, kind=self.name, details=details, options=options)
        for name, option in self.options.items():
            if option.default is None and name not in options:
                raise UsageError(f"server {text!r}: no {name}=", f"write {self.form}")
            if option.form == "N":
                positive(spec, name)
            elif "|" in option.form and options.get(name, option.default) not in option.form.split(
                "|"
            ):
                raise UsageError(
                    f"server {text!r}: {name}={options[name]}", f"{name} is {option.form}"
                )
        return spec

    def missing(self, spec: ServerSpec) -> Missing | None:
        """Why it cannot be started here."""
        program = self._fill(self.program, spec)
        if not which(program):
            return Missing(reason=f"{program} is not on this machine", remedy=self.remedy)
        if self.needs and not (FOLDER / self.needs).exists():
            return Missing(
                reason=f"{self.name} is not set up",
                remedy=f"cachemark servers --setup {self.name}",
            )
        return None

    @contextmanager
    def running(self, spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
        """Run it on a free port. Raises TrialError, UnsupportedError."""
        if absent := self.missing(spec):
            raise absent.error()
        patience_s = max(ready_s, self.ready_s)

        def launch(place: Place) -> Launch:
            for name, text in self.files.items():
                (place.folder / name).write_text(self._fill(text, spec, place), encoding="utf-8")
            return Launch(command=[self._fill(word, spec, place) for word in self.command])

        with running_program(self.name, launch, cpus, patience_s, tuple(self.quirks)) as server:
            yield server

    def _fill(self, text: str, spec: ServerSpec, place: Place | None = None) -> str:
        values = {name: option.default or "" for name, option in self.options.items()}
        values |= spec.options
        values["here"] = str(FOLDER)
        if place:
            program = self._fill(self.program, spec)
            values["program"] = which(program) or program
            values["port"], values["port2"] = str(place.port), str(place.port2)
            values["folder"] = str(place.folder)
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: list[Original]


def originals() -> list[Original]:
    """All rows of the table."""
    return msgspec.toml.decode((FOLDER / "third_party.toml").read_bytes(), type=_Table).server
