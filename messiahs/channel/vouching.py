"""Which root may vouch for which name: trust is per link, and no authority stands above all.

A handshake knows no names, so a listening side takes every peer that any of its roots has signed. Only then is it
looked at whether that root vouches for the name: a neighbor with a trust file of its own must be signed by a root in
that file, and everybody else by a root of this module's own federation. So the root of another site cannot make a peer
that passes for one of ours, and ours cannot make one that passes for theirs.
"""

from collections.abc import Iterable, Mapping

from messiahs.channel.tls import TlsMaterial
from messiahs.core.ids import SystemId

_CERTIFICATE, _CHAIN = "x509_pem_cert", "x509_pem_cert_chain"


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
