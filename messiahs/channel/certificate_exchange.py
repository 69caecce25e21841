"""Revoked certificates and renewals, exchanged by neighbors of one site beside their link (MESSIAHS 5.3).

Each list of revoked certificates that is newer than the last one goes to all neighbors of the site at once, so that one
command at one place reaches all its modules. A request for a renewal climbs to a module with the key of the root. What
passes is signed or proves a key, so no module on the way is trusted.
"""

import asyncio
import itertools
from collections import Counter
from typing import Final, Protocol

from messiahs.channel.byte_streams.stdin_streams import until_first
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.contract import Stream
from messiahs.channel.jobs import Jobs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import printable
from messiahs.errors import CertificateError, ChannelError, CodecError, MessiahsError
from messiahs.wire.certificates import (
    RENEWAL_HOP_LIMIT,
    CertificateMessage,
    RenewAnswer,
    RenewRequest,
    RevokedCertificates,
    certificate_message_from_bytes,
    certificate_message_to_bytes,
)

ANSWER_SECONDS: Final = 30.0
RENEWALS_AT_ONCE: Final = 8
RENEWALS_OF_A_NEIGHBOR: Final = 2
"""So that no neighbor can occupy all places, also with one stream after the other."""
SEND_SECONDS: Final = 10.0
"""A neighbor that does not read its answer within this time loses the stream."""


class Steward(Protocol):
    """Keeps the certificates of a module."""

    async def take_revocations(self, pem: bytes) -> int:
        """Use a list of revoked certificates if it is newer; return its number.

        Raises a `CertificateError` if no root of the site signed it.
        """

    async def renewed(self, request: RenewRequest) -> bytes:
        """Return another certificate (PEM) for a module below; a `CertificateError` says why there is none."""


