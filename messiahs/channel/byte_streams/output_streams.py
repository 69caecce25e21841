"""Reading outputs from executors: in the frames of their stream, or over a stream of raw bytes (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from messiahs.channel.byte_streams.bulk_port import BulkPort, Offered
from messiahs.channel.byte_streams.bulk_streams import SILENCE_SECONDS, BulkStream
from messiahs.channel.byte_streams.byte_threads import BUFFER_BYTES, FrameSource, Pump, in_own_thread
from messiahs.channel.contract import (
    Callbacks,
    OutputSource,
    Peer,
)
from messiahs.channel.paced_stream import paced
from messiahs.channel.transport import Transport
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address, Splice
from messiahs.errors import ChannelError, CodecError, ProtocolError
from messiahs.wire.codec import (
    ReadChunk,
    ReadRequest,
    chunk_from_bytes,
    chunk_to_bytes,
    read_request_from_bytes,
    read_request_to_bytes,
)

_CHUNK_LIMIT_BYTES: Final = 256 << 10
_REASON_SECONDS: Final = 5.0
_DIAL_SECONDS: Final = 20.0
"""How long a peer may take to open a stream that was offered, before its read fails."""


class OutputStreams:
    """Reads outputs of other modules, and serves those that are here."""

    def __init__(self, transport: Transport, callbacks: Callbacks, bulk: BulkPort | None) -> None:
        self._transport, self._callbacks, self._bulk = transport, callbacks, bulk

    async def fetch(self, to: SystemId, address: Address, request: ReadRequest, /) -> AsyncGenerator[bytes, None]:
        """Read in frames; a complete read is compared with the sender's hash."""
        received, sent_digest = hashlib.sha256(), b""
        async with aclosing(self._read(to, address, request)) as contents:
            async for content in contents:
                chunk = _chunk(content)
                sent_digest = chunk.sha256
                if chunk.content:
                    received.update(chunk.content)
                    yield chunk.content
        if not request.offset_bytes and sent_digest != received.digest():
            raise ChannelError(f"{request.name} of {request.attempt} arrived incomplete or damaged")

    async def open(
        self, to: SystemId, address: Address, request: ReadRequest, /, *, size_bytes: int
    ) -> "FramedOutput | BulkOutput":
        """Open an output for a thread, over a stream of raw bytes if it is large and the peer can be dialed."""
        # A splice leads to the task channel alone.
        bulk = None if isinstance(address, Splice) else self._bulk
        if bulk is not None and not (bulk.is_worth(size_bytes) and bulk.is_dialable(to, str(address))):
            bulk = None
        offered = None if address else self.offered_to(to, size_bytes)
        offer = offered.offer if offered is not None else None
        wanted = replace(request, bulk=bulk is not None, hashed=bool(request.offset_bytes), offer=offer)
        chunks = self._read(to, address, wanted)
        try:
            content = await anext(chunks, None)
            first = ReadChunk() if content is None else _chunk(content)
            if offered is not None:
                if first.is_dialed:
                    return BulkOutput(offered.opened(), chunks, on_close=offered.close)
                offered.close()
            if bulk is None or first.bulk is None:
                return FramedOutput(first, chunks)
            stream = await bulk.dial(to, str(address), first.bulk)
            if stream is not None:
                return BulkOutput(stream, chunks)
        except BaseException:
            if offered is not None:
                offered.close()
            await chunks.aclose()
            raise
        await chunks.aclose()
        # It is remembered that the port cannot be dialed.
        return await self.open(to, address, request, size_bytes=size_bytes)

    def _read(self, to: SystemId, address: Address, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        contents = self._transport.read(to, address, read_request_to_bytes(request))
        return paced(contents, to, self._callbacks.in_turn)

    def offered_to(self, neighbor: SystemId, size_bytes: int) -> Offered | None:
        """Offer a stream to a neighbor that nobody can dial, if so many bytes are worth one."""
        peer = self._transport.undialable(neighbor)
        if self._bulk is None or peer is None or not self._bulk.is_worth(size_bytes):
            return None
        return self._bulk.offer(peer)

    async def serve(self, peer: Peer, content: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request, in pieces that fit into messages, or over a stream of raw bytes."""
        request = read_request_from_bytes(content)
        raw = await self._raw(request, peer) if request.bulk and not request.follow else None
        if raw is not None:
            served = _serve_raw(*raw)
        elif request.hashed and not request.follow:
            served = self._serve_hashed(request, peer)
        else:
            served = self._serve_frames(request, peer)
        async with aclosing(served):
            async for chunk in served:
                yield chunk_to_bytes(chunk)

    async def _raw(self, request: ReadRequest, peer: Peer) -> tuple[OutputSource, Offered] | None:
        """Return an output and a stream of raw bytes for it; nothing is dialed for a peer that may not read it."""
        if self._bulk is None:
            return None
        source, offered = await self._callbacks.open_output(request, peer), None
        try:
            offered = await self._bulk.answer(peer, request.offer)
        finally:
            if offered is None:
                source.close()
        return None if offered is None else (source, offered)

    async def _serve_frames(self, request: ReadRequest, peer: Peer) -> AsyncGenerator[ReadChunk, None]:
        served = hashlib.sha256()
        async with aclosing(self._callbacks.read_output(request, peer)) as pieces:
            async for piece in pieces:
                served.update(piece)
                for start in range(0, len(piece), _CHUNK_LIMIT_BYTES):
                    yield ReadChunk(content=piece[start : start + _CHUNK_LIMIT_BYTES])
        if not request.offset_bytes:
            yield ReadChunk(sha256=served.digest())

    async def _serve_hashed(self, request: ReadRequest, peer: Peer) -> AsyncGenerator[ReadChunk, None]:
        """Send a large output in frames, with the hash of what the reader has already and of the rest."""
        source = await self._callbacks.open_output(request, peer)
        buffer = memoryview(bytearray(BUFFER_BYTES))
        try:
            while size := await in_own_thread(partial(source.read_into, buffer), stop=source.close):
                for start in range(0, size, _CHUNK_LIMIT_BYTES):
                    yield ReadChunk(content=bytes(buffer[start : min(start + _CHUNK_LIMIT_BYTES, size)]))
        finally:
            source.close()
        yield ReadChunk(sha256=source.sha256)


class FramedOutput:
    """An output that arrives in frames, as `OutputSource`."""

    def __init__(self, first: ReadChunk, chunks: AsyncGenerator[bytes, None]) -> None:
        self.sha256 = b""
        self._frames = FrameSource()
        self._pump = Pump(self._receive(first, chunks))

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        return self._frames.read_into(buffer)

    def close(self) -> None:
        """End the read."""
        self._frames.close()
        self._pump.close()

    async def _receive(self, first: ReadChunk, chunks: AsyncGenerator[bytes, None]) -> None:
        try:
            async with aclosing(chunks):
                chunk = first
                await self._frames.put(chunk.content)
                async for content in chunks:
                    chunk = _chunk(content)
                    await self._frames.put(chunk.content)
            self.sha256 = chunk.sha256
            self._frames.end()
        except (ChannelError, OSError) as error:
            self._frames.end(error)


class BulkOutput:
    """An output that arrives as raw bytes, as `OutputSource`. How it ended is told on the stream of frames."""

    def __init__(
        self,
        stream: BulkStream,
        chunks: AsyncGenerator[bytes, None],
        *,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.sha256 = b""
        self._stream, self._read_bytes, self._on_close = stream, 0, on_close
        self._last: Future[ReadChunk] = Future()
        self._pump = Pump(self._await_last(chunks))

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        try:
            size = self._stream.read_into(buffer)
        except ChannelError:
            self._raise_reason()
            raise
        self._read_bytes += size
        if size:
            return size
        try:
            last = self._last.result(SILENCE_SECONDS)
        except TimeoutError as error:
            raise ChannelError("the executor did not report the end of the output") from error
        if last.sent_bytes != self._read_bytes:
            raise ChannelError(f"{self._read_bytes} of {last.sent_bytes} bytes arrived")
        self.sha256 = last.sha256
        return 0

    def close(self) -> None:
        """End the read."""
        self._stream.close()
        self._pump.close(self._on_close)

    def _raise_reason(self) -> None:
        try:
            self._last.result(_REASON_SECONDS)
        except TimeoutError:
            return

    async def _await_last(self, chunks: AsyncGenerator[bytes, None]) -> None:
        try:
            async with aclosing(chunks):
                content = await anext(chunks, None)
            self._last.set_result(_last(content))
        except (ChannelError, OSError) as error:
            self._last.set_exception(error)
            self._stream.close()
        except asyncio.CancelledError:
            self._last.set_exception(ChannelError("the stream was closed"))
            raise


async def _serve_raw(source: OutputSource, offered: Offered) -> AsyncGenerator[ReadChunk, None]:
    try:
        yield ReadChunk(bulk=None if offered.is_dialed else offered.offer, is_dialed=offered.is_dialed)
        sent_bytes = await _send_output(source, offered)
    finally:
        source.close()
        # Also the end of the stream for the peer.
        offered.close()
    yield ReadChunk(sha256=source.sha256, sent_bytes=sent_bytes)


async def _send_output(source: OutputSource, offered: Offered) -> int:
    try:
        async with asyncio.timeout(_DIAL_SECONDS):
            stream = await asyncio.shield(offered.stream)
    except TimeoutError as error:
        raise ChannelError("the stream for a large output was not opened") from error

    def copy() -> int:
        buffer, sent_bytes = memoryview(bytearray(BUFFER_BYTES)), 0
        while size := source.read_into(buffer):
            stream.write(buffer[:size])
            sent_bytes += size
        return sent_bytes

    def stop() -> None:
        source.close()
        stream.close()

    return await in_own_thread(copy, stop=stop)


def _last(content: bytes | None) -> ReadChunk:
    if content is None:
        raise ChannelError("the executor ended the stream in the middle of an output")
    return _chunk(content)


def _chunk(content: bytes) -> ReadChunk:
    try:
        return chunk_from_bytes(content)
    except CodecError as error:
        raise ProtocolError(f"the executor's answer is malformed: {error}") from error
