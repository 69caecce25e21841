"""Outputs of tasks at their origin: small ones beside the rows, large ones as files (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from messiahs.channel.byte_streams.bulk_streams import LEAST_BYTES_PER_SECOND, SILENCE_SECONDS
from messiahs.channel.byte_streams.byte_threads import BUFFER_BYTES, in_own_thread
from messiahs.channel.contract import Channels, OutputSource
from messiahs.config.disk import FULL, Writeback, free_bytes, read_piece, write_sparsely
from messiahs.config.whole_files import sync_folder
from messiahs.core.interface.actions import FetchOutputs
from messiahs.core.interface.output_events import OutputsFailed
from messiahs.core.model.ids import AttemptId, SystemId, TaskId
from messiahs.core.model.output_names import DECLARED_PREFIX
from messiahs.core.model.task_files import Output
from messiahs.daemon.storage.hashing import HashBeside
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.errors import ChannelError, MessiahsError, NoRoomError, ProtocolError, RefusedError
from messiahs.wire.codec import ReadRequest

SMALL_BYTES = 65_536
_SMALL_TOGETHER_BYTES = 1_048_576
"""Larger outputs of one attempt are stored as files, not beside the rows."""
_TOO_SLOW = f"too little arrived: nothing for long, or less than {LEAST_BYTES_PER_SECOND} bytes a second"
_RESERVED_AHEAD_BYTES = 64 * 1_048_576
"""Maximum space reserved for one attempt, so that announced outputs alone cannot exhaust the disk."""
_PART, _WHOLE = ".part", ".whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds for outputs in transit.

    `room` returns the free bytes on the disk of a folder. An executor that sends nothing for `silence_seconds`, while
    it should, counts as unreachable.
    """

    room: Callable[[Path], int] = free_bytes
    silence_seconds: float = SILENCE_SECONDS


