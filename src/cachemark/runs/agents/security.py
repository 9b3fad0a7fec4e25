"""TLS with certificates on both sides, as Dask and plain sockets want it."""

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from distributed.security import Security

from cachemark.host.temporary import temporary_folder
from cachemark.model.hosts import Hosts
from cachemark.runs.agents.certificates import COORDINATOR, certificate_files, write_certificates

SCHEME = "tls"


def security(hosts: Hosts, name: str) -> Security:
    """The certificates that the coordinator or a host shows and accepts. Raises UsageError."""
    files = certificate_files(Path(hosts.tls), name)
    pair = {"cert": str(files.certificate), "key": str(files.key)}
    parts = {
        f"tls_{role}_{what}": path
        for role in ("scheduler", "worker", "client")
        for what, path in pair.items()
    }
    return Security(require_encryption=True, tls_ca_file=str(files.authority), **parts)


def tls_context(hosts: Hosts, name: str) -> ssl.SSLContext:
    """The same for a plain socket that connects to the coordinator. Raises UsageError."""
    files = certificate_files(Path(hosts.tls), name)
    context = ssl.create_default_context(cafile=str(files.authority))
    # The authority is ours alone, so any certificate of it is a party of these hosts.
    context.check_hostname = False
    context.load_cert_chain(files.certificate, files.key)
    return context


@contextmanager
def with_certificates(hosts: Hosts) -> Generator[Hosts]:
    """The same hosts with the file's certificates, or new ones until the end of the run."""
    if hosts.tls:
        yield hosts
        return
    with temporary_folder() as folder:
        certificates = folder / "certs"
        write_certificates(certificates, [COORDINATOR, *(host.name for host in hosts.hosts)])
        yield msgspec.structs.replace(hosts, tls=str(certificates))
