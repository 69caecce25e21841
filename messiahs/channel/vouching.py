"""Which root may vouch for which name: trust is per link, and no authority stands above all.

A handshake knows no names, so a listening side takes every peer that any of its roots has signed. Only then is it
looked at whether that root vouches for the name: a neighbor with a trust file of its own must be signed by a root in
that file, and everybody else by a root of this module's own federation. So the root of another site cannot make a peer
that passes for one of ours, and ours cannot make one that passes for theirs.
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
    """Say which roots a module trusts for systems without roots of their own, and which of those vouch for itself.

    It is unknown if a certificate cannot be read.
    """
    roots = [match[0] for match in _PEM.finditer(tls.trust)]
    # One root needs no proof: a module that it does not vouch for has no link with anybody of its site.
    vouchers = roots if len(roots) == 1 else [each for each in roots if _vouches(each, tls.certificate)]
    try:
        return Trust(roots=tuple(map(fingerprint, roots)), vouchers=tuple(map(fingerprint, vouchers)))
    except binascii.Error:
        return UNKNOWN


def fingerprint(certificate: bytes) -> bytes:
    """Give the first bytes of the SHA-256 of a certificate in PEM; a `binascii.Error` if it is none."""
    match = _PEM.search(certificate)
    if match is None:
        raise binascii.Error("no certificate in PEM")
    return hashlib.sha256(binascii.a2b_base64(match[1])).digest()[:_FINGERPRINT_BYTES]


def _vouches(root: bytes, certificate: bytes) -> bool:
    return is_signed(certificate, chain=certificate, roots=root)


class Vouching:
    """Judges peers after the handshake. The last good certificate of each is remembered (mutable)."""

    def __init__(self, tls: TlsMaterial) -> None:
        self._tls = tls
        # With one set of roots for everybody the handshake has said it all, and cryptography need not be loaded.
        self._is_needed = any(roots != tls.trust for _, roots in tls.neighbor_trust)
        self._known: dict[SystemId, bytes] = {}

    def is_vouched_for(self, peer: SystemId, auth_context: Mapping[str, Iterable[bytes]], /) -> bool:
        """Say whether a peer whose handshake has succeeded was signed by a root that may vouch for its name."""
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
    """Say whether a chain leads from a peer's certificate to one of the roots (all PEM)."""
    # Heavy, and only wanted where sites with different roots meet.
    from cryptography import x509  # noqa: PLC0415 # see above
    from cryptography.x509.verification import PolicyBuilder, Store, VerificationError  # noqa: PLC0415 # as above

    try:
        verifier = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(roots))).build_client_verifier()
        verifier.verify(x509.load_pem_x509_certificate(certificate), x509.load_pem_x509_certificates(chain))
    except (ValueError, VerificationError):
        return False
    return True
