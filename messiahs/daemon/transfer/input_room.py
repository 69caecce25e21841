"""Room for inputs on the disk of this module: what no task needs any more makes room for what comes.

Users of this module, its neighbors, and the watch of its disk ask for room in the same way. What stays is what a task
that has not ended names; what was stored or asked for in the last minutes, as a task that names it may follow; and
what the user of a task that failed lately may retry.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from messiahs.config.disk import size_of
from messiahs.daemon.storage.files import PRESSURE_SECONDS, FileStore, stored_bytes
from messiahs.daemon.transfer.underway_files import UnderwayFiles

Spent = Mapping[bytes, float]
"""Inputs that only tasks needed which have ended, and that no user can retry here, unless they are in use.

Each has the time since which it must not have been used, in seconds since 1970.
"""
_MIB: Final = 1 << 20


@dataclass(slots=True, eq=False)
class Upload:
    """A file that a user sends (mutable)."""

    left_bytes: int
    """Bytes that it is still going to write."""

    async def counted(self, pieces: AsyncIterable[bytes | memoryview]) -> AsyncIterator[bytes | memoryview]:
        """Yield pieces that are written."""
        async for piece in pieces:
            yield piece
            self.left_bytes = max(0, self.left_bytes - len(piece))


class InputRoom:
    """Looks for room on the disk of a store of files; belongs to the event loop."""

    def __init__(
        self,
        files: FileStore,
        underway: UnderwayFiles,
        *,
        in_use: Callable[[], Collection[bytes]],
        spent: Callable[[], Callable[[], Spent]],
    ) -> None:
        self._files, self._underway, self._in_use, self._spent = files, underway, in_use, spent

    def has(self, needed_bytes: int) -> bool:
        """Whether the disk has room for so many bytes beside those that are on their way."""
        return needed_bytes <= self._files.free_bytes() - self._underway.left_bytes

    async def make(self, needed_bytes: int = 0) -> bool:
        """Return whether the disk has room for so many bytes, after files that no task needs were deleted for them.

        There is no await after that, so two who ask cannot get the same room.
        """
        if not self.has(needed_bytes):
            # Both of one instant: what is submitted later uses its files later, too.
            finding, in_use = self._spent(), self._in_use()
            wanted_bytes = needed_bytes + self._underway.left_bytes
            await asyncio.to_thread(self._delete, wanted_bytes, in_use, finding)
        return self.has(needed_bytes)

    async def drop_unused(self) -> None:
        """Delete all files that were unused for a while."""
        await asyncio.to_thread(self._files.collect, self._in_use(), unused_seconds=PRESSURE_SECONDS)

    def _delete(self, wanted_bytes: int, in_use: Collection[bytes], finding: Callable[[], Spent]) -> None:
        self._files.make_room(wanted_bytes, in_use, unused_seconds=PRESSURE_SECONDS, spent=finding())

    @contextmanager
    def kept_for(self, upload: Upload) -> Iterator[None]:
        """Keep the room of an upload from others."""
        self._underway.uploads.add(upload)
        try:
            yield
        finally:
            self._underway.uploads.discard(upload)

    async def shortage(self) -> str:
        """Return what fills the disk, and what helps."""
        return await asyncio.to_thread(partial(self._shortage, self._in_use()))

    def _shortage(self, in_use: Collection[bytes]) -> str:
        inputs, disk = stored_bytes(self._files.root), size_of(self._files.root)[0]
        sizes = map(self._files.size, in_use)
        needed = sum(size for size in sizes if size is not None)
        return (
            f"inputs take {inputs // _MIB} MiB of {disk // _MIB} MiB, {needed // _MIB} MiB of them for tasks that have "
            "not ended; wait until some have, forget ended ones with their outputs (`messiahs clean`), or free other "
            "space on that disk"
        )
