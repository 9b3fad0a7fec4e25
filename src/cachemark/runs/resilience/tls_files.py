"""The certificates of a server that speaks TLS, and of an impostor that takes its place."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachemark.endpoints.servers.spec import LOOPBACK
from cachemark.endpoints.servers.tls import OWN_OPTIONS, written_pair
from cachemark.model.faults import BadCertificate

if TYPE_CHECKING:
    from cachemark.host.certificates import CertificatePair

_OTHER_HOST = "another-host.test"


class TlsFiles(NamedTuple):
    """The certificate that clients trust, and the options of both servers for memcached."""

    trusted: Path
    good: dict[str, str]
    bad: dict[str, str]


def tls_files(folder: Path, bad: BadCertificate) -> TlsFiles:
    """Make the certificates of a server and of its impostor in a folder."""
    from cachemark.host.certificates import Authority  # noqa: PLC0415  # needs an extra package

    authority = Authority("cachemark")
    match bad:
        case "untrusted":
            pair = Authority("a stranger").pair(LOOPBACK)
        case "other-host":
            pair = authority.pair(_OTHER_HOST)
        case "expired":
            pair = authority.pair(LOOPBACK, ends_in=-timedelta(days=1))
    trusted = folder / "trusted.pem"
    trusted.write_bytes(authority.pem)
    good = _options(folder, "good", authority.pair(LOOPBACK))
    return TlsFiles(trusted, good, _options(folder, "bad", pair))


def _options(folder: Path, name: str, pair: CertificatePair) -> dict[str, str]:
    return dict(zip(OWN_OPTIONS, written_pair(folder, name, pair), strict=True))
