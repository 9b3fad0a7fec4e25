"""Reads a hosts file: the machines that take part in a run, and their roles."""

import os
from pathlib import Path

import msgspec

from cachemark.host.process import parse_cpus
from cachemark.model.errors import UsageError, refusing
from cachemark.model.experiment_file import read_toml
from cachemark.model.hosts import Hosts, check_hosts


def load_hosts(path: Path) -> Hosts:
    """Read and check a hosts file. A relative `tls` is beside the file. Raises UsageError."""
    text = read_toml(path)
    remedy = "docs/hosts.md has an example and explains each setting"
    with refusing(str(path), remedy, decodes=True):
        hosts = msgspec.toml.decode(text, type=Hosts)
    try:
        check_hosts(hosts)
        for host in hosts.hosts:
            if host.cpus:
                parse_cpus(host.cpus)
    except UsageError as error:
        raise UsageError(f"{path}: {error.text}", error.remedy) from error
    if not hosts.tls:
        return hosts
    return msgspec.structs.replace(hosts, tls=os.path.realpath(path.parent / hosts.tls))
