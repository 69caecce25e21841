"""Transfer of files to executors, on separate streams (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from messiahs.channel.contract import Callbacks, OutgoingStream, Peer, ReadFile, Receipt, Stream
from messiahs.errors import ChannelError, CodecError, MessiahsError, ProtocolError, RefusedError
from messiahs.wire.codec import (
    PutAnswer,
    PutRequest,
    put_answer_from_bytes,
    put_answer_to_bytes,
    put_content_from_bytes,
    put_content_to_bytes,
    put_request_from_bytes,
    put_request_to_bytes,
)

_PIECE_LIMIT_BYTES: Final = 960 << 10
_FINAL_ANSWER_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 60.0
"""A peer that sends nothing for this long in the middle of a file is considered gone."""


async def send_files(stream: OutgoingStream, request: PutRequest, read: ReadFile, /) -> None:
    """Send what the executor lacks of the files; closes the stream. Raises `ChannelError`."""
    sending: asyncio.Task[None] | None = None
    try:
        await stream.write(put_request_to_bytes(request))
        offsets = await _answer(stream, request)
        sending = asyncio.create_task(_send(stream, request, offsets, read))
        # Read at once: an executor that refuses the files answers early and stops reading.
        final = asyncio.create_task(_answer(stream, request))
        try:
            await asyncio.wait({sending, final}, return_when=asyncio.FIRST_COMPLETED)
            if not final.done() and isinstance(sending.exception(), ChannelError):
                # The executor's final answer may still be in transit.
                await asyncio.wait({final}, timeout=_FINAL_ANSWER_SECONDS)
            if not final.done():
                await sending
            offsets = await final
        finally:
            sending.cancel()
            final.cancel()
            await asyncio.gather(sending, final, return_exceptions=True)
        if offsets != tuple(one.size_bytes for one in request.files):
            raise ChannelError("the executor did not store all files")
    except CodecError as error:
        raise ProtocolError(f"the executor's answer is malformed: {error}") from error
    finally:
        stream.close()


async def _answer(stream: Stream, request: PutRequest) -> tuple[int, ...]:
    content = await stream.read()
    if content is None:
        raise ChannelError("the executor ended the stream")
    answer = put_answer_from_bytes(content)
    if answer.problem:
        raise RefusedError(answer.problem)
    if len(answer.offsets_bytes) != len(request.files):
        raise CodecError(f"{len(answer.offsets_bytes)} offsets of {len(request.files)} files")
    return answer.offsets_bytes


async def _send(stream: OutgoingStream, request: PutRequest, offsets: tuple[int, ...], read: ReadFile) -> None:
    for one, offset in zip(request.files, offsets, strict=True):
        if offset < one.size_bytes:
            await _send_file(stream, read(one.sha256, offset))
    await stream.finish()


async def _send_file(stream: Stream, pieces: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            for start in range(0, len(piece), _PIECE_LIMIT_BYTES):
                await stream.write(put_content_to_bytes(piece[start : start + _PIECE_LIMIT_BYTES]))


async def receive_files(peer: Peer, stream: Stream, callbacks: Callbacks, /) -> None:
    """Receive files from a peer on a stream; a refusal is reported to the peer and to the administrator."""
    try:
        content = await stream.read()
        if content is None:
            return
        request = put_request_from_bytes(content)
        receipt = callbacks.arrivals.receive(peer, request)
        try:
            offsets = await receipt.begin()
            await stream.write(put_answer_to_bytes(PutAnswer(offsets_bytes=offsets)))
            lacking = sum(one.size_bytes - offset for one, offset in zip(request.files, offsets, strict=True))
            await _take(stream, receipt, lacking)
            await receipt.finish()
        finally:
            await receipt.close()
        sizes = tuple(one.size_bytes for one in request.files)
        await stream.write(put_answer_to_bytes(PutAnswer(offsets_bytes=sizes)))
    except ChannelError:
        # The peer is gone; it continues after it reconnects.
        return
    except MessiahsError as error:
        callbacks.on_dropped(peer.system, str(error))
        await stream.write(put_answer_to_bytes(PutAnswer(problem=str(error))))


async def _take(stream: Stream, receipt: Receipt, lacking_bytes: int) -> None:
    """Receive missing contents; the next piece is read while one is hashed and written."""
    adding: asyncio.Task[None] | None = None
    try:
        while lacking_bytes > 0:
            content = put_content_from_bytes(await _next(stream))
            lacking_bytes -= len(content)
            if adding is not None:
                await adding
            adding = asyncio.create_task(receipt.add(content))
        if adding is not None:
            await adding
    finally:
        if adding is not None:
            # Also after an interruption: what has arrived need not be sent again.
            await asyncio.gather(adding, return_exceptions=True)


async def _next(stream: Stream) -> bytes:
    try:
        async with asyncio.timeout(_SILENCE_SECONDS):
            content = await stream.read()
    except TimeoutError as error:
        raise ChannelError("the peer sent nothing for too long") from error
    if content is None:
        raise ChannelError("the peer ended the stream")
    return content
