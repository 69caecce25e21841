"""Transfer of files to executors, on separate streams: in frames, or over a stream of raw bytes (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Any, Final

from messiahs.channel.byte_streams.bulk_port import BulkPort, Offered
from messiahs.channel.byte_streams.bulk_streams import LEAST_BYTES_PER_SECOND, SILENCE_SECONDS, BulkStream
from messiahs.channel.byte_streams.byte_threads import BUFFER_BYTES, FrameSource, in_own_thread
from messiahs.channel.contract import ByteSource, Callbacks, OpenFile, OutgoingStream, Peer, Stream
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.errors import (
    BeyondError,
    ChannelError,
    CodecError,
    DeclinedError,
    DeniedError,
    MessiahsError,
    ProtocolError,
    RefusedError,
    public_of,
)
from messiahs.wire.codec import (
    BulkOffer,
    PutAnswer,
    PutFile,
    PutRequest,
    put_answer_from_bytes,
    put_answer_to_bytes,
    put_content_from_bytes,
    put_content_to_bytes,
    put_request_from_bytes,
    put_request_to_bytes,
)

_FRAME_BYTES: Final = 960 << 10
_FINAL_ANSWER_SECONDS: Final = 5.0

_ERRORS: Final = {TransferFailure.DENIED: DeniedError, TransferFailure.BEYOND: BeyondError}

Dial = Callable[[BulkOffer], Awaitable[BulkStream | None]]
"""Opens a stream that was offered; None if it cannot be reached."""


class SentFiles:
    """`Put` over a stream that this side opened."""

    def __init__(
        self, stream: OutgoingStream, request: PutRequest, dial: Dial | None, *, offered: Offered | None = None
    ) -> None:
        self._stream, self._request, self._dial, self._offered = stream, request, dial, offered
        self._is_dialed = False
        self._offer: BulkOffer | None = None
        self._is_closed = False
        self.offsets_bytes: tuple[int, ...] = ()

    async def begin(self) -> None:
        """Announce the files, and learn how much of them the executor has."""
        try:
            await self._stream.write(put_request_to_bytes(self._request))
            answer = await self._in_time(self._answer())
        except BaseException:
            self.close()
            raise
        self.offsets_bytes, self._offer, self._is_dialed = answer.offsets_bytes, answer.bulk, answer.is_dialed

    async def send(self, open_file: OpenFile, /) -> None:
        """Send what is missing."""
        sending = asyncio.create_task(self._send(open_file))
        # Read at once: an executor that refuses the files answers early and stops reading.
        final = asyncio.create_task(self._answer())
        try:
            await asyncio.wait({sending, final}, return_when=asyncio.FIRST_COMPLETED)
            if not final.done() and isinstance(sending.exception(), ChannelError):
                # The executor's final answer may still be in transit.
                await asyncio.wait({final}, timeout=_FINAL_ANSWER_SECONDS)
            # A refusal explains why sending failed; the end of the stream does not.
            if not (final.done() and (not sending.done() or isinstance(final.exception(), RefusedError | BeyondError))):
                await sending
            answer = await self._in_time(final)
        finally:
            sending.cancel()
            final.cancel()
            await asyncio.gather(sending, final, return_exceptions=True)
        if answer.offsets_bytes != tuple(one.size_bytes for one in self._request.files):
            raise ChannelError("the executor did not store all files")

    def close(self) -> None:
        """End the stream."""
        if not self._is_closed:
            self._is_closed = True
            self._stream.close()
            if self._offered is not None:
                self._offered.close()

    async def _in_time(self, answer: Awaitable[PutAnswer]) -> PutAnswer:
        """Wait for an answer, which may come only after the files have passed on at the least rate."""
        size_bytes = sum(one.size_bytes for one in self._request.files)
        try:
            async with asyncio.timeout(SILENCE_SECONDS + size_bytes / LEAST_BYTES_PER_SECOND):
                return await answer
        except TimeoutError as error:
            raise ChannelError("the executor does not answer") from error

    async def _answer(self) -> PutAnswer:
        content = await self._stream.read()
        if content is None:
            raise ChannelError("the executor ended the stream")
        try:
            answer = put_answer_from_bytes(content)
        except CodecError as error:
            raise ProtocolError(f"the executor's answer is malformed: {error}") from error
        if answer.problem:
            raise _ERRORS.get(answer.kind, RefusedError)(answer.problem)
        if len(answer.offsets_bytes) != len(self._request.files):
            text = f"{len(answer.offsets_bytes)} offsets of {len(self._request.files)} files"
            raise ProtocolError(f"the executor's answer is malformed: {text}")
        return answer

    async def _send(self, open_file: OpenFile) -> None:
        bulk = None
        if self._is_dialed and self._offered is not None:
            bulk = self._offered.opened()
        elif self._dial is not None and self._offer is not None:
            bulk = await self._dial(self._offer)
        copying = _Copying(_Frames(self._stream) if bulk is None else bulk)
        lacking = [
            (one, offset)
            for one, offset in zip(self._request.files, self.offsets_bytes, strict=True)
            if offset < one.size_bytes
        ]
        try:
            await in_own_thread(lambda: copying.copy_all(lacking, open_file), stop=copying.close)
        finally:
            if bulk is not None:
                bulk.close()
        await self._stream.finish()


class _Frames:
    """A stream as a sink for one thread: pieces become messages."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._writing: Future[None] | None = None
        self._is_closed = False

    def write(self, piece: memoryview, /) -> None:
        """Send a piece, waiting while the peer does not keep up."""
        for start in range(0, len(piece), _FRAME_BYTES):
            message = put_content_to_bytes(bytes(piece[start : start + _FRAME_BYTES]))
            self._writing = asyncio.run_coroutine_threadsafe(_written(self._stream, message), self._loop)
            if self._is_closed:
                self._writing.cancel()
            try:
                self._writing.result(SILENCE_SECONDS + len(message) / LEAST_BYTES_PER_SECOND)
            except TimeoutError as error:
                self._writing.cancel()
                raise ChannelError(f"the peer took less than {LEAST_BYTES_PER_SECOND} bytes a second") from error

    def close(self) -> None:
        """End a write in progress, and every later one."""
        self._is_closed = True
        if self._writing is not None:
            self._writing.cancel()


