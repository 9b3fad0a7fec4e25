"""The servers and libraries of the five original benchmarks that users get from their authors.

This file has only the versions that cachemark was tried with. The message about a missing server or
client says where to get it, and how to tell cachemark its place.
"""

import msgspec

from cachemark.endpoints.client_readiness import query_worker
from cachemark.endpoints.clients import Client
from cachemark.endpoints.servers import kinds, readiness


class Original(msgspec.Struct, frozen=True):
    """A kind of server or a client, and the version of its software that was tried."""

    name: str
    tried: str


ORIGINALS = (
    Original("quickcached", "2.0.2, commit 081f8fd"),
    Original("emcache", "commit e681301"),
    Original("php/constcache", "0.4, commit 7348740"),
    Original("ruby/memcache-client", "1.8.5, commit a014dc2"),
    Original("ruby/memcached", "tag memcached-1.8.0"),
    Original("ruby/memcached_rails", "tag memcached-1.8.0"),
    Original("ruby/memcached_store", "tag v2.3.4, with memcached 1.8.0"),
    Original(
        "ruby/dalli_store", "tag v2.7.10, with activesupport of the tag v5.2.8.1 of rails/rails"
    ),
)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An original on this machine. `text`: how to name it; or the reason why it is missing."""

    ready: bool
    text: str


def found_here(original: Original, clients: dict[str, Client]) -> Found:
    """Look for an original on this machine."""
    if "/" not in original.name:
        kind = next(kind for kind in kinds() if kind.name == original.name)
        state = readiness(kind)
        if state == "ready":
            return Found(ready=True, text=f"--server {kind.name}")
        return Found(ready=False, text=f"{state} (tried: {original.tried})")
    client = clients.get(original.name)
    if client is None:
        return Found(ready=False, text="this folder of workers does not have it")
    answer = query_worker(client)
    if answer.ready is None:
        text = f"{answer.state}; its source is {client.home} (tried: {original.tried})"
        return Found(ready=False, text=text)
    text = f"--client {client.id}: {answer.ready.library} {answer.ready.library_version}"
    return Found(ready=True, text=text)
