"""One connection of a daemon with its starter: frames in both directions, and a check that the starter is alive."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

import msgspec

from messiahs.executor.attempt_values import Known
from messiahs.executor.protocol.frames import (
    Fed,
    FrameReader,
    Hello,
    News,
    Ping,
    Pong,
    Stop,
    ToDaemon,
    ToStarter,
    encode_frames,
)

_READ_BYTES = 1 << 18
_PINGS = 5


class StarterLink:
    """A connection after the starter's hello; its loss is reported once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hello = Hello(protocol=0, pid=0, attempts_root="", degraded="", has_rebooted=False)
        self._reader, self._writer = reader, writer
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[ToDaemon])
        self._frames = FrameReader()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._unanswered = 0
        self._is_open = False

    @classmethod
    async def greeted(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Self | None:
        """Wait for the starter's hello; None if the connection ends, or another message arrives.

        Cancelling the wait closes the connection.
        """
        link = cls(reader, writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, msgspec.MsgspecError, TimeoutError):
                async with asyncio.timeout(10):
                    size = int.from_bytes(await reader.readexactly(4), "little")
                    (first,) = link._decoder.decode(await reader.readexactly(size))
                if isinstance(first, Hello):
                    link.hello = first
                    return link
        except asyncio.CancelledError:
            writer.close()
            raise
        await link.close(stop_starter=False)
        return None

    def open(
        self,
        on_message: Callable[[News | Known | Fed], None],
        on_lost: Callable[[str], None],
        *,
        silence_ns: Callable[[], int],
    ) -> None:
        """Begin to read, and to check that the starter is alive; `silence_ns` gives its maximum silence at any time."""
        self._is_open = True
        loop = asyncio.get_running_loop()
        self._tasks = (
            loop.create_task(self._read(on_message, on_lost)),
            loop.create_task(self._watch(on_lost, silence_ns)),
        )

    def send(self, messages: Sequence[ToStarter]) -> None:
        """Send messages in order; a lost connection drops them."""
        if messages and not self._writer.is_closing():
            self._writer.write(encode_frames(self._encoder, messages))

    async def close(self, *, stop_starter: bool) -> None:
        """Close the connection after everything that was sent; `stop_starter` makes the starter end everything."""
        self._is_open = False
        if stop_starter:
            self.send([Stop()])
        # Flushed and closed first, so that a cancelled close has closed the connection, too.
        self._writer.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self, on_message: Callable[[News | Known | Fed], None], on_lost: Callable[[str], None]) -> None:
        try:
            while data := await self._reader.read(_READ_BYTES):
                self._unanswered = 0
                for body in self._frames.feed(data):
                    for message in self._decoder.decode(body):
                        if not isinstance(message, Hello | Pong):
                            on_message(message)
        except (OSError, msgspec.MsgspecError) as error:
            self._lose(on_lost, f"the starter's connection broke: {error}")
        else:
            self._lose(on_lost, "the starter ended")

    async def _watch(self, on_lost: Callable[[str], None], silence_ns: Callable[[], int]) -> None:
        # Unanswered pings are counted instead of time: a daemon that was stopped itself must not blame the starter.
        while self._unanswered < _PINGS:
            self.send([Ping()])
            self._unanswered += 1
            await asyncio.sleep(silence_ns() / 1e9 / _PINGS)
        self._lose(on_lost, f"the starter was silent for {silence_ns() / 1e9:g} s")

    def _lose(self, on_lost: Callable[[str], None], text: str) -> None:
        if self._is_open:
            self._is_open = False
            on_lost(text)
