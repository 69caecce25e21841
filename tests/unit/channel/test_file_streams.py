"""Sending files in the frames of a stream whose other side stops reading."""

import asyncio

import pytest

from messiahs.channel.byte_streams import file_streams
from messiahs.channel.byte_streams.file_streams import SentFiles, receive_files
from messiahs.channel.contract import Peer
from messiahs.errors import ChannelError
from messiahs.wire.codec import (
    PutAnswer,
    PutFile,
    PutRequest,
    put_answer_from_bytes,
    put_answer_to_bytes,
    put_content_to_bytes,
    put_request_to_bytes,
)
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, CS, NYNEVE, TICKET, Recorded


class _Unread:
    """A stream whose other side reads the request and answers it, and takes nothing more (mutable)."""

    def __init__(self) -> None:
        self._writes, self._reads, self.is_closed = 0, 0, False

    async def write(self, _content: bytes) -> None:
        self._writes += 1
        if self._writes > 1:
            await asyncio.Event().wait()

    async def read(self) -> bytes | None:
        self._reads += 1
        if self._reads > 1:
            await asyncio.Event().wait()
        return put_answer_to_bytes(PutAnswer(offsets_bytes=(0,)))

    async def finish(self) -> None:
        raise AssertionError("nothing was taken")

    def close(self) -> None:
        self.is_closed = True


class _Empty:
    """A stream whose other side announces a file, and sends pieces without content (mutable)."""

    def __init__(self, request: PutRequest) -> None:
        self._request, self.answers = put_request_to_bytes(request), list[bytes]()

    async def read(self) -> bytes | None:
        request, self._request = self._request, put_content_to_bytes(b"")
        return request

    async def write(self, content: bytes) -> None:
        self.answers.append(content)


def test_a_peer_that_sends_empty_pieces_is_refused() -> None:
    async def scene() -> None:
        stream = _Empty(PutRequest(claim=CLAIM, ticket=TICKET, files=(PutFile(bytes(32), 10),)))
        await receive_files(Peer(system=NYNEVE, key=b""), stream, Recorded(name=CS).callbacks(), None)
        begun, refused = map(put_answer_from_bytes, stream.answers)
        assert (begun.offsets_bytes, refused.problem) == ((0,), "the peer sends an empty piece of a file")

    asyncio.run(scene())


def test_a_peer_that_takes_no_frames_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        stream = _Unread()
        request = PutRequest(claim=CLAIM, ticket=TICKET, files=(PutFile(bytes(32), 10),))
        sent = SentFiles(stream, request, None)
        await sent.begin()
        with pytest.raises(ChannelError, match="the peer took less than 1024 bytes a second"):
            await sent.send(lambda _, offset: ContentSource(b"0123456789", offset=offset))

    monkeypatch.setattr(file_streams, "SILENCE_SECONDS", 0.1)
    monkeypatch.setattr(file_streams, "_FINAL_ANSWER_SECONDS", 0.1)
    asyncio.run(scene())
