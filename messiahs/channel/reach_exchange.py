"""Neighbors ask each other beside their link whether they reach each other, and what their clocks show.

A link shows that one of its ends can dial the other; bytes need the other direction, too. Whoever is asked dials the
asker only at the address that its own administrator has configured for it, so nobody can use it to look for open ports.
Not in the papers.
"""

import asyncio
import itertools
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.pinning import ANSWER_SECONDS, Lookup
from messiahs.channel.certificates.trusted_roots import TrustedRoots
from messiahs.channel.contract import ChannelSettings, Stream
from messiahs.channel.http_proxies import connected_through, proxy_for
from messiahs.channel.jobs import Jobs
from messiahs.core.model.ids import SystemId
from messiahs.errors import ChannelError, CodecError, ProtocolError, UntrustedError
from messiahs.wire.reach import (
    ReachAnswer,
    ReachMessage,
    ReachRequest,
    ReachResult,
    reach_message_from_bytes,
    reach_message_to_bytes,
)

PAUSE_SECONDS: Final = ANSWER_SECONDS + 2
"""A neighbor is dialed at most once in this time, which is longer than a dial takes."""
_WAIT_SECONDS: Final = ANSWER_SECONDS + 5
_AT_ONCE: Final = 16
"""Neighbors that are dialed at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a neighbor has answered, and how far its clock is ahead of the one here (negative: behind)."""

    answer: ReachAnswer
    clock_ahead_ns: int


class _End:
    """The stream with one neighbor (mutable)."""

    def __init__(self, peer: SystemId, stream: Stream) -> None:
        self.peer, self._stream, self._writing = peer, stream, asyncio.Lock()
        self.replaced, self.asking = asyncio.Event(), asyncio.Lock()
        self.asked: tuple[int, asyncio.Future[ReachAnswer]] | None = None
        self.heard: Heard | None = None
        self.heard_at = 0.0

    async def read(self) -> bytes | None:
        """Wait for the next message; None at the end."""
        return await self._stream.read()

    async def send(self, message: ReachMessage) -> None:
        """Send a message; a `ChannelError` if that fails."""
        async with self._writing:
            await self._stream.write(reach_message_to_bytes(message))


class ReachExchange:
    """The streams with all neighbors that have a link (mutable). Belongs to the event loop.

    `address_of` returns the address (host:port) that is configured here for a neighbor; empty if there is none.
    """

    service: Final = "messiahs.wire.v1.Reach"

    def __init__(
        self, settings: ChannelSettings, tls: TlsInForce, address_of: Callable[[SystemId], Awaitable[str]]
    ) -> None:
        self._settings, self._tls, self._address_of = settings, tls, address_of
        self._ends: dict[SystemId, _End] = {}
        self._numbers = itertools.count(1)
        self._dialed_at: dict[SystemId, float] = {}
        self._jobs = Jobs()

    def begin(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream that this side has opened, until it ends."""
        self._jobs.begin(self.run(peer, stream))

    async def stop(self) -> None:
        """End all work."""
        await self._jobs.stop()

    async def run(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream with a neighbor until it ends, or another one takes its place."""
        known, end = self._ends.get(peer), _End(peer, stream)
        if known is not None:
            known.replaced.set()
        self._ends[peer] = end
        try:
            await until_first(self._read(end), end.replaced.wait())
        except (ChannelError, CodecError):
            # An earlier release does not know the service, and who sends what is malformed is not listened to.
            return
        finally:
            if self._ends.get(peer) is end:
                del self._ends[peer]
            if end.asked is not None:
                end.asked[1].cancel()

    async def ask(self, peer: SystemId) -> Heard:
        """Have a neighbor dial this module; soon after an answer, return the same one.

        Raises `ProtocolError` for a neighbor that cannot be asked, and `ChannelError` for one that does not answer.
        """
        end = self._ends.get(peer)
        if end is None:
            raise ProtocolError("its release does not know this question, or its link is just being made")
        loop = asyncio.get_running_loop()
        async with end.asking:
            if end.heard is None or loop.time() >= end.heard_at + PAUSE_SECONDS:
                end.heard = await self._asked(end)
                end.heard_at = loop.time()
            return end.heard

    async def _asked(self, end: _End) -> Heard:
        loop = asyncio.get_running_loop()
        number, answer = next(self._numbers), loop.create_future()
        end.asked = number, answer
        began = time.monotonic_ns()
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await end.send(ReachRequest(number=number))
                await asyncio.wait({answer})
            if answer.cancelled():
                raise ChannelError("the link ended before it answered")
            found: ReachAnswer = answer.result()
        except TimeoutError as error:
            raise ChannelError(f"no answer within {_WAIT_SECONDS:.0f} s") from error
        finally:
            end.asked = None
        way_ns = max(0, time.monotonic_ns() - began - found.took_ns)
        return Heard(answer=found, clock_ahead_ns=found.clock_ns + way_ns // 2 - time.time_ns())

    async def _read(self, end: _End) -> None:
        while (content := await end.read()) is not None:
            match reach_message_from_bytes(content):
                case ReachRequest(number=number) if self._may_ask(end.peer):
                    self._dialed_at[end.peer] = asyncio.get_running_loop().time()
                    self._jobs.begin(self._answer(end, number))
                case ReachRequest(number=number):
                    # Nothing more is read before this is written, so a flood waits at its sender.
                    await end.send(ReachAnswer(number=number, result=ReachResult.NOT_NOW, clock_ns=time.time_ns()))
                case ReachAnswer() as answer:
                    if end.asked is not None and end.asked[0] == answer.number and not end.asked[1].done():
                        end.asked[1].set_result(answer)
                case None:
                    pass

    def _may_ask(self, peer: SystemId) -> bool:
        """Whether a neighbor may be dialed now, also if its link is a new one."""
        since = asyncio.get_running_loop().time() - PAUSE_SECONDS
        self._dialed_at = {system: at for system, at in self._dialed_at.items() if at > since}
        return peer not in self._dialed_at and len(self._dialed_at) < _AT_ONCE

    async def _answer(self, end: _End, number: int) -> None:
        began = time.monotonic_ns()
        address = await self._address_of(end.peer)
        result, text = await self._dial(end.peer, address) if address else (ReachResult.NO_ADDRESS, "")
        answer = ReachAnswer(
            number=number,
            result=result,
            address=address,
            text=text,
            clock_ns=time.time_ns(),
            took_ns=time.monotonic_ns() - began,
        )
        try:
            await end.send(answer)
        except (ChannelError, CodecError):
            # The neighbor is gone, and asks again.
            return

    async def _dial(self, peer: SystemId, address: str) -> tuple[ReachResult, str]:
        tls, settings = self._tls.now, self._settings
        lookup = Lookup(settings.name, tls, TrustedRoots(tls, settings.federation))
        try:
            proxy = proxy_for(address, settings.http_proxy)
            await lookup.certificate_of(peer, address, connect=partial(connected_through, proxy, address))
        except UntrustedError as error:
            # The whole text may name the system that answers, which is no matter of the peer.
            return ReachResult.OTHER, "" if error.public == str(error) else error.public
        except ChannelError as error:
            return _result_of(error), error.public
        return ReachResult.ANSWERED, ""


def _result_of(error: ChannelError) -> ReachResult:
    match error.__cause__:
        case TimeoutError():
            return ReachResult.SILENT
        case ConnectionRefusedError():
            return ReachResult.REFUSED
        case socket.gaierror():
            return ReachResult.UNRESOLVED
        case _:
            return ReachResult.FAILED
