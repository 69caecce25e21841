"""Bytes that other systems send or read here: those of this machine, and those that pass on (MESSIAHS 5.3.3)."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from messiahs.channel.contract import Feed, OutputSource, Peer, Receipt, Splicing
from messiahs.core import queries
from messiahs.core.interface.events import Event, TransferReceived
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.model.ids import ClaimId, SystemId, Ticket
from messiahs.core.model.routes import Leg
from messiahs.daemon.storage.suppliers import supplier_of
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.border_crossing import CrossingFeed, CrossingOutput, crossing_pieces, with_own_texts
from messiahs.daemon.transfer.budgets import Budgets, Moved, Stream
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.leg_reads import LegReads
from messiahs.daemon.transfer.metered_streams import MeteredFeed, MeteredOutput, MeteredReceipt
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.passed_connections import PassedConnection
from messiahs.daemon.transfer.passed_files import PassingFiles
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.daemon.transfer.stream_shares import Kind, Share
from messiahs.errors import MessiahsError
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import FeedRequest, PutRequest, ReadRequest, SpliceQuery

_Request = TypeVar("_Request", ReadRequest, FeedRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where bytes come from and go to: this machine, or the next leg."""

    arrivals: ArrivingFiles
    outputs: OwnOutputs
    passing: PassingFiles
    reads: LegReads
    feeds: Feeds


