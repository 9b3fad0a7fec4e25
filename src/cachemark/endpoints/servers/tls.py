"""TLS between clients and a server: the server's options, and its certificates."""

from __future__ import annotations

import functools
import importlib.util
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachemark.model.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from cachemark.host.certificates import Authority, CertificatePair

YES, MUTUAL = "yes", "mutual"
# Options for the clients' check of the server and their own certificate; then the server's.
CLIENT_OPTIONS = ("tls", "tls_ca", "tls_name", "tls_client_cert", "tls_client_key")
OWN_OPTIONS = ("tls_cert", "tls_key")
_PAIRS = (("tls_cert", "tls_key"), ("tls_client_cert", "tls_client_key"))
# Options of a worker that are files.
_SENT = ("tls", "tls_client_cert", "tls_client_key")
_FILES = ("tls_ca", "tls_cert", "tls_key", "tls_client_cert", "tls_client_key")


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """How clients encrypt: PEM files, and the name that the certificate must have.

    `ca` has the certificates that they trust. Without a `name`, the certificate must name the
    address. `client_cert` and `client_key` are empty where the server asks for no certificate.
    """

    ca: str
    name: str = ""
    client_cert: str = ""
    client_key: str = ""

    def worker_options(self) -> dict[str, str]:
        """The options of a worker."""
        options = {
            "tls": self.ca,
            "tls_name": self.name,
            "tls_client_cert": self.client_cert,
            "tls_client_key": self.client_key,
        }
        return {name: value for name, value in options.items() if value}

    def contents(self) -> dict[str, str]:
        """The same options with the contents of files, for another host. Raises UsageError."""
        try:
            return {
                name: Path(value).read_text() if name in _SENT else value
                for name, value in self.worker_options().items()
            }
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"TLS: {error}", "they are PEM files") from error

    def context(self) -> ssl.SSLContext:
        """The same for a connection of this process. Raises UsageError for an unusable file."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.client_cert:
                context.load_cert_chain(self.client_cert, self.client_key)
        except OSError as error:
            files = ", ".join(filter(None, (self.ca, self.client_cert, self.client_key)))
            raise UsageError(f"TLS: {files}: {error}", "they are PEM files") from error
        return context


class ServerTls(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a server that cachemark starts, and how its clients encrypt.

    `client_ca` has the certificates that sign clients' certificates; empty: it asks for none.
    """

    cert: str
    key: str
    clients: Tls
    client_ca: str = ""


def check(text: str, options: dict[str, str], values: tuple[str, ...] = (YES,)) -> None:
    """Refuse options of TLS that contradict each other. Raises UsageError."""
    where = f"server {text!r}"
    if options.get("tls", YES) not in values:
        raise UsageError(f"{where}: tls={options['tls']}", f"tls is {' or '.join(values)}")
    given = [name for name in (*CLIENT_OPTIONS, *OWN_OPTIONS) if name in options]
    if given and not wanted(options):
        raise UsageError(f"{where}: {given[0]} without tls=yes", "write tls=yes as well")
    for pair in _PAIRS:
        alone = [name for name in pair if name in options]
        if len(alone) == 1:
            raise UsageError(f"{where}: {alone[0]} alone", f"TLS needs {' and '.join(pair)}")
    if given and options.get("unix") == "yes":
        raise UsageError(f"{where}: TLS on a Unix socket", "leave unix=yes out")
    for name in _FILES:
        if name in options and not Path(options[name]).is_file():
            raise UsageError(f"{where}: {name}: no such file", "it is a PEM file")
    if "tls_ca" in options or "tls_client_cert" in options:
        _clients(options, options.get("tls_ca", "")).context()


def wanted(options: dict[str, str]) -> bool:
    """Whether a server's options ask for TLS."""
    return "tls" in options or "tls_cert" in options


def missing_certificates() -> str:
    """Why this installation cannot make certificates; empty if it can."""
    if importlib.util.find_spec("cryptography") is None:
        return "cryptography is not installed (pip install 'cachemark[fleet]')"
    return ""


def of_remote(options: dict[str, str]) -> Tls | None:
    """How clients reach a server that runs already; None without TLS.

    Without `tls_ca` they trust this machine's certificates. Raises UsageError if it has none.
    """
    if not wanted(options):
        return None
    known = ssl.get_default_verify_paths()
    ca = options.get("tls_ca") or known.cafile or ""
    if not ca:
        raise UsageError("TLS: this machine has no file of certificates to trust", "name tls_ca")
    return _clients(options, ca)


def of_own(options: dict[str, str], address: str, folder: Path) -> ServerTls | None:
    """The files of a server that listens on an address; None without TLS.

    Makes the certificates that the options do not name, in the folder. Raises UnsupportedError if
    this installation cannot.
    """
    if not wanted(options):
        return None
    makes = "tls_cert" not in options or options.get("tls") == MUTUAL
    if makes and (missing := missing_certificates()):
        raise UnsupportedError(f"TLS: {missing}", "or name tls_cert and tls_key")
    cert, key = (options.get(name, "") for name in OWN_OPTIONS)
    ca = options.get("tls_ca", cert)
    if not cert:
        name = options.get("tls_name", address)
        cert, key = written_pair(folder, "server", _authority().pair(name))
        ca = ca or _authority_file(folder)
    if options.get("tls") != MUTUAL:
        return ServerTls(cert=cert, key=key, clients=_clients(options, ca))
    clients = _clients(options, ca)
    if not clients.client_cert:
        pair = written_pair(folder, "client", _authority().pair("cachemark"))
        clients = msgspec.structs.replace(clients, client_cert=pair[0], client_key=pair[1])
        return ServerTls(cert=cert, key=key, clients=clients, client_ca=_authority_file(folder))
    return ServerTls(cert=cert, key=key, clients=clients, client_ca=ca)


def _clients(options: dict[str, str], ca: str) -> Tls:
    return Tls(
        ca=ca,
        name=options.get("tls_name", ""),
        client_cert=options.get("tls_client_cert", ""),
        client_key=options.get("tls_client_key", ""),
    )


@functools.cache
def _authority() -> Authority:
    """One for all servers of this process, so that clients of a cluster trust one."""
    from cachemark.host.certificates import Authority  # noqa: PLC0415  # needs an extra package

    return Authority("cachemark")


def _authority_file(folder: Path) -> str:
    path = folder / "authority.pem"
    path.write_bytes(_authority().pem)
    return str(path)


def written(contents: Mapping[str, str], folder: Path) -> Tls | None:
    """Write another host's `contents` as files in the folder; None if they are empty."""
    if not contents:
        return None
    paths = dict(contents)
    for name in _SENT:
        if name in contents:
            path = folder / f"{name}.pem"
            path.touch(mode=0o600)
            path.write_text(contents[name])
            paths[name] = str(path)
    return _clients(paths, paths["tls"])


def written_pair(folder: Path, name: str, pair: CertificatePair) -> tuple[str, str]:
    """Write a certificate and its key, readable by this user only; the two paths."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    certificate.write_bytes(pair.certificate)
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return str(certificate), str(key)
