"""The certificates of a run over hosts: one for the coordinator and one for each agent.

Both sides of a connection show theirs, and accept only those of the same authority. The authority's
own key is not stored: who wants one more host makes all certificates anew.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cachemark.model.errors import UsageError

_LIFETIME = datetime.timedelta(days=365)
# Clocks of hosts differ: a certificate is valid a little before it was made.
_EARLIER = datetime.timedelta(hours=1)
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
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("cachemark", authority_key, "cachemark", authority_key, is_ca=True)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = _certificate(name, key, "cachemark", authority_key, is_ca=False)
            _write(folder / f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))
            _write(
                folder / f"{name}-key.pem",
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                ),
            )
        _write(folder / _AUTHORITY, authority.public_bytes(serialization.Encoding.PEM))
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_common_name(name))
        .issuer_name(_common_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        # From Python 3.13 on, a certificate without the following is refused.
        .add_extension(_key_usage(is_ca=is_ca), critical=True)
        .add_extension(own_id, critical=False)
        .add_extension(issuer_id, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    """An authority signs certificates, a party signs the messages that begin a connection."""
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
