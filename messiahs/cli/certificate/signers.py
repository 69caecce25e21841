"""Which root of a site has signed a certificate: roots that replace each other have the same name."""

from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from messiahs.channel.certificates.fingerprints import certificate_fingerprint
from messiahs.channel.certificates.malformed import malformed_as_value_error


def signing_root(chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> x509.Certificate | None:
    """Return the root that has signed the first certificate of a chain, by itself or through the ones behind it.

    None if none of these has. Whether a certificate is valid now does not matter.
    """
    if not chain:
        return None
    certificate, *others = chain
    found = next((each for each in roots if _has_signed(each, certificate)), None)
    if found is not None:
        return found
    above = next((place for place, each in enumerate(others) if _has_signed(each, certificate)), len(others))
    return signing_root(others[above:], roots)


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
