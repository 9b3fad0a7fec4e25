"""The clients and servers that can take part in runs on this machine."""

from collections.abc import Sequence

from cachemark.endpoints.clients import Client, matching_clients, parse_client, registry
from cachemark.endpoints.servers import kinds, parse_spec, readiness
from cachemark.host import process
from cachemark.model.errors import UsageError


def all_clients() -> dict[str, Client]:
    """The clients of this machine by id. Raises UsageError if the engine is missing."""
    return registry(process.binary_path())


def known_clients() -> dict[str, Client]:
    """The same; empty if the engine is missing."""
    try:
        return all_clients()
    except UsageError:
        return {}


def client_state(client: Client) -> str:
    """Whether the client's worker can be started. It is not: that would disturb a measurement."""
    lacking = client.missing().removeprefix(f"{client.id}: ")
    if not lacking:
        return "ready"
    return f"{lacking}: {client.setup}" if client.setup else lacking


def server_kinds() -> list[tuple[str, str, str, str]]:
    """Each kind of server: its name, summary and form, and its state here."""
    return [(kind.name, kind.summary, kind.form, readiness(kind)) for kind in kinds()]


def server_names() -> list[str]:
    """The names of all kinds of servers."""
    return [kind.name for kind in kinds()]


def named_clients(texts: Sequence[str]) -> list[str]:
    """The clients that these texts name, patterns replaced. Raises UsageError."""
    known = all_clients()
    names = list(matching_clients(texts, known))
    for name in names:
        parse_client(name, known)
    return names


def check_servers(texts: Sequence[str]) -> None:
    """Raise UsageError for a text that names no server."""
    for text in texts:
        parse_spec(text)
