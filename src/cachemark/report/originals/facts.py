"""The machine, versions, defaults and limits of a suite's original, beside a run's. Pure."""

from collections.abc import Callable, Sequence

from cachemark.model.client_name import parse_client_name
from cachemark.model.outcome import Outcome
from cachemark.model.plan import NO_SERVER
from cachemark.model.published import Fact, published_files
from cachemark.model.run_header import RunHeader
from cachemark.report.model import Section

_ABSENT = "–"


def sections(header: RunHeader, outcomes: Sequence[Outcome]) -> list[Section]:
    """A section with a row for each fact; none if the run is of no suite with an original."""
    files = published_files(header.experiment.name)
    facts = [(file.page, fact) for file in files for fact in file.fact]
    if not facts:
        return []
    page, _ = facts[0]
    return [
        Section(
            title="The original's setting, beside this run's",
            columns=["what", "then", "here"],
            rows=[[fact.what, fact.then, _here(fact, header, outcomes)] for _, fact in facts],
            notes=[f"then: {page.title}, {page.version}, in its own words"],
            prose=True,
        )
    ]


def _here(fact: Fact, header: RunHeader, outcomes: Sequence[Outcome]) -> str:
    if fact.now:
        return fact.now
    name, _, of = fact.here.partition(":")
    found = FACTS[name](header, outcomes, of)
    return "; ".join(dict.fromkeys(filter(None, found))) or _ABSENT


def _client_versions(outcomes: Sequence[Outcome], client: str) -> list[str]:
    workers = [
        outcome.worker
        for outcome in outcomes
        if outcome.worker and parse_client_name(outcome.trial.cell.client).id == client
    ]
    return [worker.library_version for worker in workers]


def _runtimes(outcomes: Sequence[Outcome], language: str) -> list[str]:
    workers = [outcome.worker for outcome in outcomes if outcome.worker]
    return [worker.runtime for worker in workers if worker.language == language]


def _servers(outcomes: Sequence[Outcome]) -> list[str]:
    known = [outcome.server for outcome in outcomes if outcome.server]
    return [f"{server.kind} {server.version}".strip() for server in known]


def _places(header: RunHeader, outcomes: Sequence[Outcome]) -> list[str]:
    if header.hosts:
        return ["on hosts of its own"]
    return [
        server if server.startswith("remote:") else "on this machine" for server in _named(outcomes)
    ]


def _named(outcomes: Sequence[Outcome]) -> list[str]:
    names = [outcome.trial.cell.server for outcome in outcomes]
    return [name for name in names if name != NO_SERVER]


# Name of `Fact.here` → the values of a run; what follows a colon in the name is the last argument.
FACTS: dict[str, Callable[[RunHeader, Sequence[Outcome], str], list[str]]] = {
    "cpu": lambda header, _, __: [f"{header.host.cpu_model}, {header.host.cpus} CPUs"],
    "memory": lambda header, _, __: [f"{header.host.memory_bytes / 2**30:.0f} GiB"],
    "system": lambda header, _, __: [f"{header.host.system}, Linux {header.host.kernel}"],
    "command": lambda _, outcomes, __: _named(outcomes),
    "server": lambda _, outcomes, __: _servers(outcomes),
    "place": lambda header, outcomes, _: _places(header, outcomes),
    "runtime": lambda _, outcomes, language: _runtimes(outcomes, language),
    "client": lambda _, outcomes, client: _client_versions(outcomes, client),
}
