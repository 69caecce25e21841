"""Files that are on their way to this module now: each comes once for all claims of its supplier (MESSIAHS 5.3.3).

Both those for tasks of this machine and those that pass and are stored here: they share a disk, and drafts.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Protocol

from messiahs.core.model.ids import ClaimId
from messiahs.daemon.storage.files import draft_name
from messiahs.wire.codec import PutFile

_BEGINNING_SECONDS: Final = 10.0
_LEAST_BYTES_PER_SECOND: Final = 1 << 20


class Writer(Protocol):
    """A receipt that writes files."""

    @property
    def left_bytes(self) -> int:
        """Bytes that it is still going to write."""


@dataclass(slots=True, eq=False)
class Upload:
    """Files that a user sends together (mutable)."""

    supplier: str
    size_bytes: int
    file_count: int = 1
    begun_seconds: float | None = None
    """When it began to come, by the monotonic clock."""
    written_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """Bytes for which it keeps room: all that are still to come, and none while it `is_slow`."""
        return 0 if self.is_slow else max(0, self.size_bytes - self.written_bytes)

    @property
    def is_slow(self) -> bool:
        """Whether it has come at less than 1 MiB/s, after 10 s for the beginning."""
        if self.begun_seconds is None:
            return False
        due_bytes = (monotonic() - self.begun_seconds - _BEGINNING_SECONDS) * _LEAST_BYTES_PER_SECOND
        return self.written_bytes < min(due_bytes, self.size_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class _Underway:
    """A file that a stream of a claim brings."""

    writer: Writer
    claim: ClaimId
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)


class UnderwayFiles:
    """Which receipt writes a file of a supplier; two at once would write one draft. Belongs to the event loop."""

    def __init__(self) -> None:
        self._underway: dict[tuple[str, bytes], _Underway] = {}
        self.uploads: set[Upload] = set()
        """What users of this module bring; these files have no drafts that others could continue."""

    @property
    def left_bytes(self) -> int:
        """Bytes that are going to be written, for which there must be room."""
        writers = {*self.uploads, *(underway.writer for underway in self._underway.values())}
        return sum(writer.left_bytes for writer in writers)

    @property
    def drafts(self) -> set[str]:
        """The names of the drafts that are being written."""
        return {draft_name(sha256, supplier) for supplier, sha256 in self._underway}

    def hashes(self, supplier: str) -> set[bytes]:
        """Return the files that a supplier is sending."""
        return {sha256 for each, sha256 in self._underway if each == supplier}

    def begin(self, writer: Writer, claim: ClaimId, supplier: str, files: Iterable[PutFile], /) -> None:
        """Note that a receipt writes files, also instead of an earlier one of its claim."""
        for one in files:
            earlier = self._underway.get((supplier, one.sha256))
            self._underway[supplier, one.sha256] = _Underway(writer, claim)
            if earlier is not None:
                earlier.has_ended.set()

    def others(self, claim: ClaimId, supplier: str, files: Iterable[PutFile], /) -> list[PutFile]:
        """Return the files that streams of other claims bring."""
        known = ((one, self._underway.get((supplier, one.sha256))) for one in files)
        return [one for one, underway in known if underway is not None and underway.claim != claim]

    async def wait(self, supplier: str, files: Iterable[PutFile], /) -> None:
        """Wait until the receipts that write these files have written them, or broken off."""
        for one in files:
            while (underway := self._underway.get((supplier, one.sha256))) is not None:
                await underway.has_ended.wait()

    def end(self, writer: Writer) -> None:
        """Note that a receipt writes nothing more; repeated calls are allowed."""
        for key in [key for key, underway in self._underway.items() if underway.writer is writer]:
            self._underway.pop(key).has_ended.set()
