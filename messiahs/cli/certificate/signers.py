"""Which root of a site has signed a certificate: roots that replace each other have the same name."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from messiahs.channel.certificates.fingerprints import certificate_fingerprint
from messiahs.channel.certificates.malformed import malformed_as_value_error

CHAIN_LIMIT: Final = 16
"""Certificates of a chain that are looked at: verifiers of TLS take no longer ones."""


def signing_root(chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> x509.Certificate | None:
    """Return the root that has signed the first certificate of a chain, by itself or through the ones behind it.

    None if none of these has; certificates after the first `CHAIN_LIMIT` do not count. Whether a certificate is valid
    now does not matter.
    """
    left = deque(chain[:CHAIN_LIMIT])
    while left:
        certificate = left.popleft()
        found = next((each for each in roots if _has_signed(each, certificate)), None)
        if found is not None:
            return found
        while left and not _has_signed(left[0], certificate):
            left.popleft()
    return None


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Return the fingerprint of a certificate, hexadecimal."""
    return certificate_fingerprint(certificate.public_bytes(Encoding.DER)).hex()


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        with malformed_as_value_error():
            certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
