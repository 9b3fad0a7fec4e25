"""Reads a hosts file: which machines take part in a run, and what each is used for."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cachemark.host.process import parse_cpus
from cachemark.model.errors import DECODE_ERRORS, UsageError
from cachemark.model.hosts import Hosts, check_hosts


def load_hosts(path: Path) -> Hosts:
    """Read and check a hosts file. A relative `tls` is beside the file. Raises UsageError."""
    try:
        hosts = msgspec.toml.decode(path.read_bytes(), type=Hosts)
    except (OSError, *DECODE_ERRORS) as error:
        raise UsageError(
            f"{path}: {error}", "docs/hosts.md has an example and says what each setting means"
        ) from error
    try:
        check_hosts(hosts)
        for host in hosts.hosts:
            if host.cpus:
                parse_cpus(host.cpus)
    except UsageError as error:
        raise UsageError(f"{path}: {error.text}", error.remedy) from error
    if not hosts.tls:
        return hosts
    return msgspec.structs.replace(hosts, tls=str((path.parent / hosts.tls).resolve()))
