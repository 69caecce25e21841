"""Which root may vouch for which name: trust belongs to a link, and there is no global authority.

A handshake does not know names, so a listening side accepts every peer that any of its roots has signed. Afterwards the
root is checked against the name: a neighbor with its own trust file must be signed by a root in that file, and every
other system by a root of this module's federation. A root of another site thus cannot impersonate a system of this
site, nor the reverse.
"""

import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from messiahs.channel.tls import TlsMaterial
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import UNKNOWN, Trust

_CERTIFICATE, _CHAIN = "x509_pem_cert", "x509_pem_cert_chain"
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_FINGERPRINT_BYTES: Final = 16


def trust_of(tls: TlsMaterial) -> Trust:
    """Return the roots that a module trusts for systems without roots of their own, and those that vouch for itself.

    Unknown if a certificate cannot be read.
    """
    roots = [match[0] for match in _PEM.finditer(tls.trust)]
    # A single root needs no proof: a module that it does not vouch for has no link within its site.
    vouchers = roots if len(roots) == 1 else [each for each in roots if _vouches(each, tls.certificate)]
    try:
        return Trust(roots=tuple(map(fingerprint, roots)), vouchers=tuple(map(fingerprint, vouchers)))
    except binascii.Error:
        return UNKNOWN


def fingerprint(certificate: bytes) -> bytes:
    """Return the first bytes of the SHA-256 of a certificate in PEM; a `binascii.Error` if it is not a certificate."""
    match = _PEM.search(certificate)
    if match is None:
        raise binascii.Error("no certificate in PEM")
    return hashlib.sha256(binascii.a2b_base64(match[1])).digest()[:_FINGERPRINT_BYTES]


def _vouches(root: bytes, certificate: bytes) -> bool:
    return is_signed(certificate, chain=certificate, roots=root)


class Vouching:
    """Checks peers after the handshake. Remembers the last valid certificate of each (mutable)."""

    def __init__(self, tls: TlsMaterial) -> None:
        self._tls = tls
        # With one set of roots for all systems, the handshake suffices and cryptography is not loaded.
        self._is_needed = any(roots != tls.trust for _, roots in tls.neighbor_trust)
        self._known: dict[SystemId, bytes] = {}

    def is_vouched_for(self, peer: SystemId, auth_context: Mapping[str, Iterable[bytes]], /) -> bool:
        """Whether a peer that completed the handshake was signed by a root that may vouch for its name."""
        if not self._is_needed:
            return True
        certificate = b"".join(auth_context.get(_CERTIFICATE, ()))
        if certificate and self._known.get(peer) == certificate:
            return True
        chain = b"".join(auth_context.get(_CHAIN, ())) or certificate
        if not is_signed(certificate, chain=chain, roots=self._tls.roots_for(peer)):
            return False
        self._known[peer] = certificate
        return True


def is_signed(certificate: bytes, *, chain: bytes, roots: bytes) -> bool:
    """Whether a chain leads from a peer's certificate to one of the roots (all PEM)."""
    # An expensive import, needed only where sites with different roots meet.
    from cryptography import x509  # noqa: PLC0415 # see above
    from cryptography.x509.verification import PolicyBuilder, Store, VerificationError  # noqa: PLC0415 # as above

    try:
        verifier = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(roots))).build_client_verifier()
        verifier.verify(x509.load_pem_x509_certificate(certificate), x509.load_pem_x509_certificates(chain))
    except (ValueError, VerificationError):
        return False
    return True
