"""A mark beside the database that only grows, so that a database restored from a backup is older than its mark.

It records the instant of the latest commit, and an upper bound of the ids that were issued. The bound is written ahead,
in steps, before a commit that needs it; the instant follows commits by at most a second. The mark is thus never ahead
of an untouched database, and costs at most one write a second.
"""

import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import IdsGiven
from messiahs.core.model.instants import SECOND, Instant
from messiahs.errors import StoreError, explained

_STEP: Final = 1_024
_LENGTH: Final = 96
_NEVER: Final = Instant(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Content of a mark."""

    newest: Instant = _NEVER
    given: IdsGiven = field(default_factory=IdsGiven)


class Mark:
    """The file of a mark (mutable). An unreadable mark counts as none: `reached` is None."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.reached = _read(path)

    def reserve(self, given: IdsGiven) -> None:
        """Return when the mark covers these ids; a `StoreError` if it cannot be written."""
        reached = self.reached or Reached()
        if self.reached is not None and not given.exceeds(reached.given):
            return
        ahead = IdsGiven(submissions=_ahead(given.submissions), claims=_ahead(given.claims))
        try:
            self._write(replace(reached, given=ahead.joined(reached.given)))
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {explained(error)}") from error

    def follow(self, newest: Instant, *, at_once: bool = False) -> None:
        """Record a commit, if the last record is a second old; the next commit retries a failed write."""
        reached = self.reached
        if reached is None or newest <= reached.newest or (not at_once and newest - reached.newest < SECOND):
            return
        with suppress(OSError):
            self._write(replace(reached, newest=newest))

    def _write(self, reached: Reached) -> None:
        content = _content(reached)
        if self.reached is None:
            write_whole(self._path, content, mode=0o600)
        else:
            # In place, which works on a full disk; a sector is written completely or not at all.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.pwrite(descriptor, content, 0)
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        self.reached = reached


def _ahead(number: int) -> int:
    return -(-number // _STEP) * _STEP


def _content(reached: Reached) -> bytes:
    content = f"{reached.newest} {reached.given.submissions} {reached.given.claims}".encode()
    return (content + b" %08x" % zlib.crc32(content)).ljust(_LENGTH - 1) + b"\n"


def _read(path: Path) -> Reached | None:
    try:
        content = path.read_bytes()
        newest, submissions, claims = map(int, content.split()[:3])
    except (OSError, ValueError):
        return None
    reached = Reached(newest=Instant(newest), given=IdsGiven(submissions=submissions, claims=claims))
    return reached if content == _content(reached) else None
