"""TLS with certificates on both sides, as Dask and plain sockets want it."""

from __future__ import annotations

import ssl
from pathlib import Path

from distributed.security import Security

from cachemark.agents.certificates import certificate_files
from cachemark.model.hosts import Hosts


def security(hosts: Hosts, name: str) -> Security | None:
    """What the coordinator or a host shows and accepts; None without TLS. Raises UsageError."""
    if not hosts.tls:
        return None
    files = certificate_files(Path(hosts.tls), name)
    pair = {"cert": str(files.certificate), "key": str(files.key)}
    parts = {
        f"tls_{role}_{what}": path
        for role in ("scheduler", "worker", "client")
        for what, path in pair.items()
    }
    return Security(require_encryption=True, tls_ca_file=str(files.authority), **parts)


def tls_context(hosts: Hosts, name: str) -> ssl.SSLContext | None:
    """The same for a plain socket that connects to the coordinator; None without TLS."""
    if not hosts.tls:
        return None
    files = certificate_files(Path(hosts.tls), name)
    context = ssl.create_default_context(cafile=str(files.authority))
    # The authority is ours alone, so any certificate of it is a party of these hosts.
    context.check_hostname = False
    context.load_cert_chain(files.certificate, files.key)
    return context


def protocol(hosts: Hosts) -> str:
    """The scheme of Dask's addresses."""
    return "tls" if hosts.tls else "tcp"