async def _written(stream: Stream, message: bytes) -> None:
    await stream.write(message)


class _Copying:
    """Copies files from their sources to a sink, in one thread with one buffer (mutable)."""

    def __init__(self, sink: BulkStream | _Frames) -> None:
        self._sink = sink
        self._source: ByteSource | None = None
        self._is_closed = False

    def copy_all(self, files: Iterable[tuple[PutFile, int]], open_file: OpenFile) -> None:
        """Copy each file from its offset on."""
        buffer = memoryview(bytearray(BUFFER_BYTES))
        for file, offset in files:
            source = self._source = open_file(file.sha256, offset)
            try:
                self._copy(source, file.size_bytes - offset, buffer)
            finally:
                source.close()

    def close(self) -> None:
        """End the copying, from another thread."""
        self._is_closed = True
        self._sink.close()
        if self._source is not None:
            self._source.close()

    def _copy(self, source: ByteSource, left_bytes: int, buffer: memoryview) -> None:
        while left_bytes:
            size = 0 if self._is_closed else source.read_into(buffer[:left_bytes])
            if not size:
                raise ChannelError("a file ended before its announced size")
            left_bytes -= size
            # Before the last piece is sent, after which the receiver has all that was announced.
            if not left_bytes and source.read_into(memoryview(bytearray(1))):
                raise ChannelError("a file is larger than announced")
            self._sink.write(buffer[:size])


async def receive_files(peer: Peer, stream: Stream, callbacks: Callbacks, bulk: BulkPort | None, /) -> None:
    """Receive files from a peer on a stream; a refusal is reported to the peer and to the administrator."""
    arriving = _Arriving(stream)
    try:
        await _receive(peer, arriving, callbacks, bulk)
    except ChannelError:
        # The peer is gone; it continues after it reconnects.
        return
    except MessiahsError as error:
        callbacks.on_dropped(peer.system, str(error))
        await stream.write(put_answer_to_bytes(PutAnswer(problem=public_of(error), kind=_kind_of(error))))
    finally:
        # Only now: to interrupt a read ends the stream.
        await arriving.close()


