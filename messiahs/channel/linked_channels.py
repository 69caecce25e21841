"""The channels of one module over any transport: links with neighbors are opened, served, replaced and reopened."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, closing, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from messiahs.channel.admission import SHUT_OFF, WHY_SHUT_OFF, Admission
from messiahs.channel.byte_streams.bulk_port import BulkPort
from messiahs.channel.byte_streams.file_streams import SentFiles, receive_files
from messiahs.channel.byte_streams.output_streams import OutputStreams
from messiahs.channel.byte_streams.stdin_streams import OutgoingFeed, receive_feed
from messiahs.channel.contract import (
    NO_FILES,
    Callbacks,
    ChannelSettings,
    Connection,
    Counters,
    Feed,
    NeighborAddress,
    OpenFile,
    OutputSource,
    Peer,
    Stream,
)
from messiahs.channel.link import Link
from messiahs.channel.paced_stream import PacedOutgoingStream, PacedStream
from messiahs.channel.task_channel import BringingStreams, Transfers
from messiahs.channel.transport import Transport
from messiahs.core.interface.events import LinkDown, LinkRefused, LinkUp, TransferFailed
from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.spliced_bytes import FilesSent
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.link_costs import LEAST_MEASURED_BYTES
from messiahs.core.model.routes import Address, Splice
from messiahs.errors import ChannelError
from messiahs.wire.codec import FeedRequest, PutRequest, ReadRequest

FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 5.0
_QUICK_ANSWER_SECONDS: Final = 0.5
_TELLING_SECONDS: Final = 60.0
"""A neighbor that is shut off learns so once in this time, since it may have restarted."""


class LinkedChannels:
    """`Channels` over a transport. A neighbor has at most one link: a second connection replaces the first."""

    def __init__(
        self, settings: ChannelSettings, callbacks: Callbacks, transport: Transport, bulk: BulkPort | None = None
    ) -> None:
        self._settings, self._callbacks, self._transport, self._bulk = settings, callbacks, transport, bulk
        self._outputs = OutputStreams(transport, callbacks, bulk)
        self._neighbors = {neighbor.system: neighbor for neighbor in settings.neighbors}
        self._admission = Admission()
        self._links: dict[SystemId, Link] = {}
        self._unlinked: dict[SystemId, str] = {}
        self._counters = {neighbor.system: Counters() for neighbor in settings.neighbors}
        self._transfers = Transfers(settings, transport, callbacks, self._counters)
        self._bringing = BringingStreams(callbacks, self._counters)
        self._dialing: dict[SystemId, asyncio.Task[None]] = {}
        self._parting: set[asyncio.Task[None]] = set()
        self._is_open = False
        self._address = settings.listen

    @property
    def address(self) -> str:
        """Address at which others dial this module."""
        return self._address

    @property
    def counters(self) -> Mapping[SystemId, Counters]:
        """Counters of all neighbors."""
        return self._counters

    async def start(self) -> None:
        """Listen, and begin to dial neighbors."""
        if self._bulk is not None:
            self._bulk.start()
        try:
            self._address = await self._transport.start(self)
        except ChannelError:
            if self._bulk is not None:
                self._bulk.stop()
            raise
        self._is_open = True
        for neighbor in tuple(self._neighbors.values()):
            self._begin_dialing(neighbor)

    async def stop(self) -> None:
        """End every connection."""
        self._is_open = False
        for link in list(self._links.values()):
            self._detach(link, "this module stops")
        dialing = (*self._dialing.values(), *self._parting)
        for task in dialing:
            task.cancel()
        await asyncio.gather(*dialing, return_exceptions=True)
        await self._transfers.stop()
        if self._bulk is not None:
            self._bulk.stop()
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
        self, to: SystemId, address: Address, message: TaskTransfer, /, *, files: Mapping[bytes, bytes] = NO_FILES
    ) -> None:
        """Send tasks to another system; tasks for this system stay in the core."""
        if self._admission.is_off(to):
            failed = TransferFailed(claim=message.claim, text=_shut_off_here(to), to=to)
            asyncio.get_running_loop().call_soon(self._callbacks.on_event, failed)
            return
        self._transfers.send(to, address, transfer=message, files=files)

    def refuse_transfer(self, to: Peer, answer: TransferAnswer) -> None:
        """Answer on the stream that brought tasks."""
        self._bringing.refuse(to, answer)

    async def begin_put(self, to: SystemId, address: Address, request: PutRequest, /) -> SentFiles:
        """Ask an executor how much of some files it lacks."""
        self._check(to)
        # A splice leads to the task channel alone.
        dial = None if self._bulk is None or isinstance(address, Splice) else partial(self._bulk.dial, to, address)
        offered = None if address else self._outputs.offered_to(to, sum(one.size_bytes for one in request.files))
        if offered is not None:
            request = replace(request, bulk=offered.offer)
        sent = SentFiles(self._transport.open_put(to, address), request, dial, offered=offered)
        await sent.begin()
        return sent

    async def put(self, to: SystemId, address: Address, request: PutRequest, open_file: OpenFile, /) -> None:
        """Send files to an executor, and report how long large ones took."""
        with closing(await self.begin_put(to, address, request)) as sent:
            began_ns = time.monotonic_ns()
            await sent.send(open_file)
        size_bytes = sum(one.size_bytes for one in request.files) - sum(sent.offsets_bytes)
        if size_bytes >= LEAST_MEASURED_BYTES:
            duration_ns = time.monotonic_ns() - began_ns
            event = FilesSent(claim=request.claim, to=to, size_bytes=size_bytes, duration_ns=duration_ns)
            self._callbacks.on_event(event)

    async def feed(self, to: SystemId, address: Address, request: FeedRequest, /) -> Feed:
        """Open a stream for standard input."""
        self._check(to)
        stream = PacedOutgoingStream(self._transport.open_feed(to, address), to, self._callbacks.in_turn)
        return await OutgoingFeed.opened(stream, request)

    def drop_link(self, neighbor: SystemId, text: str = "") -> None:
        """End the link with a neighbor, if there is one."""
        link = self._links.get(neighbor)
        if link is not None:
            link.end(text or "dropped by this module")

    def link(self, neighbor: NeighborAddress) -> None:
        """Dial or accept a new neighbor, or one whose address has changed."""
        known = self._neighbors.get(neighbor.system)
        if known == neighbor:
            return
        self._neighbors[neighbor.system] = neighbor
        self._counters.setdefault(neighbor.system, Counters())
        self._transport.link(neighbor)
        if self._bulk is not None:
            self._bulk.link(neighbor)
        if known is not None:
            self._end_dialing(known.system, is_linked=known.system in self._links)
            self._unlinked.pop(known.system, None)
            self.drop_link(known.system, f"{self._settings.name} links with {known.system} in another way")
        if self._is_open:
            self._begin_dialing(neighbor)

    def unlink(self, system: SystemId) -> None:
        """Forget a neighbor, after its last messages have had time to arrive."""
        if self._neighbors.pop(system, None) is None:
            return
        text = self.refusal(system)
        self._counters.pop(system, None)
        self._unlinked.pop(system, None)
        link = self._links.pop(system, None)
        if link is not None:
            link.part(text)
            self._callbacks.on_event(LinkDown(neighbor=system, text=text))
        self._end_dialing(system, is_linked=link is not None)
        self._admission.end_streams(system, text)
        self._transport.unlink(system)
        self._transport.cut(system)
        if self._bulk is not None:
            self._bulk.unlink(system)
            self._bulk.cut(system)

    def shut_off(self, peer: SystemId) -> None:
        """End everything that is open with a peer, and refuse it until it is readmitted."""
        self._admission.shut_off(peer)
        self.drop_link(peer, SHUT_OFF)
        self._transport.cut(peer)
        if self._bulk is not None:
            self._bulk.cut(peer)

    def readmit(self, peer: SystemId) -> None:
        """Accept and dial a peer again."""
        self._unlinked.pop(peer, None)
        self._admission.readmit(peer)

    async def fetch(self, to: SystemId, address: Address, request: ReadRequest, /) -> AsyncGenerator[bytes, None]:
        """Read an output from its executor."""
        self._check(to)
        async with aclosing(self._outputs.fetch(to, address, request)) as pieces:
            async for piece in pieces:
                yield piece

    async def open_read(
        self, to: SystemId, address: Address, request: ReadRequest, /, *, size_bytes: int
    ) -> OutputSource:
        """Open a large output of an executor."""
        self._check(to)
        return await self._outputs.open(to, address, request, size_bytes=size_bytes)

    def refusal(self, peer: SystemId) -> str:
        """Return why a peer may not open a link with this module; "" if it may."""
        if self._admission.is_off(peer):
            return SHUT_OFF
        neighbor = self._neighbors.get(peer)
        if neighbor is None:
            return f"{peer} is no neighbor of {self._settings.name}"
        if neighbor.address is not None:
            # If both dialed, each connection would keep replacing the other.
            return f"{self._settings.name} dials {peer}, so {peer} must not dial it"
        return ""

    def on_impostor(self, name: SystemId, text: str) -> None:
        """Report to the core why a neighbor has no link; impostors of linked ones are only logged."""
        self._note_unlinked(name, text)

    def on_distrusted(self, peer: SystemId) -> None:
        """End everything that is open with a peer; it is checked again when it connects."""
        text = "its certificate was revoked, or its root is not trusted any more"
        self.drop_link(peer, text)
        self._admission.end_streams(peer, text)
        self._transport.cut(peer)
        if self._bulk is not None:
            self._bulk.cut(peer)

    def on_shut_off(self, peer: SystemId) -> None:
        """Report to the core that a neighbor which dials has shut this module off."""
        self._note_unlinked(peer, WHY_SHUT_OFF)

    def admitted(self, peer: SystemId) -> AbstractAsyncContextManager[None]:
        """Bound a stream that a peer has opened to the time in which it is not shut off."""
        return self._admission.stream_of(peer)

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Serve a link until it ends."""
        counters = self._counters.get(peer)
        if counters is None:
            # It was unlinked while it was being accepted.
            await connection.close()
            return
        known = self._links.get(peer)
        if known is not None:
            self._detach(known, "replaced by a newer connection")
        link = Link(peer, connection, self._callbacks, counters)
        self._links[peer] = link
        self._unlinked.pop(peer, None)
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
        await receive_files(peer, self._paced(peer, stream), self._callbacks, self._bulk)

    async def serve_feed(self, peer: Peer, stream: Stream) -> None:
        """Pass on standard input from a peer."""
        await receive_feed(peer, self._paced(peer, stream), self._callbacks)

    def serve_read(self, peer: Peer, content: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output."""
        return self._outputs.serve(peer, content)

    def _paced(self, peer: Peer, stream: Stream) -> PacedStream:
        return PacedStream(stream, peer.system, self._callbacks.in_turn)

    def _detach(self, link: Link, text: str) -> None:
        """End a link and report that once."""
        link.end(text)
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self._callbacks.on_event(LinkDown(neighbor=link.peer, text=text))

    def _begin_dialing(self, neighbor: NeighborAddress) -> None:
        if neighbor.address is not None:
            dialing = self._keep_linked(neighbor.system, neighbor.address)
            self._dialing[neighbor.system] = asyncio.create_task(dialing)

    def _end_dialing(self, peer: SystemId, *, is_linked: bool) -> None:
        """Dial a neighbor no more; a link that was dialed ends by itself."""
        dialing = self._dialing.pop(peer, None)
        if dialing is not None:
            self._parting.add(dialing)
            dialing.add_done_callback(self._parting.discard)
            if not is_linked:
                dialing.cancel()

    async def _keep_linked(self, peer: SystemId, address: str) -> None:
        """Dial whenever there is no connection, with growing pauses.

        A connection that outlived the last pause resets the pause, because the peer is alive.
        """
        delay, reported = FIRST_RETRY_SECONDS, ""
        loop = asyncio.get_running_loop()
        while self._dialing.get(peer) is asyncio.current_task():
            if self._admission.is_off(peer):
                await self._tell_shut_off(peer, address)
                continue
            lasted = 0.0
            try:
                connection = await self._dialed(peer, address)
            except ChannelError as error:
                self._note_unlinked(peer, str(error))
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

    async def _dialed(self, peer: SystemId, address: str) -> Connection:
        """Dial; a neighbor that does not answer at once is reported before the attempt is given up."""
        dialing = asyncio.ensure_future(self._transport.dial(peer, address))
        try:
            await asyncio.wait({dialing}, timeout=_QUICK_ANSWER_SECONDS)
            if not dialing.done() and peer not in self._unlinked:
                self._note_unlinked(peer, f"{address} does not answer; is the module running, and the port open?")
            return await dialing
        finally:
            dialing.cancel()
            await asyncio.gather(dialing, return_exceptions=True)

    def _note_unlinked(self, peer: SystemId, text: str) -> None:
        """Report why a neighbor has no link, whenever the reason changes."""
        if peer in self._neighbors and peer not in self._links and self._unlinked.get(peer) != text:
            self._unlinked[peer] = text
            self._callbacks.on_event(LinkRefused(neighbor=peer, text=text))

    async def _tell_shut_off(self, peer: SystemId, address: str) -> None:
        """Tell a neighbor that it is shut off, if it can be reached; return when it is readmitted, or after a while."""
        with suppress(ChannelError):
            # An earlier release takes it for a link.
            await (await self._transport.dial(peer, address, is_shut_off=True)).close()
        await self._admission.readmitted(peer, at_most_seconds=_TELLING_SECONDS)

    def _check(self, peer: SystemId) -> None:
        if self._admission.is_off(peer):
            raise ChannelError(_shut_off_here(peer))

    def _drop(self, to: SystemId) -> None:
        self._counters.get(to, Counters()).dropped += 1


def _shut_off_here(peer: SystemId) -> str:
    return f"this module's administrator has shut {peer} off"
