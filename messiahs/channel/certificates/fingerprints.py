"""Fingerprints of certificates and of public keys (the first 16 bytes of a SHA-256), and what certificates say.

Certificates are parsed here because the module cryptography would cost every daemon 8 MB. What the latest ones say is
remembered, since each stream of a neighbor shows the same one; whether they are valid is not.
"""

import binascii
import hashlib
import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

FINGERPRINT_BYTES: Final = 16
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_ONLY_PEM: Final = re.compile(
    rb"\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*", re.ASCII
)
_VERSION: Final = b"\xa0"
"""Tag of the version, which only certificates of the first version lack."""
_FIELDS_BEFORE_KEY: Final = 5
"""Serial number, signature algorithm, issuer, validity and subject (RFC 5280, 4.1)."""
_FIELDS_BEFORE_ISSUER: Final = 2
_FIELDS_BEFORE_VALIDITY: Final = 3
_EXTENSIONS: Final = b"\xa3"
_BASIC_CONSTRAINTS: Final = bytes.fromhex("0603551d13")
_AUTHORITY: Final = bytes.fromhex("0101ff")
"""The first field of basic constraints: this is an authority (RFC 5280, 4.2.1.9)."""
_UTC_TIME: Final = b"\x17"
_LONG_LENGTH: Final = 0x80
_HEADER_BYTES: Final = 2
_PARSED: Final = 256
"""Certificates whose content is remembered."""


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a PEM text as DER; a `ValueError` if one is not base64."""
    return tuple(binascii.a2b_base64(match[1]) for match in _PEM.finditer(pem))


def only_certificate_in(pem: bytes) -> bytes:
    """Return the one certificate of a PEM text with nothing else in it, as DER; a `ValueError` if it is anything else.

    All that is read from a certificate that somebody shows is read from this DER: programs differ in which of several
    certificates of a text they read.
    """
    found = _ONLY_PEM.fullmatch(pem)
    if found is None:
        raise ValueError("this is not exactly one certificate in PEM")
    return binascii.a2b_base64(found[1])


def pem_of(certificate: bytes) -> bytes:
    """Return a certificate in DER as PEM."""
    return ssl.DER_cert_to_PEM_cert(certificate).encode("ascii")


def certificate_fingerprint(certificate: bytes) -> bytes:
    """Return the fingerprint of a certificate in DER."""
    return hashlib.sha256(certificate).digest()[:FINGERPRINT_BYTES]


@lru_cache(_PARSED)
def key_fingerprint(certificate: bytes) -> bytes:
    """Return the fingerprint of the public key (SubjectPublicKeyInfo) of a certificate in DER.

    It stays the same when the key gets a new certificate. Raises a `ValueError` if this is not a certificate.
    """
    position = _field(certificate, _FIELDS_BEFORE_KEY)
    _, end = _content(certificate, position)
    return hashlib.sha256(certificate[position:end]).digest()[:FINGERPRINT_BYTES]


@lru_cache(_PARSED)
def serial_of(certificate: bytes) -> int:
    """Return the serial number of a certificate in DER. Raises a `ValueError` if this is not a certificate."""
    start, end = _content(certificate, _field(certificate, 0))
    return int.from_bytes(certificate[start:end], signed=True)


@lru_cache(_PARSED)
def issuer_of(certificate: bytes) -> bytes:
    """Return the name of the authority that signed a certificate, both in DER.

    Raises a `ValueError` if this is not a certificate.
    """
    position = _field(certificate, _FIELDS_BEFORE_ISSUER)
    _, end = _content(certificate, position)
    return certificate[position:end]


def validity_of(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the first and the last instant of a certificate in DER.

    Raises a `ValueError` if this is not a certificate.
    """
    first, _ = _content(certificate, _field(certificate, _FIELDS_BEFORE_VALIDITY))
    _, last = _content(certificate, first)
    return _instant(certificate, first), _instant(certificate, last)


@lru_cache(_PARSED)
def is_authority(certificate: bytes) -> bool:
    """Whether a certificate in DER may sign others. Raises a `ValueError` if this is not a certificate."""
    _, signed_end = _content(certificate, _content(certificate, 0)[0])
    for position in _elements(certificate, _field(certificate, _FIELDS_BEFORE_KEY), signed_end):
        if certificate[position : position + 1] == _EXTENSIONS:
            listed, _ = _content(certificate, position)
            return any(
                _names_authority(certificate, each) for each in _elements(certificate, *_content(certificate, listed))
            )
    return False


def _names_authority(der: bytes, extension: int) -> bool:
    start, end = _content(der, extension)
    if not der.startswith(_BASIC_CONSTRAINTS, start):
        return False
    # Last is a string of bytes with the value, whether or not it is critical.
    *_, value = _elements(der, start, end)
    constraints, _ = _content(der, value)
    return der.startswith(_AUTHORITY, _content(der, constraints)[0])


def _elements(der: bytes, start: int, end: int) -> Iterator[int]:
    """Yield where each element between two positions begins."""
    while start < end:
        yield start
        _, start = _content(der, start)


def _field(certificate: bytes, number: int) -> int:
    """Return where a field of a certificate begins, counted from 0 without the version."""
    signed, _ = _content(certificate, 0)
    position, _ = _content(certificate, signed)
    has_version = certificate[position : position + 1] == _VERSION
    for _ in range(number + has_version):
        _, position = _content(certificate, position)
    return position


def _instant(der: bytes, start: int) -> datetime:
    begin, end = _content(der, start)
    text = der[begin:end].decode("ascii")
    # Two digits mean the years from 1950 to 2049 (RFC 5280, 4.1.2.5.1).
    century = ("19" if text >= "50" else "20") if der[start : start + 1] == _UTC_TIME else ""
    return datetime.strptime(f"{century}{text}", "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _content(der: bytes, start: int) -> tuple[int, int]:
    """Return where the content of the element that begins at `start` begins and ends."""
    begin = start + _HEADER_BYTES
    length = der[begin - 1] if begin <= len(der) else 0
    if length >= _LONG_LENGTH:
        size = length - _LONG_LENGTH
        length = int.from_bytes(der[begin : begin + size])
        begin += size
    if begin + length > len(der):
        raise ValueError("this is no certificate in DER")
    return begin, begin + length
