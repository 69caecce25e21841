"""The tokens of a module and what became of each: a file in the folder of the module, `join/tokens.json`.

The file is replaced as a whole at each change, which is durable when a method returns. Instants are those of this
host's clock, so the clock of a newcomer does not matter.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import HOUR, Instant
from messiahs.errors import StoreError, explained

TOKEN_LIMIT: Final = 1_024
"""Tokens that are kept at once, used ones included."""
REQUEST_LIMIT: Final = 64
"""Requests that wait for an administrator at once."""
LONGEST_NS: Final = 30 * 24 * HOUR
"""Longest life of a token."""
_KEPT_NS: Final = 24 * HOUR
"""A token is kept so long after its end, so that a newcomer that repeats its request learns what became of it."""


class Phase(StrEnum):
    """What has become of a token."""

    UNUSED = "unused"
    PENDING = "pending"
    APPROVED = "approved"
    """An administrator has approved the request, which is granted when it is repeated."""
    DENIED = "denied"
    ACCEPTED = "accepted"
    """The certificate is made; the neighbor may not be added yet."""
    ADDED = "added"


WAITING: Final = (Phase.PENDING, Phase.APPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the holder of a token has asked for. Keys are hexadecimal fingerprints, certificates PEM.

    `needs_certificate`: no key of a root is here, so an administrator has to bring the certificate.
    """

    name: str
    key: str
    at: Instant
    request: str
    address: str = ""
    release: str = ""
    machine: tuple[tuple[str, Value], ...] = ()
    needs_certificate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token: its holder may join as `role` under a name that matches `pattern`, until an instant."""

    id: str
    role: str
    pattern: str
    made_at: Instant
    expires_at: Instant
    phase: Phase = Phase.UNUSED
    asked: Asked | None = None
    certificate: str = ""
    text: str = ""


class TokenBook:
    """All tokens, by id (mutable). A file that cannot be read is a `StoreError` at each use, and is not replaced."""

    def __init__(self, file: Path, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._file, self._clock = file, clock
        self._tokens: dict[str, Token] | None = None

    def now(self) -> Instant:
        """Return the time by which tokens expire."""
        return Instant(self._clock())

    def find(self, token: str) -> Token | None:
        """Return a token; None if there is none of this id any more."""
        return self._read().get(token)

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, the oldest first."""
        return tuple(self._read().values())

    def waiting(self, name: str = "") -> tuple[Token, ...]:
        """Return the tokens whose requests wait for an administrator: all, or those for a name."""
        return tuple(
            each
            for each in self.tokens()
            if each.phase in WAITING
            and each.asked is not None
            and name in ("", each.asked.name)
            and not self.has_expired(each)
        )

    def has_expired(self, token: Token) -> bool:
        """Whether nothing can be got with a token any more because its time is over."""
        return token.phase in (Phase.UNUSED, *WAITING) and token.expires_at <= self.now()

    def put(self, token: Token) -> None:
        """Add or replace a token, and remove those that ended long ago; a `StoreError` if there are too many."""
        kept = {each.id: each for each in self.tokens() if self.now() < each.expires_at + _KEPT_NS}
        if token.id not in kept and len(kept) >= TOKEN_LIMIT:
            raise StoreError(f"there are {TOKEN_LIMIT} tokens, as many as there may be: revoke some with `join revoke`")
        self._write((*(each for each in kept.values() if each.id != token.id), token))

    def remove(self, token: str) -> None:
        """Remove a token, so that it cannot be used."""
        self._write(each for each in self.tokens() if each.id != token)

    def decide(self, token: Token, phase: Phase, *, text: str = "", certificate: str = "") -> Token:
        """Change what has become of a token, and return it."""
        decided = replace(token, phase=phase, text=text, certificate=certificate or token.certificate)
        self.put(decided)
        return decided

    def _read(self) -> dict[str, Token]:
        if self._tokens is None:
            try:
                found = msgspec.json.decode(read_regular(self._file), type=tuple[Token, ...])
            except FileNotFoundError:
                found = ()
            except (OSError, ValueError) as error:
                raise StoreError(f"{self._file} cannot be read: {error}; remove it, and make new tokens") from error
            self._tokens = {each.id: each for each in found}
        return self._tokens

    def _write(self, tokens: Iterable[Token]) -> None:
        written = tuple(tokens)
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(self._file, msgspec.json.encode(written), mode=0o600)
        except OSError as error:
            raise StoreError(f"the tokens cannot be stored: {explained(error)}") from error
        self._tokens = {each.id: each for each in written}
