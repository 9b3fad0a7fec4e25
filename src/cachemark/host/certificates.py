"""Certificates for TLS. This needs the package cryptography, which not every installation has."""

import datetime
import ipaddress
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME = datetime.timedelta(days=365)
# Clocks of hosts differ, so a certificate is valid from a little earlier on.
_EARLIER = datetime.timedelta(hours=1)


class CertificatePair(NamedTuple):
    """A certificate and its key, as the bytes of PEM files."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates. `pem` is its own certificate, by which others check the signatures."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = self._signed(name, self._key, _LIFETIME, is_ca=True)
        self.pem = own.public_bytes(serialization.Encoding.PEM)

    def pair(self, name: str, ends_in: datetime.timedelta = _LIFETIME) -> CertificatePair:
        """A new key and its certificate for a host name or an IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key, ends_in, is_ca=False)
        return CertificatePair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        ends_in: datetime.timedelta,
        *,
        is_ca: bool,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(_common_name(name))
            .issuer_name(_common_name(self._name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, now + ends_in) - _EARLIER)
            .not_valid_after(now + ends_in)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general_name(name)]), critical=False)
            # From version 3.13 on, Python refuses a certificate without the following.
            .add_extension(_key_usage(is_ca=is_ca), critical=True)
            .add_extension(own_id, critical=False)
            .add_extension(issuer_id, critical=False)
            .sign(self._key, hashes.SHA256())
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


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
