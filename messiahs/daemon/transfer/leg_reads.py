"""Reading outputs on the leg that the bytes of their claim take, and on the path when a straight leg fails."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from messiahs.channel.contract import Channels, OutputSource
from messiahs.core.interface.events import Event
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.model.ids import ClaimId
from messiahs.core.model.routes import Leg
from messiahs.errors import BeyondError, ChannelError, ProtocolError, RefusedError, public_of
from messiahs.wire.codec import ReadRequest

LARGE_BYTES = 1 << 30
"""A system that accepts raw bytes expects a large output."""


class LegReads:
    """Reads for local users, and for other systems whose claims pass through here.

    `leg_of` returns the present leg of a claim, which the core changes when it hears that a straight one failed.
    """

    def __init__(
        self,
        channels: Callable[[], Channels],
        *,
        leg_of: Callable[[ClaimId], Leg | None],
        on_event: Callable[[Event], None],
    ) -> None:
        self._channels, self._leg_of, self._on_event = channels, leg_of, on_event

    async def fetch(self, leg: Leg, request: ReadRequest) -> AsyncGenerator[bytes, None]:
        """Yield an output; raises what `Channels.fetch` raises, with the name of a system that does not answer."""
        while True:
            wanted = replace(request, ticket=leg.ticket)
            try:
                async with aclosing(self._channels().fetch(leg.system, leg.address, wanted)) as pieces:
                    async for piece in pieces:
                        request = replace(request, offset_bytes=request.offset_bytes + len(piece))
                        yield piece
            except (ChannelError, PermissionError) as error:
                leg = await self._other_leg(leg, request.claim, error)
            else:
                return

    async def open(self, leg: Leg, request: ReadRequest) -> OutputSource:
        """Open a large output; raises what `Channels.open_read` raises, with the name as above."""
        while True:
            wanted = replace(request, ticket=leg.ticket)
            try:
                return await self._channels().open_read(leg.system, leg.address, wanted, size_bytes=LARGE_BYTES)
            except (ChannelError, PermissionError) as error:
                leg = await self._other_leg(leg, request.claim, error)

    async def has_other_leg(self, leg: Leg, claim: ClaimId, *, error: Exception) -> bool:
        """Report a failed leg to the core; return whether the bytes of the claim now take another one."""
        is_final = isinstance(error, FileNotFoundError | RefusedError | ProtocolError | BeyondError)
        if is_final or not isinstance(error, ChannelError | PermissionError):
            return False
        self._on_event(StraightFailed(claim=claim, text=str(error)))
        # The core handles the event in the next turn of the event loop.
        await asyncio.sleep(0)
        return self._leg_of(claim) not in (None, leg)

    async def _other_leg(self, leg: Leg, claim: ClaimId, error: ChannelError | PermissionError) -> Leg:
        """Return the leg to use instead; without one, raise the error with the name of the failed system."""
        if await self.has_other_leg(leg, claim, error=error):
            other = self._leg_of(claim)
            assert other is not None, "a claim with another leg is known"
            return other
        if isinstance(error, RefusedError | ProtocolError | BeyondError):
            raise error
        # Not as a `PermissionError`, which would mean to the origin that the output is gone.
        raise BeyondError(f"{leg.system}: {error}", public=f"{leg.system}: {public_of(error)}") from error