class Outputs:
    """The outputs of this module's tasks; `home` is the folder of the large ones, with a folder for each submission."""

    def __init__(
        self,
        home: Path,
        store: RowStore,
        *,
        own: SystemId,
        channels: Channels,
        here: OwnOutputs,
        bounds: Bounds | None = None,
    ) -> None:
        self.home, self._store, self._bounds = home, store, bounds or Bounds()
        self._own, self._channels, self._here = own, channels, here
        self._reserved: dict[AttemptId, int] = {}
        """Bytes that are still missing of the outputs in transit."""

    async def bring_home(self, action: FetchOutputs) -> tuple[KeepOutput, ...]:
        """Fetch all outputs of an attempt; large ones are on disk when this returns, small ones are for the store.

        Raises `FileNotFoundError` or `PermissionError` if the executor does not have them, `ProtocolError` if they
        differ from its announcement, `NoRoomError`, an `OSError` of this disk, else `ChannelError`. After that one or a
        cancellation, a later call continues with what has arrived of large outputs, until `discard`; nothing is left
        after any other error.
        """
        attempt = action.attempt
        await asyncio.to_thread(self._discard_others, attempt)
        large, small = self._divided(action)
        drafts = [_DraftOutput(self._path(attempt.task, output.name), attempt.number) for output in large]
        here_bytes = sum(draft.here_bytes for draft in drafts)
        self._reserve(attempt, sum(output.size_bytes for output in action.outputs) - here_bytes)
        kept: list[KeepOutput] = []
        try:
            for output, draft in zip(large, drafts, strict=True):
                await self._write_file(action, output, draft)
            for output in small:
                body = b"".join([piece async for piece in self._pieces(action, output)])
                self._path(attempt.task, output.name).unlink(missing_ok=True)
                kept.append(KeepOutput(task=attempt.task, name=output.name, body=body))
            for draft in drafts:
                draft.finish()
            if drafts:
                await asyncio.to_thread(_sync_way, drafts[0].target.parent)
        except (MessiahsError, OSError) as error:
            if isinstance(error, ProtocolError) or not isinstance(error, ChannelError):
                self.discard(attempt)
            raise
        finally:
            del self._reserved[attempt]
        return tuple(kept)

    def discard(self, attempt: AttemptId) -> None:
        """Delete what has arrived of the outputs of an attempt whose fetch does not continue."""
        for path in self._path(attempt.task, "stdout").parent.glob(f"*.{attempt.number}.*"):
            path.unlink(missing_ok=True)

    def _discard_others(self, attempt: AttemptId) -> None:
        """Delete what has arrived of earlier attempts of the task."""
        folder = self._path(attempt.task, "stdout").parent
        for path in (*folder.glob(f"*{_PART}"), *folder.glob(f"*{_WHOLE}")):
            if f".{attempt.number}." not in path.name:
                path.unlink(missing_ok=True)

    def _divided(self, action: FetchOutputs) -> tuple[list[Output], list[Output]]:
        """Return the outputs for files, and those for the store; empty ones are omitted if none can be there."""
        large: list[Output] = []
        small: list[Output] = []
        room = _SMALL_TOGETHER_BYTES
        for output in action.outputs:
            if output.size_bytes > min(SMALL_BYTES, room):
                large.append(output)
            elif output.is_file and (output.size_bytes or action.attempt.number > 1):
                room -= output.size_bytes
                small.append(output)
        return large, small

    def read(self, task: TaskId, name: str, *, offset: int, limit: int) -> bytes:
        """Read from a fetched output; empty at its end."""
        try:
            with self._path(task, name).open("rb", buffering=0) as file:
                return read_piece(file.fileno(), offset=offset, limit=limit)
        except FileNotFoundError:
            return (self._store.output(task, name) or b"")[offset : offset + limit]

    def read_declared(self, task: TaskId, name: str, *, offset: int, limit: int) -> bytes:
        """Read from a declared output."""
        return self.read(task, f"{DECLARED_PREFIX}{name}", offset=offset, limit=limit)

    def stored_bytes(self, submission: TaskId) -> int:
        """Return the size of all outputs of a submission that are here."""
        files = (self.home / str(submission.number)).rglob("*")
        return self._store.outputs_bytes(submission) + sum(map(_size_of, files))

    def _path(self, task: TaskId, name: str) -> Path:
        # A hash instead of the path that the task chose: paths cannot conflict, and none is too long.
        file = f"work-{hashlib.sha256(name.encode()).hexdigest()}" if name.startswith(DECLARED_PREFIX) else name
        return self.home / str(task.number) / str(task.member) / file

    def _reserve(self, attempt: AttemptId, size_bytes: int) -> None:
        """Reserve space for outputs before the first byte arrives, because several attempts may be fetched at once.

        Small ones may always try, so that tasks can end on a disk that is nearly full.
        """
        if size_bytes > _SMALL_TOGETHER_BYTES and size_bytes > self._free_bytes() - self._reserved_bytes():
            raise NoRoomError(f"the disk of {self._own} has no room for {size_bytes} bytes of outputs")
        self._reserved[attempt] = size_bytes

    def _reserved_bytes(self) -> int:
        return sum(min(left, _RESERVED_AHEAD_BYTES) for left in self._reserved.values())

    def _free_bytes(self) -> int:
        return self._bounds.room(self.home.parent)

    async def _write_file(self, action: FetchOutputs, output: Output, draft: "_DraftOutput") -> None:
        if draft.is_whole:
            return
        await asyncio.to_thread(draft.target.parent.mkdir, parents=True, exist_ok=True)
        offset = draft.here_bytes
        if offset > output.size_bytes:
            raise ProtocolError(f"{output.name} is shorter than what has arrived of it")
        source = await self._large_source(action, output, offset)
        is_compared = action.leg.system != self._own
        writing = _Writing(output, source, offset=offset, room=self._free_bytes, is_compared=is_compared)
        try:
            await self._watch(action, writing, draft.part)
        except DamagedError:
            # The next try begins anew.
            draft.part.unlink(missing_ok=True)
            raise
        finally:
            source.close()
        draft.part.replace(draft.whole)

    async def _watch(self, action: FetchOutputs, writing: "_Writing", draft: Path) -> None:
        """Write an output in a thread, as long as enough of it arrives."""
        clock = asyncio.get_running_loop().time
        slow_at, arrived_bytes = clock() + self._bounds.silence_seconds, writing.written_bytes
        task = asyncio.create_task(in_own_thread(lambda: writing.write(draft), stop=writing.close))
        try:
            while True:
                await asyncio.wait({task}, timeout=min(self._bounds.silence_seconds, max(0, slow_at - clock())))
                more = writing.written_bytes - arrived_bytes
                self._reserved[action.attempt] -= more
                arrived_bytes += more
                slow_at += more / LEAST_BYTES_PER_SECOND
                if task.done():
                    return await task
                if not more or clock() >= slow_at:
                    raise ChannelError(_TOO_SLOW)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _large_source(self, action: FetchOutputs, output: Output, offset: int) -> OutputSource:
        request = replace(_request(action, output), offset_bytes=offset)
        if action.leg.system == self._own:
            return self._here.open(request, is_hashed=False)
        try:
            async with asyncio.timeout(self._bounds.silence_seconds):
                return await self._channels.open_read(
                    action.leg.system, action.leg.address, request, size_bytes=output.size_bytes - offset
                )
        except TimeoutError as error:
            raise ChannelError(_TOO_SLOW) from error

    async def _pieces(self, action: FetchOutputs, output: Output) -> AsyncGenerator[bytes, None]:
        """Yield an output of exactly the announced size; waiting for a piece is bounded."""
        if not output.size_bytes:
            return
        left = output.size_bytes
        clock = asyncio.get_running_loop().time
        slow_at = clock() + self._bounds.silence_seconds
        async with aclosing(self._source(action, output)) as source:
            while (
                piece := await _next(source, until=min(slow_at, clock() + self._bounds.silence_seconds))
            ) is not None:
                left -= len(piece)
                slow_at += len(piece) / LEAST_BYTES_PER_SECOND
                if left < 0:
                    raise ProtocolError(f"{action.leg.system} sends more of {output.name} than it announced")
                self._reserved[action.attempt] -= len(piece)
                yield piece
        if left:
            raise ProtocolError(f"{output.name} at {action.leg.system} is {left} bytes shorter than announced")

    def _source(self, action: FetchOutputs, output: Output) -> AsyncGenerator[bytes, None]:
        if action.leg.system == self._own:
            return self._here.read(_request(action, output))
        return self._channels.fetch(action.leg.system, action.leg.address, _request(action, output))