class ByteTraffic:
    """Checks who may send or read, counts the bytes, and leads them to where they go.

    Peers name claims and attempts by the ids that they got; beyond a border, these have other ones.
    """

    def __init__(
        self, ends: Ends, budgets: Budgets, module: RecordedModule, *, on_event: Callable[[Event], None]
    ) -> None:
        self._ends, self._budgets, self._module, self._on_event = ends, budgets, module, on_event

    async def keep(self, peer: Peer, transfer: TaskTransfer, contents: tuple[bytes, ...], /) -> str:
        """Store small files; return why the transfer is refused, or "" if its small inputs are here."""
        size_bytes = sum(map(len, contents))
        if any(len(content) > SMALL_BYTES for content in contents):
            return f"a file of more than {SMALL_BYTES} bytes came with its tasks, but it needs a stream of its own"
        try:
            await self._budgets.wait_in_loop(peer.system, size_bytes)
        except MessiahsError as error:
            return str(error)
        if not isinstance(self._leg(peer, transfer.claim, transfer.ticket), Leg):
            return await self._ends.arrivals.keep(peer, transfer, contents)
        known = replace(transfer, claim=self._beyond(transfer.claim))
        return await self._ends.passing.keep(peer, known, contents=contents)

    def receive(self, peer: Peer, request: PutRequest) -> Receipt:
        """Begin to receive files; a `MessiahsError` if this peer may not send them."""
        leg = self._leg(peer, request.claim, request.ticket)
        if isinstance(leg, Leg):
            known = replace(request, claim=self._beyond(request.claim))
            receipt: Receipt = self._ends.passing.receive(peer, known, leg=leg, is_hidden=self._is_hidden(known.claim))
        else:
            receipt = self._ends.arrivals.receive(peer, request)
        sizes = tuple(one.size_bytes for one in request.files)
        return MeteredReceipt(
            receipt, partial(self._budgets.open, peer.system, Moved.RECEIVED), sender=peer.system, sizes=sizes
        )

    async def read_output(self, request: ReadRequest, peer: Peer) -> AsyncGenerator[bytes, None]:
        """Send an output; raises what `ReadOutput` raises."""
        leg = self._leg_to_attempt(request, peer)
        if request.follow:
            stream = self._running(peer, request.claim, Kind.FOLLOWER)
        else:
            stream = self._budgets.open(peer.system, Moved.SENT)
        try:
            async with aclosing(self._pieces(leg, request)) as pieces:
                while True:
                    async with stream.unless_it_gives_way():
                        piece = await anext(pieces, None)
                        if piece is not None:
                            await stream.wait_in_loop(len(piece))
                    if piece is None:
                        return
                    yield piece
        finally:
            stream.close()

    async def open_output(self, request: ReadRequest, peer: Peer) -> OutputSource:
        """Open a large output; raises what `ReadOutput` raises."""
        leg = self._leg_to_attempt(request, peer)
        stream = self._budgets.open(peer.system, Moved.SENT)
        try:
            source, sender = await self._source(leg, request)
        except BaseException:
            stream.close()
            raise
        return MeteredOutput(source, stream, sender=sender)

    async def open_feed(self, request: FeedRequest, peer: Peer) -> Feed:
        """Open the way for standard input; raises what `OpenFeed` raises."""
        leg = self._leg_to_attempt(request, peer)
        stream = self._running(peer, request.claim, Kind.INPUT)
        try:
            return MeteredFeed(await self._feed(leg, request), stream)
        except BaseException:
            stream.close()
            raise

    def open_splice(self, query: SpliceQuery, peer: Peer) -> Splicing:
        """Pass on a connection that this module cannot read; raises `PermissionError` and `BudgetError`."""
        claim, ticket = query.claim, query.ticket
        leg = queries.splice_leg(self._module.state, peer.system, key=peer.key, claim=claim, ticket=ticket)
        if leg is None:
            raise PermissionError(f"{peer.system} has no ticket to pass connections on for {claim}")
        # It may carry the output of a running task, and last as long.
        stream = self._running(peer, claim, Kind.CONNECTION)
        ends = queries.splice_ends(self._module.state, claim)
        passed = PassedConnection(stream, ends, on_event=self._on_event)
        return Splicing(leg, passed.wait_for, passed.close)

    def as_received(self, event: TransferReceived) -> TransferReceived:
        """Return tasks as they may be passed on: their inputs' supplier has the name that the next system knows."""
        message = event.message
        if not any(one.is_file for task in message.tasks for one in task.command.inputs):
            return event
        supplier = self._ends.passing.shown(supplier_of(event.sender, message.supplier))
        return replace(event, message=replace(message, supplier=supplier))

    def _running(self, peer: Peer, claim: ClaimId, kind: Kind) -> Stream:
        origin, user = queries.user_of_claim(self._module.state, self._beyond(claim))
        return self._budgets.open_running(peer.system, Share(origin=origin, user=user, kind=kind))

    def _pieces(self, leg: Leg | None, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        if leg is None:
            return self._ends.outputs.read(request)
        known = self._known(request)
        pieces = self._ends.reads.fetch(leg, known)
        return crossing_pieces(pieces) if self._is_hidden(known.claim) else pieces

    async def _source(self, leg: Leg | None, request: ReadRequest) -> tuple[OutputSource, SystemId]:
        """Return an output, and the system that its readers know as its sender."""
        own = queries.system_of(self._module.state)
        if leg is None:
            return self._ends.outputs.open(request, is_hashed=True), own
        known = self._known(request)
        if not self._is_hidden(known.claim):
            return await self._ends.reads.open(leg, known), leg.system
        with with_own_texts():
            return CrossingOutput(await self._ends.reads.open(leg, known)), own

    async def _feed(self, leg: Leg | None, request: FeedRequest) -> Feed:
        if leg is None:
            return await self._ends.feeds.open_on(leg, request.claim, request.attempt)
        known = self._known(request)
        if not self._is_hidden(known.claim):
            return await self._ends.feeds.open_on(leg, known.claim, known.attempt)
        with with_own_texts():
            return CrossingFeed(await self._ends.feeds.open_on(leg, known.claim, known.attempt))

    def _known(self, request: _Request) -> _Request:
        """Return a request with the ids that the next system knows; the attempt was brought in the claim."""
        claim = self._beyond(request.claim)
        attempt = queries.attempt_beyond(self._module.state, request.attempt, claim=claim)
        assert attempt is not None, "a border knows the attempts that a peer may name"
        return replace(request, claim=claim, attempt=attempt)

    def _beyond(self, claim: ClaimId) -> ClaimId:
        return queries.claim_beyond(self._module.state, claim)

    def _is_hidden(self, claim: ClaimId) -> bool:
        return queries.hides_executor(self._module.state, claim)

    def _leg(self, peer: Peer, claim: ClaimId, ticket: Ticket) -> Leg | queries.Here | queries.Access:
        return queries.byte_leg(self._module.state, peer.system, key=peer.key, claim=claim, ticket=ticket)

    def _leg_to_attempt(self, request: ReadRequest | FeedRequest, peer: Peer) -> Leg | None:
        """Return the leg that leads to an attempt; None if it is here."""
        leg = self._leg(peer, request.claim, request.ticket)
        if leg is queries.Access.DENIED:
            raise PermissionError(f"{peer.system} has no ticket for {request.claim}")
        is_known = queries.is_attempt_of(self._module.state, request.attempt, claim=request.claim)
        if leg is queries.Access.GONE or not is_known:
            raise FileNotFoundError(f"nothing of {request.attempt} is left here")
        return leg if isinstance(leg, Leg) else None