class _End:
    """The stream with one neighbor (mutable)."""

    def __init__(self, peer: SystemId, stream: Stream) -> None:
        self.peer, self._stream, self._lock = peer, stream, asyncio.Lock()
        self.replaced = asyncio.Event()
        self.known = 0
        """Number of the newest list that the neighbor has, as far as is known."""
        self.asked: dict[int, asyncio.Future[RenewAnswer]] = {}

    async def read(self) -> bytes | None:
        """Wait for the next message; None at the end."""
        return await self._stream.read()

    async def send(self, message: CertificateMessage) -> None:
        """Send a message; a `ChannelError` or `CodecError` if that fails."""
        async with self._lock:
            await self._stream.write(certificate_message_to_bytes(message))

    async def send_answer(self, answer: RenewAnswer) -> None:
        """Send an answer; a `ChannelError` or `CodecError` if that fails, also because the neighbor does not read."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self.send(answer)
        except TimeoutError as error:
            raise ChannelError("the neighbor does not read its answers") from error

    async def send_revocations(self, tls: TlsInForce) -> None:
        """Send the list in force, if the neighbor has none as new."""
        revocations = tls.now.revocations
        if revocations.number > self.known:
            self.known = revocations.number
            await self.send(RevokedCertificates(pem=revocations.pem))


class CertificateExchange:
    """The streams with all neighbors of the site (mutable). Belongs to the event loop."""

    service: Final = "messiahs.wire.v1.Certificates"

    def __init__(self, tls: TlsInForce, steward: Steward) -> None:
        self._tls, self._steward = tls, steward
        self._ends: dict[SystemId, _End] = {}
        self._numbers = itertools.count(1)
        self._jobs = Jobs()
        self._renewing = 0
        self._answering = Counter[SystemId]()
        """Requests of each neighbor that still occupy a place: nobody has read their answers yet."""
        tls.on_changed(self._spread)

    def begin(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream that this side has opened, until it ends."""
        self._jobs.begin(self.run(peer, stream))

    async def stop(self) -> None:
        """End all work."""
        await self._jobs.stop()

    async def run(self, peer: SystemId, stream: Stream) -> None:
        """Exchange on a stream with a neighbor until it ends, or another one takes its place.

        Nothing passes between sites.
        """
        if self._tls.now.has_other_roots(peer):
            return
        known, end = self._ends.get(peer), _End(peer, stream)
        if known is not None:
            known.replaced.set()
        self._ends[peer] = end
        try:
            await until_first(self._read(end), end.replaced.wait())
        except (ChannelError, CodecError, CertificateError):
            # An earlier release does not know the service, and who sends lists of others is not listened to any more.
            return
        finally:
            if self._ends.get(peer) is end:
                del self._ends[peer]
            for asked in end.asked.values():
                asked.cancel()

    async def ask(self, parent: SystemId, request: bytes, /, certificate: bytes, *, hops: int = 0) -> bytes:
        """Ask a parent for another certificate (PEM); a `CertificateError` says why there is none."""
        end = self._ends.get(parent)
        if end is None:
            raise CertificateError(f"{parent} is not linked, or of another site, or of an earlier release")
        number = next(self._numbers)
        answer: asyncio.Future[RenewAnswer] = asyncio.get_running_loop().create_future()
        end.asked[number] = answer
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await end.send(
                    RenewRequest(number=number, certificate_request=request, certificate=certificate, hops=hops)
                )
                await asyncio.wait({answer})
        except (TimeoutError, ChannelError, CodecError) as error:
            raise CertificateError(f"{parent} does not answer: {error}") from error
        finally:
            del end.asked[number]
        if answer.cancelled():
            raise CertificateError(f"the link with {parent} ended")
        if not answer.result().certificate:
            raise CertificateError(f"{parent}: {answer.result().text}")
        return answer.result().certificate

    async def _read(self, end: _End) -> None:
        await end.send_revocations(self._tls)
        while (content := await end.read()) is not None:
            await self._receive(end, content)

    async def _receive(self, end: _End, content: bytes) -> None:
        match certificate_message_from_bytes(content):
            case RevokedCertificates(pem=pem):
                end.known = max(end.known, await self._steward.take_revocations(pem))
                # It may have less than this module.
                await end.send_revocations(self._tls)
            case RenewRequest() as request:
                if self._answering[end.peer] < RENEWALS_OF_A_NEIGHBOR and self._renewing < RENEWALS_AT_ONCE:
                    self._answering[end.peer] += 1
                    self._renewing += 1
                    self._jobs.begin(self._answer(end, request))
                else:
                    # Nothing more is read from a neighbor before it has read this.
                    text = "too many renewals at once: ask again later"
                    await end.send_answer(RenewAnswer(number=request.number, text=text))
            case RenewAnswer() as answer:
                asked = end.asked.get(answer.number)
                if asked is not None and not asked.done():
                    asked.set_result(answer)
            case None:
                pass

    async def _answer(self, end: _End, request: RenewRequest) -> None:
        try:
            await end.send_answer(await self._made(request))
        except (ChannelError, CodecError):
            # The neighbor is gone, and asks again.
            return
        finally:
            self._answering[end.peer] -= 1
            if not self._answering[end.peer]:
                del self._answering[end.peer]

    async def _made(self, request: RenewRequest) -> RenewAnswer:
        try:
            if request.hops >= RENEWAL_HOP_LIMIT:
                raise CertificateError("the request has passed too many modules")
            return RenewAnswer(number=request.number, certificate=await self._steward.renewed(request))
        except (MessiahsError, OSError) as error:
            return RenewAnswer(number=request.number, text=printable(str(error)))
        finally:
            self._renewing -= 1

    def _spread(self) -> None:
        for end in self._ends.values():
            if self._tls.now.revocations.number > end.known:
                self._jobs.begin(_tell_revocations(end, self._tls))


async def _tell_revocations(end: _End, tls: TlsInForce) -> None:
    try:
        await end.send_revocations(tls)
    except (ChannelError, CodecError):
        # The next link sends it.
        return
