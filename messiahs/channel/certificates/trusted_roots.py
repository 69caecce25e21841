"""Which root may vouch for which name: trust belongs to a link, and there is no global authority.

A handshake only proves that some trusted root has signed a certificate. Afterwards `TrustedRoots` checks the names in
the certificate, because X.509 has no way to restrict a root to some URIs: a neighbor with roots of its own must be
signed by one of them, a system that a site was introduced for by that site's root, every other system by a root of this
site. A root of another site thus cannot impersonate a system of this site, nor the reverse. Both ends of every
connection check their peer here: gRPC and the streams for large files alike.
"""

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from messiahs.channel.certificates.fingerprints import (
    certificate_fingerprint,
    certificates_in,
    is_authority,
    issuer_of,
    key_fingerprint,
    serial_of,
)
from messiahs.channel.certificates.in_force import TlsInForce, in_force
from messiahs.channel.certificates.malformed import malformed_as_value_error
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.contract import Peer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.core.model.trust import UNKNOWN, OtherRoots, Trust
from messiahs.errors import ChannelError, UntrustedError

_SCHEME: Final = "messiahs://"
JOIN_SCHEME: Final = "messiahs-join://"
"""Scheme of the names in certificates of tokens, which are for joining alone."""
_URI: Final = re.compile(r"messiahs://([a-z0-9.-]{1,255})/([a-z0-9.-]{1,255})")
_KNOWN_LIMIT: Final = 1_024
_SHOWN_LIMIT: Final = 256
"""Texts of certificates that are not read again."""
_SERIALS_LIMIT: Final = 65_536
"""Systems whose certificates are remembered, so that their connections end when these are revoked."""
_NONE: Final[frozenset[int]] = frozenset()
WHY_REVOKED: Final = "it was revoked"
"""What others learn of why a revoked certificate is refused."""
_DER_ENCODING: Final = 2
"""The number of DER in the library ssl, which has no public name for it before Python 3.13."""


def trust_of(tls: TlsMaterial) -> Trust:
    """Return the roots that vouch for systems without a link, and those that vouch for this module.

    Unknown if a certificate cannot be read.
    """
    try:
        own = certificates_in(tls.trust)
        introduced = [root for each in tls.introductions for root in certificates_in(each.roots)]
        # A single root needs no proof: a module that it does not vouch for has no link within its site.
        vouchers = own if len(own) == 1 else [each for each in own if _vouches(each, tls.certificate)]
    except ValueError:
        return UNKNOWN
    return Trust(
        roots=tuple(dict.fromkeys(map(certificate_fingerprint, (*own, *introduced)))),
        vouchers=tuple(map(certificate_fingerprint, vouchers)),
    )


def other_sites(tls: TlsMaterial) -> tuple[OtherRoots, ...]:
    """Return the roots of other sites and the names for which each may vouch; a `ValueError` if one cannot be read."""
    linked = tuple(each for _, recorded in tls.links for each in recorded)
    return tuple(
        OtherRoots(
            roots=tuple(map(certificate_fingerprint, certificates_in(each.roots))),
            names=each.names,
            is_introduction=is_introduction,
        )
        for recorded, is_introduction in ((linked, False), (tls.introductions, True))
        for each in recorded
    )


