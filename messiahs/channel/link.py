"""One connection with a neighbor: its control channel and its update channel (MESSIAHS 5.3.1, 5.3.2)."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Final

from messiahs.channel.contract import Callbacks, Connection, Counters, Stream
from messiahs.core.interface.events import ControlReceived, Event, VectorReceived
from messiahs.core.interface.messages import ControlMessage, StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError, CodecError
from messiahs.wire.codec import (
    control_to_bytes,
    each_control_in,
    joined_control,
    status_vector_from_bytes,
    status_vector_to_bytes,
)

QUEUE_LIMIT_MESSAGES: Final = 16_384
QUEUE_LIMIT_BYTES: Final = 16 << 20
_WRITE_LIMIT_MESSAGES: Final = 1024
_WRITE_LIMIT_BYTES: Final = 256 << 10
_PARTING_SECONDS: Final = 1.0
"""If a call ends while something is on its way to the peer, that may not arrive."""


class Link:
    """A connection, from the agreement of both sides until it ends; `end` ends it permanently.

    Control messages are sent in the order of their queue, several in one write. Of each kind of vector, only the newest
    waits.
    """

    def __init__(self, peer: SystemId, connection: Connection, callbacks: Callbacks, counters: Counters) -> None:
        self.peer = peer
        self._connection, self._callbacks, self._counters = connection, callbacks, counters
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._vectors: dict[VectorKind, StatusVector] = {}
        self._has_control, self._has_vector = asyncio.Event(), asyncio.Event()
        self._is_parting = False
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is received any more."""
        return self._is_parting or self._ended.done()

    def end(self, text: str) -> None:
        """End the connection; the first text is its reason."""
        if not self._ended.done():
            self._ended.set_result(text)

    def part(self, text: str) -> None:
        """End the connection after what was sent has had time to arrive; nothing is received any more."""
        self._is_parting = True
        asyncio.get_running_loop().call_later(_PARTING_SECONDS, self.end, text)

    def send_control(self, message: ControlMessage) -> None:
        """Queue a message. A neighbor that does not keep up loses its connection, because no message may be skipped.

        It does nothing once the link has ended.
        """
        if self._ended.done():
            return
        try:
            content = control_to_bytes((message,))
        except CodecError as error:
            self._drop(str(error))
            return
        self._queue.append(content)
        self._queued_bytes += len(content)
        self._has_control.set()
        if len(self._queue) > QUEUE_LIMIT_MESSAGES or self._queued_bytes > QUEUE_LIMIT_BYTES:
            self.end("the neighbor does not read its messages")

    def send_vector(self, message: StatusVector) -> None:
        """Replace the waiting vector of the same kind."""
        self._vectors[message.kind] = message
        self._has_vector.set()

    async def run(self) -> str:
        """Exchange messages until the connection ends; return the reason."""
        pumps = [
            asyncio.create_task(self._pump(pump))
            for pump in (self._read_control(), self._write_control(), self._read_vectors(), self._write_vectors())
        ]
        try:
            return await asyncio.shield(self._ended)
        finally:
            self.end("the connection broke")
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await self._connection.close()

    async def _pump(self, pump: Coroutine[object, object, None]) -> None:
        """Run one direction of one channel; its end ends the connection."""
        try:
            await pump
        except ChannelError as error:
            self.end(str(error))
        except Exception as error:  # noqa: BLE001 - a bug goes to the loop's handler and costs only this link
            context = {"message": f"link with {self.peer}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            self.end("an internal error")
        else:
            # gRPC does not tell whether the neighbor ended it.
            self.end("the connection was lost")

    async def _read_control(self) -> None:
        await self._read(self._connection.control, self._control_in)

    async def _read(self, stream: Stream, events_in: Callable[[bytes], Iterator[Event | None]], /) -> None:
        """Read one message ahead of the one that is handled, and no more."""
        handled: Awaitable[None] | None = None
        while (content := await stream.read()) is not None:
            if handled is not None:
                await handled
            if self.has_ended:
                return
            self._counters.received_bytes += len(content)
            handled = self._callbacks.in_turn(self.peer, events_in(content), len(content))
        if handled is not None:
            await handled

    def _control_in(self, content: bytes) -> Iterator[Event | None]:
        for message in each_control_in(content, on_drop=self._drop):
            if message is None:
                yield None
            else:
                self._counters.received += 1
                yield ControlReceived(sender=self.peer, message=message)

    def _vector_in(self, content: bytes) -> Iterator[Event]:
        try:
            message = status_vector_from_bytes(content)
        except CodecError as error:
            self._drop(str(error))
            return
        self._counters.received += 1
        yield VectorReceived(sender=self.peer, message=message)

    async def _write_control(self) -> None:
        while True:
            await self._has_control.wait()
            while self._queue:
                batch = self._next_batch()
                content = joined_control(batch)
                await self._connection.control.write(content)
                self._counters.sent += len(batch)
                self._counters.sent_bytes += len(content)
            self._has_control.clear()

    def _next_batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        while self._queue and len(batch) < _WRITE_LIMIT_MESSAGES:
            if batch and size + len(self._queue[0]) > _WRITE_LIMIT_BYTES:
                break
            batch.append(self._queue.popleft())
            size += len(batch[-1])
        self._queued_bytes -= size
        return batch

    async def _read_vectors(self) -> None:
        await self._read(await self._connection.updates(), self._vector_in)

    async def _write_vectors(self) -> None:
        updates = await self._connection.updates()
        while True:
            await self._has_vector.wait()
            self._has_vector.clear()
            while self._vectors:
                await self._write_vector(updates, self._vectors.pop(min(self._vectors)))

    async def _write_vector(self, updates: Stream, message: StatusVector) -> None:
        try:
            content = status_vector_to_bytes(message)
        except CodecError as error:
            self._drop(str(error))
            return
        await updates.write(content)
        self._counters.sent += 1
        self._counters.sent_bytes += len(content)

    def _drop(self, text: str) -> None:
        self._counters.dropped += 1
        self._callbacks.on_dropped(self.peer, text)
