"""The channels of one module over any transport: links with neighbors are opened, served, replaced and reopened."""

import asyncio
import hashlib
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from messiahs.channel.contract import (
    NO_FILES,
    Callbacks,
    ChannelSettings,
    Connection,
    Counters,
    Peer,
    ReadFile,
    Stream,
    Transport,
)
from messiahs.channel.file_streams import receive_files, send_files
from messiahs.channel.link import Link
from messiahs.channel.task_channel import BringingStreams, Transfers
from messiahs.core.interface.events import LinkDown, LinkUp
from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError, CodecError, ProtocolError
from messiahs.wire.codec import (
    PutRequest,
    ReadChunk,
    ReadRequest,
    chunk_from_bytes,
    chunk_to_bytes,
    read_request_from_bytes,
)
from messiahs.wire.codec import read_request_to_bytes as request_to_bytes

FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 5.0
_CHUNK_LIMIT_BYTES: Final = 256 << 10


class LinkedChannels:
    """`Channels` over a transport. A neighbor has at most one link: a second connection replaces the first."""

    def __init__(self, settings: ChannelSettings, callbacks: Callbacks, transport: Transport) -> None:
        self._settings, self._callbacks, self._transport = settings, callbacks, transport
        self._neighbors = {neighbor.system: neighbor for neighbor in settings.neighbors}
        self._links: dict[SystemId, Link] = {}
        self._counters = {neighbor.system: Counters() for neighbor in settings.neighbors}
        self._transfers = Transfers(settings, transport, callbacks, self._counters)
        self._bringing = BringingStreams(callbacks, self._counters)
        self._dialing: list[asyncio.Task[None]] = []
        self._address = settings.listen

    @property
    def address(self) -> str:
        """Address at which others dial this module."""
        return self._address

    @property
    def counters(self) -> Mapping[SystemId, Counters]:
        """Counters by peer: all neighbors, and other systems that exchanged tasks."""
        return self._counters

    async def start(self) -> None:
        """Listen, and begin to dial neighbors."""
        self._address = await self._transport.start(self)
        self._dialing = [
            asyncio.create_task(self._keep_linked(neighbor.system, neighbor.address))
            for neighbor in self._settings.neighbors
            if neighbor.address is not None
        ]

    async def stop(self) -> None:
        """End every connection."""
        for link in list(self._links.values()):
            self._detach(link, "this module stops")
        for task in self._dialing:
            task.cancel()
        await asyncio.gather(*self._dialing, return_exceptions=True)
        await self._transfers.stop()
        await self._transport.stop()

    def send_control(self, to: SystemId, message: ControlMessage) -> None:
        """Send on the link with a neighbor, if there is one."""
        link = self._links.get(to)
        if link is None:
            self._drop(to)
        else:
            link.send_control(message)

    def send_vector(self, to: SystemId, message: StatusVector) -> None:
        """Send on the link with a neighbor, if there is one."""
        link = self._links.get(to)
        if link is None:
            self._drop(to)
        else:
            link.send_vector(message)

    def send_tasks(
        self, to: SystemId, address: str, message: TaskTransfer, /, *, files: Mapping[bytes, bytes] = NO_FILES
    ) -> None:
        """Send tasks to another system; tasks for this system stay in the core."""
        self._transfers.send(to, address, transfer=message, files=files)

    def refuse_transfer(self, to: Peer, answer: TransferAnswer) -> None:
        """Answer on the stream that brought tasks."""
        self._bringing.refuse(to, answer)

    async def put(self, to: SystemId, address: str, request: PutRequest, read: ReadFile, /) -> None:
        """Send files to an executor."""
        await send_files(self._transport.open_put(to, address), request, read)

    def drop_link(self, neighbor: SystemId, text: str = "") -> None:
        """End the link with a neighbor, if there is one."""
        link = self._links.get(neighbor)
        if link is not None:
            link.end(text or "dropped by this module")

    async def fetch(self, to: SystemId, address: str, request: ReadRequest, /) -> AsyncGenerator[bytes, None]:
        """Read an output from its executor; a complete read is compared with the sender's hash."""
        received, sent_digest = hashlib.sha256(), b""
        async with aclosing(self._transport.read(to, address, request_to_bytes(request))) as contents:
            async for content in contents:
                chunk = _chunk(content)
                sent_digest = chunk.sha256
                if chunk.content:
                    received.update(chunk.content)
                    yield chunk.content
        if not request.offset_bytes and sent_digest != received.digest():
            raise ChannelError(f"{request.name} of {request.attempt} arrived incomplete or damaged")

    def refusal(self, peer: SystemId) -> str:
        """Return why a peer may not open a link with this module; "" if it may."""
        neighbor = self._neighbors.get(peer)
        if neighbor is None:
            return f"{peer} is no neighbor of {self._settings.name}"
        if neighbor.address is not None:
            # If both dialed, each connection would keep replacing the other.
            return f"{self._settings.name} dials {peer}, so {peer} must not dial it"
        return ""

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Serve a link until it ends."""
        known = self._links.get(peer)
        if known is not None:
            self._detach(known, "replaced by a newer connection")
        link = Link(peer, connection, self._callbacks, self._counters[peer])
        self._links[peer] = link
        text = "the connection broke"
        try:
            self._callbacks.on_event(LinkUp(neighbor=peer))
            text = await link.run()
        finally:
            self._detach(link, text)

    async def serve_transfers(self, peer: Peer, stream: Stream) -> None:
        """Receive tasks until the peer ends the stream."""
        await self._bringing.receive(peer, stream)

    async def serve_put(self, peer: Peer, stream: Stream) -> None:
        """Receive files from a peer."""
        await receive_files(peer, stream, self._callbacks)

    async def serve_read(self, peer: Peer, content: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output, in pieces that fit into messages."""
        request = read_request_from_bytes(content)
        served = hashlib.sha256()
        async with aclosing(self._callbacks.read_output(request, peer)) as pieces:
            async for piece in pieces:
                served.update(piece)
                for start in range(0, len(piece), _CHUNK_LIMIT_BYTES):
                    yield chunk_to_bytes(ReadChunk(content=piece[start : start + _CHUNK_LIMIT_BYTES]))
        if not request.offset_bytes:
            yield chunk_to_bytes(ReadChunk(sha256=served.digest()))

    def _detach(self, link: Link, text: str) -> None:
        """End a link and report that once."""
        link.end(text)
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self._callbacks.on_event(LinkDown(neighbor=link.peer, text=text))

    async def _keep_linked(self, peer: SystemId, address: str) -> None:
        """Dial whenever there is no connection, with growing pauses.

        A connection that outlived the last pause resets the pause, because the peer is alive.
        """
        delay, reported = FIRST_RETRY_SECONDS, ""
        loop = asyncio.get_running_loop()
        while True:
            lasted = 0.0
            try:
                connection = await self._transport.dial(peer, address)
            except ChannelError as error:
                if str(error) != reported:
                    reported = str(error)
                    self._callbacks.on_refused(peer, reported)
            else:
                reported, began = "", loop.time()
                await self.serve_link(peer, connection)
                lasted = loop.time() - began
            if lasted > delay:
                delay = FIRST_RETRY_SECONDS
            await asyncio.sleep(delay * random.uniform(0.5, 1))  # noqa: S311 - spreads dials, guards nothing
            delay = min(2 * delay, LAST_RETRY_SECONDS)

    def _drop(self, to: SystemId) -> None:
        self._counters.setdefault(to, Counters()).dropped += 1


def _chunk(content: bytes) -> ReadChunk:
    try:
        return chunk_from_bytes(content)
    except CodecError as error:
        raise ProtocolError(f"the executor's answer is malformed: {error}") from error
