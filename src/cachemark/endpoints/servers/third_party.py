"""Third-party servers that speak memcached's protocol, each a row of third_party.toml."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cachemark.endpoints.servers.port_process import (
    LaunchCommand,
    LaunchResources,
    running_program,
    which,
)
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import (
    MEMORY_OPTION,
    MemoryModel,
    Missing,
    ServerSpec,
    check_memory,
    memory_mib,
    positive,
    read_options,
)
from cachemark.model.errors import UsageError
from cachemark.model.shipped_rows import shipped_rows
from cachemark.model.units import MIB

FOLDER = Path(__file__).parent
# The form of an option that is a size in bytes.
SIZE = "SIZE"


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option of a server. Without a default it is required."""

    form: str
    default: str | None = None


class ThirdPartyServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table. The head of the file explains the fields."""

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
        """The syntax in an experiment, such as `yrmcds[:threads=N,memory=N]`."""
        required = [f"{n}={o.form}" for n, o in self.options.items() if o.default is None]
        optional = [f"{n}={o.form}" for n, o in self.options.items() if o.default is not None]
        text = ",".join(required)
        text += f"[{',' if required else ''}{','.join(optional)}]" if optional else ""
        return f"{self.name}:{text}" if required else f"{self.name}[:{text[1:]}"

    @property
    def memory(self) -> MemoryModel | None:
        """How items fill it; None if it has no limit that can be set."""
        option = self.options.get(MEMORY_OPTION)
        return MemoryModel(default=option.default) if option and option.default else None

    def parse(self, text: str, details: str) -> ServerSpec:
        """Read the options. Raises UsageError."""
        options = read_options(text, details, tuple(self.options))
        spec = ServerSpec(text=text, kind=self.name, details=details, options=options)
        for name, option in self.options.items():
            if option.default is None and name not in options:
                raise UsageError(f"server {text!r}: no {name}=", f"write {self.form}")
            if option.form == "N":
                positive(spec, name)
            elif option.form == SIZE:
                check_memory(spec, least=MIB)
            elif "|" in option.form and options.get(name, option.default) not in option.form.split(
                "|"
            ):
                raise UsageError(
                    f"server {text!r}: {name}={options[name]}", f"{name} is {option.form}"
                )
        return spec

    def missing(self, spec: ServerSpec) -> Missing | None:
        """Why the server cannot be started here; None if it can."""
        program = self._fill(self.program, spec)
        if not which(program):
            return Missing(reason=f"{program} is not on this machine", remedy=self.remedy)
        if self.needs and not (FOLDER / self.needs).exists():
            return Missing(
                reason=f"{self.name} is not set up", remedy=f"cachemark servers --setup {self.name}"
            )
        return None

    @contextmanager
    def running(self, spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
        """Run the server on a free port. Raises TrialError, UnsupportedError."""
        if absent := self.missing(spec):
            raise absent.error()
        timeout_s = max(ready_s, self.ready_s)

        def launch(resources: LaunchResources) -> LaunchCommand:
            for name, text in self.files.items():
                (resources.folder / name).write_text(
                    self._fill(text, spec, resources), encoding="utf-8"
                )
            return LaunchCommand(
                command=[self._fill(word, spec, resources) for word in self.command]
            )

        quirks = tuple(self.quirks)
        with running_program(
            self.name, launch, cpus, timeout_s, host=spec.listen, quirks=quirks
        ) as server:
            yield server

    def _fill(self, text: str, spec: ServerSpec, resources: LaunchResources | None = None) -> str:
        values = {name: option.default or "" for name, option in self.options.items()}
        values |= spec.options
        values |= {
            name: str(memory_mib(values[name]))
            for name, option in self.options.items()
            if option.form == SIZE
        }
        values["here"] = str(FOLDER)
        if resources:
            program = self._fill(self.program, spec)
            values["program"] = which(program) or program
            values["host"] = resources.host
            values["port"], values["port2"] = str(resources.port), str(resources.port2)
            values["folder"] = str(resources.folder)
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text


def third_party_servers() -> tuple[ThirdPartyServer, ...]:
    """All rows of the table."""
    return shipped_rows(FOLDER / "third_party.toml", "server", ThirdPartyServer)
