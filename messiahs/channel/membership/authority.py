"""The join authority of a module: it signs the certificates of tokens, and nothing that it signs passes for a module.

Handshakes at the module's port accept these certificates besides those of modules, so that a newcomer without a
certificate of its own is authenticated by mutual TLS, too. The only service for them is `Membership`. Each authority
has a random *mark* in its name; `TrustedRoots` refuses every certificate whose issuer has it, whatever it says.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.channel.certificates.fingerprints import certificates_in, issuer_of
from messiahs.channel.certificates.tls import KeyAndCertificate, make_authority, new_key, private_pem, sign_names, write
from messiahs.channel.certificates.trusted_roots import JOIN_SCHEME, Presented, is_marked
from messiahs.config.regular_files import read_regular
from messiahs.core.model.ids import SystemId
from messiahs.errors import StoreError, explained

_MARK: Final = re.compile(rb"join ([0-9a-f]{32})")
_TOKEN: Final = re.compile(JOIN_SCHEME.encode() + rb"([a-z0-9.-]{1,255})/([a-z0-9.-]{1,255})/([0-9a-f]{32})")
_CERTIFICATE, _KEY = "authority.pem", "authority.key"


@dataclass(frozen=True, slots=True)
class JoinAuthority:
    """The authority in a folder of a module, which is made at its first use."""

    folder: Path

    def certificate(self) -> bytes:
        """Return its certificate (PEM); empty if it was never used. Raises `StoreError`."""
        try:
            return read_regular(self.folder / _CERTIFICATE)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from error

    def sign(self, *, federation: str, parent: SystemId, token: str) -> KeyAndCertificate:
        """Make key and certificate of a token; a `StoreError` if the authority can be neither read nor made."""
        try:
            authority = self._opened()
            from cryptography import x509  # noqa: PLC0415 - a running daemon rarely needs it

            key = new_key()
            uri = x509.UniformResourceIdentifier(f"{JOIN_SCHEME}{federation}/{parent}/{token}")
            certificate = sign_names(authority, subject="join token", names=[uri], public_key=key.public_key())
        except OSError as error:
            raise StoreError(f"no token can be made: {explained(error)}") from error
        except ValueError as error:
            raise StoreError(f"the join authority in {self.folder} cannot be used: {error}") from error
        return KeyAndCertificate(key=private_pem(key), certificate=certificate)

    def _opened(self) -> KeyAndCertificate:
        certificate, key = self.folder / _CERTIFICATE, self.folder / _KEY
        if not certificate.exists():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write(make_authority(f"join {secrets.token_hex(16)}"), certificate_file=certificate, key_file=key)
        return KeyAndCertificate(key=read_regular(key), certificate=read_regular(certificate))


def mark_of(authority: bytes) -> bytes:
    """Return the mark in the certificate of an authority (PEM); empty without a certificate."""
    found = [_MARK.search(issuer_of(each)) for each in certificates_in(authority)]
    return next((match[1] for match in found if match is not None), b"")


def token_in(presented: Presented, *, federation: str, parent: SystemId, mark: Callable[[], bytes]) -> str:
    """Return the id of the token that a caller of this module has shown; empty if it has shown another certificate."""
    tokens = [uri for uri in presented.uris if uri.startswith(JOIN_SCHEME)]
    match = _TOKEN.fullmatch(tokens[0].encode(errors="replace")) if len(tokens) == len(presented.uris) == 1 else None
    if match is None or (match[1].decode(), match[2].decode()) != (federation, parent):
        return ""
    # The handshake has verified the signature by an authority of that name.
    return match[3].decode() if is_marked(presented.chain[:1], mark()) else ""