class DamagedError(ChannelError):
    """What has arrived of an output is not what its executor sent."""


class _DraftOutput:
    """A large output on its way: a part of it, or all of it until the other outputs are here, too."""

    def __init__(self, target: Path, attempt: int) -> None:
        self.target = target
        self.part = target.with_name(f"{target.name}.{attempt}{_PART}")
        self.whole = target.with_name(f"{target.name}.{attempt}{_WHOLE}")

    @property
    def is_whole(self) -> bool:
        """Whether all of it has arrived, and is durable."""
        return self.whole.exists()

    @property
    def here_bytes(self) -> int:
        """How much has arrived."""
        for path in (self.whole, self.part):
            with suppress(FileNotFoundError):
                return path.stat().st_size
        return 0

    def finish(self) -> None:
        """Put it in its place."""
        self.whole.replace(self.target)


class _Writing:
    """Writes a large output to a file in a thread, and compares it with its announcement (mutable).

    The source begins at `offset`, up to which the file is here. With `is_compared`, the hash that the source reports at
    the end is compared, too.
    """

    def __init__(
        self, output: Output, source: OutputSource, *, offset: int, room: Callable[[], int], is_compared: bool
    ) -> None:
        self.written_bytes = self._began_at = offset
        self._output, self._source, self._room = output, source, room
        self._hash = HashBeside() if is_compared else None

    def write(self, draft: Path) -> None:
        """Return when the output is complete and durable."""
        try:
            with draft.open("r+b" if self.written_bytes else "wb") as file:
                self._read_again(file)
                self._write_all(file)
                file.truncate(self._output.size_bytes)
                file.flush()
                os.fsync(file.fileno())
        finally:
            if self._hash is not None:
                self._hash.close()

    def close(self) -> None:
        """Make `write` end soon."""
        self._source.close()

    def _read_again(self, file: BinaryIO) -> None:
        """Hash what is here, so that damage is noticed at the end."""
        left = self.written_bytes
        while left and self._hash is not None:
            piece = file.read(min(left, BUFFER_BYTES))
            self._hash.add(memoryview(piece))
            self._hash.wait(unhashed=1)
            left -= len(piece)
        file.seek(self.written_bytes)

    def _write_all(self, file: BinaryIO) -> None:
        name, size_bytes = self._output.name, self._output.size_bytes
        buffers = cycle((memoryview(bytearray(BUFFER_BYTES)), memoryview(bytearray(BUFFER_BYTES))))
        writeback = Writeback(self.written_bytes)
        while size := self._source.read_into(buffer := next(buffers)):
            if self.written_bytes + size > size_bytes:
                raise ProtocolError(f"its executor sends more of {name} than it announced")
            if size_bytes > _SMALL_TOGETHER_BYTES and size > self._room():
                raise NoRoomError(f"the disk has no room for the rest of {name}")
            write_sparsely(file, buffer[:size])
            if self._hash is not None:
                # The other buffer is filled next; this one may still be hashed then.
                self._hash.wait()
                self._hash.add(buffer[:size])
            self.written_bytes += size
            writeback.follow(file.fileno(), self.written_bytes)
        if self.written_bytes < size_bytes:
            left = size_bytes - self.written_bytes
            raise ProtocolError(f"{name} at its executor is {left} bytes shorter than announced")
        # A resumed read has no hash if an earlier release sent it.
        is_known = bool(self._source.sha256) or not self._began_at
        if self._hash is not None and is_known and self._hash.digest() != self._source.sha256:
            raise DamagedError(f"{name} arrived incomplete or damaged")


