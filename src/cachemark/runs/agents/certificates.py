"""The certificates of a run over hosts: one for the coordinator and one for each agent.

Both sides of a connection show theirs, and accept only the same authority's. The authority's own
key is not stored: one more host needs new certificates for all.
"""

from pathlib import Path

import msgspec

from cachemark.host.atomic_file import made_folder, write_files
from cachemark.host.certificates import Authority
from cachemark.model.errors import UsageError, refusing

_ONLY_FOR_THE_OWNER = 0o600
_AUTHORITY = "ca.pem"
COORDINATOR = "coordinator"


class CertificateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that one party needs."""

    authority: Path
    certificate: Path
    key: Path


def certificate_files(folder: Path, name: str) -> CertificateFiles:
    """The files of the coordinator or of a host. Raises UsageError if one is missing."""
    files = CertificateFiles(
        authority=folder / _AUTHORITY,
        certificate=folder / f"{name}.pem",
        key=folder / f"{name}-key.pem",
    )
    for path in (files.authority, files.certificate, files.key):
        if not path.is_file():
            raise UsageError(
                f"{path}: no such file",
                "make it with `cachemark hosts certs FILE`, and copy it to its host",
            )
    return files


def write_certificates(folder: Path, names: list[str]) -> None:
    """Make an authority and a certificate for each name. Raises UsageError."""
    if (folder / _AUTHORITY).exists():
        raise UsageError(
            f"{folder} has certificates already", "remove the folder to make all of them anew"
        )
    authority = Authority("cachemark")
    contents: dict[str, bytes] = {}
    for name in names:
        pair = authority.pair(name)
        contents |= {f"{name}.pem": pair.certificate, f"{name}-key.pem": pair.key}
    # The authority is written last: a folder that has it is complete.
    contents[_AUTHORITY] = authority.pem
    with refusing(f"{folder}: cannot be written"), made_folder(folder, mode=0o700):
        write_files(folder, contents, permissions=_ONLY_FOR_THE_OWNER)
