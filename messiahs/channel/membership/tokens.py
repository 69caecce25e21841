"""A token: one line of text with which one system may join a module (MESSIAHS 6.2).

It holds a certificate with its key, and the root that proves who the module is. Whoever has the line can use it, once.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from messiahs.channel.certificates.fingerprints import FINGERPRINT_BYTES, certificates_in
from messiahs.core.model.ids import SystemId
from messiahs.core.model.names import NAME, problem_with_name
from messiahs.core.model.neighbors import Relation
from messiahs.errors import MessiahsError

TOKEN_LIMIT_BYTES: Final = 512 << 10
_VERSION: Final = 1
ROLES: Final = {"child": Relation.CHILD, "sibling": Relation.SIBLING}
"""What the holder of a token may become, by the word for it."""
_ADDRESS: Final = re.compile(r"[!-~]{1,300}")


class _Written(msgspec.Struct):
    v: int
    address: str
    federation: str
    parent: str
    role: str
    parent_key: str
    roots: str
    certificate: str
    key: str
    borders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """What the text says: where `parent` is (host:port), fingerprint of its key, its roots, and how to be let in.

    Roots, certificate and key are PEM. `role` is what its holder becomes: with "sibling", `parent` is no parent.
    `borders` are those behind which its children are, as far as it knows.
    """

    address: str
    federation: str
    parent: SystemId
    parent_key: bytes
    roots: bytes
    certificate: bytes
    key: bytes
    role: str = "child"
    borders: tuple[SystemId, ...] = ()

    def to_text(self) -> str:
        """Return the line."""
        written = _Written(
            v=_VERSION,
            address=self.address,
            federation=self.federation,
            parent=self.parent,
            role=self.role,
            parent_key=self.parent_key.hex(),
            roots=self.roots.decode("ascii"),
            certificate=self.certificate.decode("ascii"),
            key=self.key.decode("ascii"),
            borders=self.borders,
        )
        return base64.urlsafe_b64encode(msgspec.json.encode(written)).decode("ascii")

    @classmethod
    def from_text(cls, text: bytes) -> Self:
        """Read a line, which spaces may surround; a `MessiahsError` if it is no token of this release."""
        try:
            written = msgspec.json.decode(base64.b64decode(text.strip(), altchars=b"-_", validate=True), type=_Written)
            token = cls(
                address=written.address,
                federation=written.federation,
                parent=SystemId(written.parent),
                parent_key=bytes.fromhex(written.parent_key),
                roots=written.roots.encode("ascii"),
                certificate=written.certificate.encode("ascii"),
                key=written.key.encode("ascii"),
                role=written.role,
                borders=tuple(map(SystemId, written.borders)),
            )
        except (ValueError, binascii.Error) as error:
            raise MessiahsError("it is no token: copy the whole line that `messiahs join token` printed") from error
        if written.v != _VERSION:
            raise MessiahsError(f"it is a token of version {written.v}, and this release knows version {_VERSION}")
        problem = token.problem()
        if problem:
            raise MessiahsError(f"it is a damaged token: {problem}")
        return token

    def problem(self) -> str:
        """Return what is wrong with the content; empty if it can be used."""
        # Folders are named after both.
        if not NAME.fullmatch(self.federation) or any(map(problem_with_name, (self.parent, *self.borders))):
            return "it names no module"
        if self.role not in ROLES:
            return f"this release knows no role {self.role[:40]!r}"
        if not _ADDRESS.fullmatch(self.address) or ":" not in self.address:
            return "it has no address"
        if len(self.parent_key) != FINGERPRINT_BYTES or not certificates_in(self.roots):
            return "it does not say how its module is recognized"
        return "" if certificates_in(self.certificate) else "it has no certificate"
