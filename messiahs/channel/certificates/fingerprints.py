"""Fingerprints of certificates and of public keys (the first 16 bytes of a SHA-256), and the validity of certificates.

Certificates are parsed here because the module cryptography would cost every daemon 8 MB.
"""

import binascii
import hashlib
import re
from datetime import UTC, datetime
from typing import Final

FINGERPRINT_BYTES: Final = 16
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION: Final = b"\xa0"
"""Tag of the version, which only certificates of the first version lack."""
_FIELDS_BEFORE_KEY: Final = 5
"""Serial number, signature algorithm, issuer, validity and subject (RFC 5280, 4.1)."""
_FIELDS_BEFORE_VALIDITY: Final = 3
_UTC_TIME: Final = b"\x17"
_LONG_LENGTH: Final = 0x80
_HEADER_BYTES: Final = 2


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a PEM text as DER; a `ValueError` if one is not base64."""
    return tuple(binascii.a2b_base64(match[1]) for match in _PEM.finditer(pem))


def certificate_fingerprint(certificate: bytes) -> bytes:
    """Return the fingerprint of a certificate in DER."""
    return hashlib.sha256(certificate).digest()[:FINGERPRINT_BYTES]


def key_fingerprint(certificate: bytes) -> bytes:
    """Return the fingerprint of the public key (SubjectPublicKeyInfo) of a certificate in DER.

    It stays the same when the key gets a new certificate. Raises a `ValueError` if this is not a certificate.
    """
    position = _field(certificate, _FIELDS_BEFORE_KEY)
    _, end = _content(certificate, position)
    return hashlib.sha256(certificate[position:end]).digest()[:FINGERPRINT_BYTES]


def validity_of(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the first and the last instant of a certificate in DER.

    Raises a `ValueError` if this is not a certificate.
    """
    first, _ = _content(certificate, _field(certificate, _FIELDS_BEFORE_VALIDITY))
    _, last = _content(certificate, first)
    return _instant(certificate, first), _instant(certificate, last)


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
