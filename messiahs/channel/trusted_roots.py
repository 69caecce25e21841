"""Which root may vouch for which name: trust belongs to a link, and there is no global authority.

A handshake does not know names, so a listening side accepts every peer that any of its roots has signed. Afterwards the
root is checked against the name: a neighbor with its own trust file must be signed by a root in that file, and every
other system by a root of this module's federation. A root of another site thus cannot impersonate a system of this
site, nor the reverse.
"""

from collections.abc import Iterable, Mapping
from ssl import DER_cert_to_PEM_cert

from messiahs.channel.fingerprints import certificate_fingerprint, certificates_in, key_fingerprint
from messiahs.channel.tls import TlsMaterial
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.errors import ChannelError

_CERTIFICATE, _CHAIN = "x509_pem_cert", "x509_pem_cert_chain"


def trust_of(tls: TlsMaterial) -> Trust:
    """Return the roots that a module trusts for systems without roots of their own, and those that vouch for itself.

    Unknown if a certificate cannot be read.
    """
    try:
        roots = certificates_in(tls.trust)
        # A single root needs no proof: a module that it does not vouch for has no link within its site.
        vouchers = roots if len(roots) == 1 else [each for each in roots if _vouches(each, tls.certificate)]
    except ValueError:
        return UNKNOWN
    return Trust(
        roots=tuple(map(certificate_fingerprint, roots)), vouchers=tuple(map(certificate_fingerprint, vouchers))
    )


def own_key(tls: TlsMaterial) -> bytes:
    """Return the fingerprint of a module's public key; a `ChannelError` if its certificate cannot be read."""
    try:
        return key_fingerprint(certificates_in(tls.certificate)[0])
    except (ValueError, IndexError) as error:
        raise ChannelError(f"the certificate of this module cannot be read: {error}") from error


def key_of(auth_context: Mapping[str, Iterable[bytes]]) -> bytes:
    """Return the fingerprint of the public key with which a peer completed the handshake."""
    (certificate,) = certificates_in(b"".join(auth_context[_CERTIFICATE]))
    return key_fingerprint(certificate)


def _vouches(root: bytes, certificate: bytes) -> bool:
    return is_signed(certificate, chain=certificate, roots=DER_cert_to_PEM_cert(root).encode())


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
