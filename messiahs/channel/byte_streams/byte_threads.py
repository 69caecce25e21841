"""Threads that move the bytes of large files, beside the event loop (MESSIAHS 5.3.3)."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

from messiahs.channel.contract import ByteSource
from messiahs.errors import ChannelError

BUFFER_BYTES: Final = 1 << 20
"""Size of the buffer between two ends of a stream."""

Result = TypeVar("Result")


async def in_own_thread(work: Callable[[], Result], /, *, stop: Callable[[], None]) -> Result:
    """Run blocking work in a thread of its own, because the shared ones are few and work may take hours.

    A cancellation calls `stop`, which makes the work end soon, and waits for that.
    """
    done: Future[Result] = Future()
    threading.Thread(target=_run, args=(work, done), name="bytes", daemon=True).start()
    waiting = asyncio.wrap_future(done)
    # The error of a thread that was stopped is of no interest, and a second cancellation may come before it.
    waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait({waiting})
        raise


def _run(work: Callable[[], Result], done: "Future[Result]") -> None:
    done.set_running_or_notify_cancel()
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - raised again in the event loop
        done.set_exception(error)
    else:
        done.set_result(result)


class Pump:
    """A task of the event loop that feeds a source; `close` may be called from any thread."""

    def __init__(self, feeding: Coroutine[None, None, None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(feeding)

    def close(self, and_then: Callable[[], None] = lambda: None) -> None:
        """End the task, and call a function in its event loop; repeated calls are allowed."""
        with suppress(RuntimeError):
            # The event loop may have ended.
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._loop.call_soon_threadsafe(and_then)


class Part:
    """The next bytes of a source, as a source that ends after them. Closing it leaves the whole source open."""

    def __init__(self, whole: ByteSource, size_bytes: int) -> None:
        self._whole, self._left_bytes = whole, size_bytes

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        if not self._left_bytes:
            return 0
        size = self._whole.read_into(buffer[: self._left_bytes])
        self._left_bytes -= size
        return size

    def close(self) -> None:
        """Leave the rest to others."""


class FrameSource:
    """Pieces that an event loop receives, as a source for one thread (mutable). `put` waits while many are unread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[memoryview] = deque()
        self._unread_bytes = 0
        self._end: Exception | None = None
        self._has_ended = False
        self._changed = threading.Condition()
        self._has_room = asyncio.Event()

    async def put(self, piece: bytes) -> None:
        """Append a piece; called in the event loop."""
        if not piece:
            # A reader would take nothing for the end.
            return
        with self._changed:
            if self._has_ended:
                return
            self._pieces.append(memoryview(piece))
            self._unread_bytes += len(piece)
            self._has_room.clear()
            is_full = self._unread_bytes >= BUFFER_BYTES
            self._changed.notify()
        if is_full:
            await self._has_room.wait()

    def end(self, error: Exception | None = None) -> None:
        """End the source after the pieces that were put, or fail there; only the first call counts."""
        with self._changed:
            if not self._has_ended:
                self._end, self._has_ended = error, True
            self._changed.notify()

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._has_ended)
            if not self._pieces:
                if self._end is not None:
                    raise self._end
                return 0
            piece = self._pieces.popleft()
            size = min(len(piece), len(buffer))
            if size < len(piece):
                self._pieces.appendleft(piece[size:])
            was_full = self._unread_bytes >= BUFFER_BYTES
            self._unread_bytes -= size
            is_resumed = was_full and self._unread_bytes < BUFFER_BYTES
        buffer[:size] = piece[:size]
        if is_resumed:
            self._loop.call_soon_threadsafe(self._has_room.set)
        return size

    def close(self) -> None:
        """Drop what is unread, and fail a read in progress; called in the event loop or in another thread."""
        with self._changed:
            self._pieces.clear()
            self._unread_bytes = 0
            self._end, self._has_ended = self._end or ChannelError("the stream was closed"), True
            self._changed.notify()
        with suppress(RuntimeError):
            # The event loop may have ended.
            self._loop.call_soon_threadsafe(self._has_room.set)