async def _receive(peer: Peer, arriving: "_Arriving", callbacks: Callbacks, bulk: BulkPort | None) -> None:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            content = await arriving.stream.read()
    except TimeoutError as error:
        raise ChannelError("the peer sent no request") from error
    if content is None:
        return
    request = put_request_from_bytes(content)
    receipt = callbacks.arrivals.receive(peer, request)
    try:
        offsets = await receipt.begin()
        lacking = sum(one.size_bytes - offset for one, offset in zip(request.files, offsets, strict=True))
        is_worth = bulk is not None and bulk.is_worth(lacking)
        offered = await bulk.answer(peer, request.bulk) if bulk is not None and is_worth else None
        try:
            is_dialed = offered is not None and offered.is_dialed
            offer = None if offered is None or is_dialed else offered.offer
            answer = PutAnswer(offsets_bytes=offsets, bulk=offer, is_dialed=is_dialed)
            await arriving.stream.write(put_answer_to_bytes(answer))
            await receipt.take(await arriving.source(lacking, offered))
            await arriving.ended()
        finally:
            if offered is not None:
                offered.close()
    finally:
        await receipt.close()
    sizes = tuple(one.size_bytes for one in request.files)
    await arriving.stream.write(put_answer_to_bytes(PutAnswer(offsets_bytes=sizes)))


def _kind_of(error: MessiahsError) -> TransferFailure:
    if not isinstance(error, DeclinedError):
        return TransferFailure.REFUSED
    if error.is_denied:
        return TransferFailure.DENIED
    return TransferFailure.BEYOND if error.is_brief else TransferFailure.REFUSED


class _Arriving:
    """What a peer sends: its stream, and the contents on it or on a stream of raw bytes (mutable)."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._reading: asyncio.Task[bytes | None] | None = None
        self._feeding: asyncio.Task[None] | None = None

    async def source(self, lacking_bytes: int, offered: Offered | None) -> ByteSource:
        """Return the contents: raw bytes if the peer opens the stream that it was offered, else frames."""
        frames = FrameSource()
        if not lacking_bytes:
            frames.end()
            return frames
        self._reading = asyncio.create_task(self.stream.read())
        if offered is not None:
            waiting: set[asyncio.Future[Any]] = {self._reading, offered.stream}
            await asyncio.wait(waiting, timeout=SILENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if offered.stream.done():
                return offered.stream.result()
        self._feeding = asyncio.create_task(self._feed(self._reading, frames, lacking_bytes))
        return frames

    async def ended(self) -> None:
        """Wait until a peer that sent raw bytes has ended its stream."""
        if self._reading is not None and self._feeding is None and await _in_time(self._reading) is not None:
            raise CodecError("frames follow a stream of bytes")

    async def close(self) -> None:
        """End whatever still waits for the peer."""
        tasks = [task for task in (self._reading, self._feeding) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _feed(self, first: "asyncio.Task[bytes | None]", frames: FrameSource, lacking_bytes: int) -> None:
        """Receive contents; what has arrived before an interruption need not be sent again."""
        reading = first
        try:
            while True:
                content = await _in_time(reading)
                if content is None:
                    raise ChannelError("the peer ended the stream")
                piece = put_content_from_bytes(content)
                if not piece:
                    # Nobody would notice how slow a peer is that sends nothing else.
                    raise CodecError("the peer sends an empty piece of a file")
                lacking_bytes -= len(piece)
                if lacking_bytes < 0:
                    raise CodecError("the peer sends larger files than it announced")
                await frames.put(piece)
                if not lacking_bytes:
                    break
                reading = asyncio.ensure_future(self.stream.read())
        except MessiahsError as error:
            frames.end(error)
        else:
            frames.end()


async def _in_time(reading: "asyncio.Task[bytes | None]") -> bytes | None:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await reading
    except TimeoutError as error:
        raise ChannelError("the peer sent nothing for too long") from error
