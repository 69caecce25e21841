"""Room for inputs on the disk of this module: what no task needs any more makes room for what comes.

Users of this module, its neighbors, and the watch of its disk ask for room in the same way. What stays is what a task
that has not ended names; what was stored or asked for in the last minutes, as a task that names it may follow; and
what the user of a task that failed lately may retry.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Final

from messiahs.config.disk import size_of
from messiahs.daemon.storage.contents import stored_bytes
from messiahs.daemon.storage.files import PRESSURE_SECONDS, FileStore
from messiahs.daemon.storage.suppliers import Amount
from messiahs.daemon.transfer.underway_files import UnderwayFiles, Upload
from messiahs.errors import NoRoomError

Spent = Mapping[bytes, float]
"""Inputs that only tasks needed which have ended, and that no user can retry here, unless they are in use.

Each has the time since which it must not have been used, in seconds since 1970.
"""
_MIB: Final = 1 << 20
_FREE_SHARE: Final = 9
"""One part in so many of what a user has here must stay free for others."""
_RECOUNT_SECONDS: Final = 10.0
"""The files of a user are counted again before an upload is refused, at most once in this time."""


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
        self._recounted_at: dict[str, float] = {}
        """When the files of each supplier were counted again, in seconds of `monotonic`."""

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

    def _has_plenty(self, upload: Upload) -> bool:
        """Whether there is room for an upload, however much its user has here."""
        disk_bytes, disk_files = size_of(self._files.root)
        has_bytes = self.has(upload.left_bytes + disk_bytes // _FREE_SHARE)
        return has_bytes and self._can_make(upload.file_count + disk_files // _FREE_SHARE)

    def _needed(self, upload: Upload, held: Amount) -> Amount:
        """Return what must be free for an upload, with a ninth of what its user then has here."""
        theirs = [upload, *(one for one in self._underway.uploads if one.supplier == upload.supplier)]
        their_bytes = held.size_bytes + sum(one.written_bytes + one.left_bytes for one in theirs)
        their_files = held.file_count + sum(one.file_count for one in theirs)
        return Amount(
            file_count=upload.file_count + their_files // _FREE_SHARE,
            size_bytes=upload.left_bytes + their_bytes // _FREE_SHARE,
        )

    def _can_make(self, file_count: int) -> bool:
        """Whether the disk can have so many files beside those that are on their way."""
        free = self._files.free_files()
        return free is None or file_count <= free - sum(one.file_count for one in self._underway.uploads)

    def _delete(self, wanted_bytes: int, in_use: Collection[bytes], finding: Callable[[], Spent]) -> None:
        self._files.make_room(wanted_bytes, in_use, unused_seconds=PRESSURE_SECONDS, spent=finding())

    async def _why_no_room(self, upload: Upload, held: Amount) -> str:
        """Make room for an upload beside what its user has; return why there is none, or "".

        There is no await after the last look, so two who ask cannot get the same room.
        """
        needed = self._needed(upload, held)
        if not self._can_make(needed.file_count):
            await self.drop_unused()
        await self.make(needed.size_bytes)
        needed = self._needed(upload, held)
        has_files = self._can_make(needed.file_count)
        if has_files and self.has(needed.size_bytes):
            return ""
        what = f"{upload.size_bytes} bytes" if has_files else f"another {upload.file_count} files (inodes)"
        return f"the disk of this module has no room for {what}{_beside(held)}"

    def _begins_recount(self, supplier: str) -> bool:
        """Whether what a supplier has may be counted again, from now on."""
        now, earlier = monotonic(), self._recounted_at.get(supplier)
        if earlier is not None and now - earlier < _RECOUNT_SECONDS:
            return False
        self._recounted_at[supplier] = now
        return True

    @asynccontextmanager
    async def kept_for(self, upload: Upload) -> AsyncIterator[None]:
        """Keep the room for an upload from others; `NoRoomError` if there is none.

        A ninth of what its user then has here must stay free, of bytes and of files: so no user keeps others out,
        whatever they send or submit.
        """
        held = Amount()
        if not self._has_plenty(upload):
            held = await asyncio.to_thread(self._files.held_by, upload.supplier)
        why = await self._why_no_room(upload, held)
        if why and held.file_count and self._begins_recount(upload.supplier):
            held = await asyncio.to_thread(self._files.held_by, upload.supplier, is_counted_again=True)
            why = await self._why_no_room(upload, held)
        if why:
            raise NoRoomError(why)
        self._underway.uploads.add(upload)
        try:
            yield
        finally:
            self._underway.uploads.discard(upload)

    async def counted(
        self, upload: Upload, pieces: AsyncIterable[bytes | memoryview]
    ) -> AsyncIterator[bytes | memoryview]:
        """Yield pieces that are written; `NoRoomError` if they come too slowly and the room is taken."""
        if upload.begun_seconds is None:
            upload.begun_seconds = monotonic()
        async for piece in pieces:
            if upload.is_slow and not self.has(len(piece)):
                raise NoRoomError("the upload came at less than 1 MiB/s, and its room is taken")
            yield piece
            upload.written_bytes += len(piece)

    async def shortage(self) -> str:
        """Return what fills the disk, and what helps."""
        return await asyncio.to_thread(partial(self._shortage, self._in_use()))

    def _shortage(self, in_use: Collection[bytes]) -> str:
        inputs, (disk, disk_files) = stored_bytes(self._files.root), size_of(self._files.root)
        free_files = self._files.free_files()
        of_files = "" if free_files is None else f"; the disk can have {free_files} more files (of {disk_files})"
        sizes = map(self._files.size, in_use)
        needed = sum(size for size in sizes if size is not None)
        return (
            f"inputs take {inputs // _MIB} MiB of {disk // _MIB} MiB, {needed // _MIB} MiB of them for tasks that have "
            f"not ended{of_files}; wait until some have, forget ended ones with their outputs (`messiahs clean`), or "
            "free other space on that disk"
        )


def _beside(held: Amount) -> str:
    if not held.file_count:
        return ""
    return f" beside the {held.file_count} ({held.size_bytes // _MIB} MiB) that you have there"
