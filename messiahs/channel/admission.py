"""Peers with which a module exchanges nothing, because its administrator has shut them off (MESSIAHS 2: autonomy)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from messiahs.core.model.ids import SystemId

SHUT_OFF: Final = "shut_off"
"""All that a peer learns of why it is refused."""
WHY_SHUT_OFF: Final = f"its administrator has shut this module off ({SHUT_OFF})"
"""What a module says of a peer that has shut it off."""


class Admission:
    """The peers that are shut off, and the streams that all peers have open (mutable)."""

    def __init__(self) -> None:
        self._shut_off: dict[SystemId, asyncio.Event] = {}
        """Each with an event that is set when it is readmitted."""
        self._streams: dict[SystemId, dict[asyncio.Timeout, str]] = {}
        """Each with the reason for which it was ended."""

    def is_off(self, peer: SystemId) -> bool:
        """Return whether a peer is shut off."""
        return peer in self._shut_off

    def shut_off(self, peer: SystemId) -> None:
        """End all streams that a peer has opened, and refuse new ones."""
        self._shut_off.setdefault(peer, asyncio.Event())
        self.end_streams(peer, SHUT_OFF)

    def end_streams(self, peer: SystemId, text: str) -> None:
        """End all streams that a peer has opened, which learns the reason; it may open new ones."""
        now = asyncio.get_running_loop().time()
        streams = self._streams.get(peer, {})
        for stream in streams:
            streams[stream] = text
            stream.reschedule(now)

    def readmit(self, peer: SystemId) -> None:
        """Allow streams again."""
        readmitted = self._shut_off.pop(peer, None)
        if readmitted is not None:
            readmitted.set()

    async def readmitted(self, peer: SystemId, *, at_most_seconds: float) -> None:
        """Wait until a peer is not shut off (any more), or for some seconds."""
        readmitted = self._shut_off.get(peer)
        if readmitted is not None:
            try:
                async with asyncio.timeout(at_most_seconds):
                    await readmitted.wait()
            except TimeoutError:
                return

    @asynccontextmanager
    async def stream_of(self, peer: SystemId) -> AsyncIterator[None]:
        """Serve a stream that a peer has opened; a `PermissionError` if it is shut off or ended in the meantime."""
        if self.is_off(peer):
            raise PermissionError(SHUT_OFF)
        streams = self._streams.setdefault(peer, {})
        stream = asyncio.timeout(None)
        try:
            async with stream:
                streams[stream] = ""
                yield
        except TimeoutError as error:
            if not stream.expired():
                raise
            raise PermissionError(streams[stream]) from error
        finally:
            streams.pop(stream, None)
            if not streams and self._streams.get(peer) is streams:
                del self._streams[peer]
