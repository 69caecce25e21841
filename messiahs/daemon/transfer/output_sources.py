"""Outputs of attempts on this machine: as they are written, or as sources of bytes for threads (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

from messiahs.core import queries
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.output_names import STDOUT
from messiahs.daemon.storage.hashing import HashBeside
from messiahs.daemon.transfer.followers import Followers
from messiahs.errors import ChannelError, ExecutorError
from messiahs.executor.contract import Changing, Executor
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import ReadRequest

PIECE_BYTES: Final = 65_536
"""A reader that is slow keeps a few of these in memory."""
_BEGINNING_BYTES = 1 << 20
_FIRST_LOOK_SECONDS, _LOOK_SECONDS = 0.05, 0.5
"""For so long an attempt may have begun to write, or ended, unseen by who follows it before; at first less."""
_GAP_SECONDS = 0.005


class OwnOutputs:
    """Answers requests for outputs of this machine, once it is known who may read them."""

    def __init__(self, executor: Executor | None, module: RecordedModule) -> None:
        self._executor, self._module = executor, module
        self._followers = Followers()

    def read(self, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        """Yield what an attempt wrote, and with `follow` what it writes."""

        def has_ended() -> bool:
            return not (
                request.follow and queries.is_executing(self._module.state, request.attempt, claim=request.claim)
            )

        attempt = self._attempt(request)
        output = self._follow(attempt, request.name, has_ended=has_ended, offset=request.offset_bytes)
        return self._noting(output, attempt, offset=request.offset_bytes) if self._is_shown(request) else output

    def _is_shown(self, request: ReadRequest) -> bool:
        """Whether somebody follows what an attempt shows in its terminal."""
        is_followed = request.follow and request.name == STDOUT
        return is_followed and queries.has_terminal(self._module.state, request.attempt, claim=request.claim)

    async def _noting(
        self, output: AsyncGenerator[bytes, None], attempt: AttemptId, *, offset: int
    ) -> AsyncGenerator[bytes, None]:
        """Pass pieces on, and let the attempt show more when each was taken."""
        async with aclosing(output):
            async for piece in output:
                yield piece
                offset += len(piece)
                self._own().note_read(attempt, offset)

    async def _follow(
        self, attempt: AttemptId, name: str, *, has_ended: Callable[[], bool], offset: int
    ) -> AsyncGenerator[bytes, None]:
        """Read what an attempt writes on this machine; until `has_ended`, wait for more at the end of the file.

        What it writes is read at once, but at most so often that many small writes are read together.
        """
        watch: Changing | None = None
        pause = _FIRST_LOOK_SECONDS
        try:
            while True:
                ended = has_ended()
                if watch is None and not ended:
                    # Before the file is read: what is written meanwhile wakes the next wait.
                    watch = self._own().watch_output(attempt, name)
                piece = read_piece(self._own(), attempt, name=name, offset=offset, limit=PIECE_BYTES)
                if piece:
                    offset += len(piece)
                    yield piece
                    await asyncio.sleep(0 if ended or len(piece) == PIECE_BYTES else _GAP_SECONDS)
                elif ended:
                    return
                elif watch is None:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LOOK_SECONDS)
                else:
                    await self._followers.changed(watch, has_ended)
        finally:
            if watch is not None:
                watch.close()

    def open(self, request: ReadRequest, *, is_hashed: bool) -> "AttemptOutput":
        """Open a large output of an ended attempt."""
        offset, name = request.offset_bytes, request.name
        return AttemptOutput(self._own(), self._attempt(request), name=name, offset=offset, is_hashed=is_hashed)

    def _attempt(self, request: ReadRequest) -> AttemptId:
        return queries.local_id(self._module.state, request.claim, request.attempt)

    def _own(self) -> Executor:
        assert self._executor is not None, "an attempt of this machine has an executor"
        return self._executor


class AttemptOutput:
    """What an ended attempt wrote from an offset on; all of it is hashed for another module (mutable)."""

    def __init__(
        self, executor: Executor, attempt: AttemptId, *, name: str, offset: int = 0, is_hashed: bool = False
    ) -> None:
        self._executor, self._attempt, self._name, self._offset = executor, attempt, name, offset
        self._hash = HashBeside() if is_hashed else None
        self._unhashed_bytes = offset if is_hashed else 0
        self._is_closed = False
        self.sha256 = b""

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes; `FileNotFoundError` if the output is gone permanently."""
        if self._is_closed:
            raise ChannelError("the stream was closed")
        if self._hash is not None:
            # The caller sent the last piece from this buffer while it was hashed.
            self._hash.wait()
            self._hash_beginning(self._hash)
        with _as_errors_of_channels():
            size = self._executor.read_output_into(self._attempt, self._name, buffer, offset=self._offset)
        self._offset += size
        if self._hash is not None and size:
            self._hash.add(buffer[:size])
        elif self._hash is not None:
            self.sha256 = self._hash.digest()
        return size

    def _hash_beginning(self, hashing: HashBeside) -> None:
        """Hash what the reader has already, once."""
        at, end = 0, self._unhashed_bytes
        self._unhashed_bytes = 0
        buffer = memoryview(bytearray(min(end, _BEGINNING_BYTES)))
        while at < end and not self._is_closed:
            with _as_errors_of_channels():
                size = self._executor.read_output_into(self._attempt, self._name, buffer[: end - at], offset=at)
            if not size:
                return
            hashing.add(buffer[:size])
            hashing.wait()
            at += size

    def close(self) -> None:
        """End the source; repeated calls are allowed."""
        self._is_closed = True
        if self._hash is not None:
            self._hash.close()


def read_piece(executor: Executor, attempt: AttemptId, *, name: str, offset: int, limit: int) -> bytes:
    """Read a piece of an output; `FileNotFoundError` if it is gone permanently, else `ChannelError`."""
    with _as_errors_of_channels():
        return executor.read_output(attempt, name, offset=offset, limit=limit)


@contextmanager
def _as_errors_of_channels() -> Iterator[None]:
    try:
        yield
    except ExecutorError as error:
        if error.transient:
            raise ChannelError(str(error), public="the output cannot be read now") from error
        raise FileNotFoundError(str(error)) from error