def _request(action: FetchOutputs, output: Output) -> ReadRequest:
    return ReadRequest(claim=action.claim, ticket=action.leg.ticket, attempt=action.attempt, name=output.name)


def failure_of(action: FetchOutputs, error: MessiahsError | OSError, *, has_other_leg: bool = False) -> OutputsFailed:
    """Convert an error to the core's event about outputs that were not fetched.

    With `has_other_leg`, the outputs may be reached on another one.
    """
    is_full = isinstance(error, NoRoomError) or (isinstance(error, OSError) and error.errno in FULL)
    is_gone = isinstance(error, FileNotFoundError | PermissionError | ProtocolError) and not is_full
    return OutputsFailed(
        attempt=action.attempt,
        leg=action.leg,
        text=str(error),
        is_gone=is_gone and not has_other_leg,
        is_full=is_full,
        is_refused=isinstance(error, RefusedError),
    )


def _sync_way(folder: Path) -> None:
    """Return when the folder's list of files is durable, and those of the folders above it, which may be new."""
    for each in (folder, *folder.parents[:3]):
        sync_folder(each)


async def _next(source: AsyncGenerator[bytes, None], *, until: float) -> bytes | None:
    try:
        async with asyncio.timeout_at(until):
            return await anext(source, None)
    except TimeoutError as error:
        raise ChannelError(_TOO_SLOW) from error


def _size_of(path: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    return found.st_size if S_ISREG(found.st_mode) else 0