def own_key(tls: TlsMaterial) -> bytes:
    """Return the fingerprint of a module's public key; a `ChannelError` if its certificate cannot be read."""
    try:
        return key_fingerprint(certificates_in(tls.certificate)[0])
    except (ValueError, IndexError) as error:
        raise ChannelError(f"the certificate of this module cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """What a peer has shown in a completed handshake: its certificates in DER, its own first, and the names in it."""

    chain: tuple[bytes, ...]
    uris: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()

    @classmethod
    def to_grpc(cls, auth_context: Mapping[str, Iterable[bytes]]) -> Self:
        """Return what the peer of a call has shown."""

        def texts(key: str) -> tuple[str, ...]:
            # gRPC lists URIs and DNS names separately, so that one cannot pass for the other.
            return tuple(each.decode(errors="replace") for each in auth_context.get(key, ()))

        own = _shown_in(b"".join(auth_context.get("x509_pem_cert", ())))
        chain = _shown_in(b"".join(auth_context.get("x509_pem_cert_chain", ())))
        return cls(chain=tuple(dict.fromkeys((*own, *chain))), uris=texts("peer_uri"), dns_names=texts("peer_dns"))

    @classmethod
    def to_ssl(cls, connection: ssl.SSLObject | ssl.SSLSocket) -> Self:
        """Return what the peer of a connection has shown."""
        names: Any = (connection.getpeercert() or {}).get("subjectAltName", ())
        # Public since Python 3.13 only.
        inside: Any = getattr(connection, "_sslobj")  # noqa: B009 - the type does not declare it
        chain = tuple(each.public_bytes(_DER_ENCODING) for each in inside.get_unverified_chain() or ())
        return cls(
            chain=chain,
            uris=tuple(text for kind, text in names if kind == "URI"),
            dns_names=tuple(text for kind, text in names if kind == "DNS"),
        )


class TrustedRoots:
    """Checks peers after the handshake. Remembers the last valid certificate of each (mutable).

    `mark` returns the mark of the authority that signs tokens here (membership/authority.py), empty without one.
    """

    def __init__(self, tls: TlsMaterial | TlsInForce, federation: str, *, mark: Callable[[], bytes] = bytes) -> None:
        self._in_force, self._federation, self._mark = in_force(tls), federation, mark
        self._tls = self._in_force.now
        # With one set of roots for all systems, the handshake suffices and cryptography is not loaded.
        self._is_needed = self._tls.all_roots != self._tls.trust
        self._known: dict[SystemId, bytes] = {}
        self._serials: dict[SystemId, frozenset[int]] = {}

    def name_in(self, presented: Presented) -> SystemId:
        """Return the system that a certificate names, which no root has confirmed yet; raises `UntrustedError`."""
        if any(uri.startswith(JOIN_SCHEME) for uri in presented.uris):
            raise UntrustedError("its certificate is that of a token, which is for joining alone")
        uris = [uri for uri in presented.uris if uri.startswith(_SCHEME)]
        match = _URI.fullmatch(uris[0]) if len(uris) == 1 else None
        if len(uris) > 1:
            raise UntrustedError(f"its certificate names {len(uris)} systems: {printable(', '.join(uris[:2]))}")
        if match is None or match[1] != self._federation:
            raise UntrustedError(f"its certificate names no system of {self._federation}")
        if match[2] not in presented.dns_names:
            text = f"its certificate names {match[2]} as a URI, but not as a DNS name"
            raise UntrustedError(text, claimed=match[2])
        return SystemId(match[2])

    def check(self, presented: Presented, *, is_server: bool = False) -> Peer:
        """Return the system that a peer is; an `UntrustedError` if no root that may vouch for its name signed it."""
        name = self.name_in(presented)
        certificate = presented.chain[0]
        try:
            key = key_fingerprint(certificate)
        except ValueError as error:
            raise UntrustedError(str(error)) from error
        if is_marked(presented.chain, self._mark()):
            raise UntrustedError(f"its certificate names {name}, but the authority for tokens signed it", claimed=name)
        if is_authority(certificate):
            # Handshakes accept it, although it is made to sign certificates.
            raise UntrustedError(f"its certificate names {name}, but is that of an authority", claimed=name)
        if self._tls.revocations.holds(certificate):
            raise UntrustedError(f"its certificate names {name}, but {WHY_REVOKED}", claimed=name)
        if self._is_needed and self._known.get(name) != certificate:
            roots = self._tls.roots_for(name)
            if not is_signed(presented.chain, roots=roots, as_server=name if is_server else None):
                text = f"its certificate names {name}, but no root that vouches for {name} signed it"
                raise UntrustedError(text, claimed=name)
            self._remember(name, certificate)
        self._note_serial(name, serial_of(certificate))
        return Peer(system=name, key=key)

    def follow(self) -> tuple[SystemId, ...]:
        """Check against what is in force now; return the systems whose connections must end.

        They were accepted with certificates that are now revoked, or one of their roots is gone. Those that have
        another certificate in the meantime are accepted when they connect again. Each is returned once.
        """
        before, self._tls = self._tls, self._in_force.now
        self._known.clear()
        has_lost = not set(certificates_in(before.all_roots)) <= set(certificates_in(self._tls.all_roots))
        # Connections of before are open still, whose handshakes accepted a root that is gone.
        self._is_needed = self._is_needed or has_lost or self._tls.all_roots != self._tls.trust
        revoked = self._tls.revocations.serials.keys()
        found = tuple(
            name
            for name, serials in self._serials.items()
            if not serials.isdisjoint(revoked) or (has_lost and _has_lost_roots(name, before, self._tls))
        )
        for name in found:
            del self._serials[name]
        return found

    def _note_serial(self, name: SystemId, serial: int) -> None:
        known = self._serials.get(name, _NONE)
        if serial not in known:
            if len(self._serials) >= _SERIALS_LIMIT:
                del self._serials[next(iter(self._serials))]
            self._serials[name] = known | {serial}

    def _remember(self, name: SystemId, certificate: bytes) -> None:
        self._known.pop(name, None)
        if len(self._known) >= _KNOWN_LIMIT:
            del self._known[next(iter(self._known))]
        self._known[name] = certificate


def is_marked(chain: Iterable[bytes], mark: bytes) -> bool:
    """Whether the issuer of a certificate (DER) has a mark in its name; False without a mark.

    Handshakes compare names without regard to case, and in every encoding of text.
    """
    return bool(mark) and any(mark in issuer_of(each).replace(b"\0", b"").lower() for each in chain)


def is_signed(chain: Iterable[bytes], *, roots: bytes, as_server: SystemId | None = None) -> bool:
    """Whether a chain (DER, the module's certificate first) leads to one of the roots (PEM), and is valid now.

    The module's certificate must be for clients, or with `as_server` for a server of this name, and no authority.
    """
    # An expensive import, needed only where sites with different roots meet.
    from cryptography import x509  # noqa: PLC0415 # see above
    from cryptography.x509.verification import PolicyBuilder, Store, VerificationError  # noqa: PLC0415 # as above

    try:
        with malformed_as_value_error():
            certificate, *others = map(x509.load_der_x509_certificate, chain)
            builder = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(roots)))
            if as_server is None:
                builder.build_client_verifier().verify(certificate, others)
            else:
                builder.build_server_verifier(x509.DNSName(as_server)).verify(certificate, others)
    except (ValueError, VerificationError):
        return False
    return True


@lru_cache(_SHOWN_LIMIT)
def _shown_in(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a text; remembered, because each stream of a peer shows the same ones."""
    return certificates_in(pem)


def _has_lost_roots(name: SystemId, before: TlsMaterial, now: TlsMaterial) -> bool:
    return not set(certificates_in(before.roots_for(name))) <= set(certificates_in(now.roots_for(name)))


def _vouches(root: bytes, certificate: bytes) -> bool:
    return is_signed(certificates_in(certificate), roots=ssl.DER_cert_to_PEM_cert(root).encode())
