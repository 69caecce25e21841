"""Records that must outlive a starter: which attempts it began, and how they ended.

Two files alternate: when the current one has grown, all records that are still valid are written to the other, which
becomes the current one. Both are opened before the starter gives up root, so that tasks, which run under the starter's
later account, cannot touch them. A batch of records is one write. Written records survive the starter; after a crash of
the machine only the boot id matters, which is synced.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from messiahs.core.model.ids import AttemptId
from messiahs.executor.attempt_values import Ended
from messiahs.executor.protocol.frames import FrameReader, encode_frames

_GROWN_BYTES = 4 << 20
_GROWTH = 4


class Opened(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Begins a file. The complete file with the highest generation is valid."""

    generation: int
    boot_id: str


class Complete(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """All records that were valid when the file was begun have been written."""


class Began(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """An attempt is about to be started; it will never be started again."""

    attempt: AttemptId


class Spawned(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The process of an attempt (recorded where the starter's death does not end it)."""

    attempt: AttemptId
    pid: int
    started: int


class Finished(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """An attempt ended."""

    ended: Ended


class Discarded(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """An attempt need not be remembered."""

    attempt: AttemptId


Record = Opened | Complete | Began | Spawned | Finished | Discarded


@dataclass(slots=True)
class Remembered:
    """Content of the journal (mutable while it is read): attempts that began, their processes and ends."""

    boot_id: str | None = None
    generation: int = 0
    is_complete: bool = False
    began: dict[AttemptId, Spawned | None] = field(default_factory=dict)
    ended: dict[AttemptId, Ended] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add one record, in the order of writing."""
        match record:
            case Opened():
                self.boot_id, self.generation = record.boot_id, record.generation
            case Complete():
                self.is_complete = True
            case Began():
                self.began[record.attempt] = None
            case Spawned():
                if record.attempt in self.began:
                    self.began[record.attempt] = record
            case Finished():
                self.began.pop(record.ended.attempt, None)
                self.ended[record.ended.attempt] = record.ended
            case Discarded():
                self.began.pop(record.attempt, None)
                self.ended.pop(record.attempt, None)


class Journal:
    """The two files, and how much the current one has grown since it was begun."""

    def __init__(self, directory: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._files = [os.open(directory / f"journal.{number}", flags, 0o600) for number in (0, 1)]
        self._encoder = msgspec.msgpack.Encoder()
        self._current = 0
        self._generation = 0
        self._size = 0
        self._size_when_begun = 0

    def read(self) -> Remembered:
        """Return the content of the newest complete file; empty if there is none."""
        candidates = [_read(file) for file in self._files]
        complete = [number for number in (0, 1) if candidates[number].is_complete]
        self._generation = max(candidate.generation for candidate in candidates)
        if not complete:
            return Remembered()
        self._current = max(complete, key=lambda number: candidates[number].generation)
        return candidates[self._current]

    def write(self, records: Sequence[Record]) -> bool:
        """Append a batch in one write; False if the disk has no room, and then nothing was written."""
        data = encode_frames(self._encoder, records)
        file = self._files[self._current]
        try:
            is_whole = os.write(file, data) == len(data)
        except OSError:
            is_whole = False
        if not is_whole:
            os.ftruncate(file, self._size)
            return False
        self._size += len(data)
        return True

    @property
    def has_grown(self) -> bool:
        """Whether most of the file is no longer needed."""
        return self._size > max(_GROWN_BYTES, _GROWTH * self._size_when_begun)

    def begin_anew(self, boot_id: str, truths: Iterable[Record]) -> None:
        """Switch to the other file, which starts with all valid records; an `OSError` leaves everything unchanged.

        The first call after `read` decides which file is written.
        """
        file = self._files[1 - self._current]
        self._generation += 1
        records = [Opened(generation=self._generation, boot_id=boot_id), *truths, Complete()]
        data = encode_frames(self._encoder, records)
        os.ftruncate(file, 0)
        if os.write(file, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        self._current = 1 - self._current
        self._size = self._size_when_begun = len(data)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)


def _read(file: int) -> Remembered:
    remembered = Remembered()
    decoder = msgspec.msgpack.Decoder(list[Record])
    os.lseek(file, 0, os.SEEK_SET)
    frames = FrameReader()
    while chunk := os.read(file, 1 << 20):
        for body in frames.feed(chunk):
            try:
                records = decoder.decode(body)
            except ValueError:
                # Half written when the machine crashed; nothing after it was relied on.
                return remembered
            for record in records:
                remembered.add(record)
    return remembered
