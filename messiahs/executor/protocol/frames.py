"""Messages between daemon and starter on their Unix socket, several in a frame.

A frame is four bytes of length and a msgpack list. Instants are CLOCK_BOOTTIME nanoseconds, a clock that daemon and
starter share because they run on one machine.
"""

import struct
from collections.abc import Iterator, Sequence

import msgspec

from messiahs.config.settings import PROCESS
from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.executor.attempt_values import Ended, Known, Start

PROTOCOL = 5
"""A daemon that finds a starter with another protocol ends it and starts its own."""


class End(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """End an attempt in any state; an `Ended` follows. With `only_if_queued` a running attempt continues."""

    attempt: AttemptId
    grace_ns: int
    cause: Cause
    only_if_queued: bool = False


class Extend(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Change the end of a claim's lease."""

    claim: ClaimId
    until: int


class Discard(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """Forget an ended attempt and remove its folder."""

    attempt: AttemptId


class Feed(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=17):
    """Write a piece of standard input, which begins at an offset; a `Fed` with the number follows.

    It replaces a piece that waits. Without content and end it only asks for the offset.
    """

    attempt: AttemptId
    number: int
    offset_bytes: int
    content: bytes
    is_end: bool


class Ask(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """Request everything that the starter knows; from then on, it also reports events to the daemon."""

    number: int


class Ping(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """Check that the starter is alive; a `Pong` follows."""


class Stop(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """End all tasks, then the starter."""


class Suspend(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=13):
    """Suspend a running attempt."""

    attempt: AttemptId


class Resume(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=14):
    """Resume a suspended attempt."""

    attempt: AttemptId


class MeasureMemory(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=15):
    """Request the memory use of attempts; a `MemoryMeasured` follows."""

    attempts: tuple[AttemptId, ...]


class Hello(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """The starter's first message: its identity, the accounts of its tasks, and what it found.

    The accounts are ranges of numbers, each with its first and last one; a starter of an earlier release names `uid`
    alone, and none of them. `isolation` is how tasks are contained. Without `maps_accounts` it ignores
    the account of a start, as those of earlier releases do, without `narrows_networks` its network, and
    without `shows_environments` its environment, without `has_terminals` its terminal, and without `shows_devices` its
    device files.
    """

    protocol: int
    pid: int
    attempts_root: str
    degraded: str
    has_rebooted: bool
    uid: int = -1
    accounts: tuple[tuple[int, int], ...] = ()
    isolation: str = PROCESS
    maps_accounts: bool = False
    narrows_networks: bool = False
    shows_environments: bool = False
    has_terminals: bool = False
    shows_devices: bool = False


class Read(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=19):
    """So much of what an attempt has shown in its terminal was read."""

    attempt: AttemptId
    offset_bytes: int


class Started(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """The process of an attempt was started."""

    attempt: AttemptId


class MemoryMeasured(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=16):
    """The resident memory of attempts, in bytes."""

    memory: tuple[tuple[AttemptId, int], ...]


class Fed(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=18):
    """How many bytes of standard input an attempt has taken, and whether it takes no more."""

    attempt: AttemptId
    number: int
    offset_bytes: int
    is_closed: bool
    has_terminal: bool = False


class Pong(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=12):
    """The starter is alive."""


Command = Start | End | Suspend | Resume | MeasureMemory | Extend | Discard | Feed | Read
"""Commands for the runner; the other messages concern the connection."""

ToStarter = Command | Ask | Ping | Stop
News = Started | Ended | MemoryMeasured
ToDaemon = Hello | News | Known | Pong | Fed

_LENGTH = struct.Struct("<I")
_MESSAGES_PER_FRAME = 256


def encode_frames(encoder: msgspec.msgpack.Encoder, messages: Sequence[msgspec.Struct]) -> bytes:
    """Pack messages into as few frames as the limit on a frame allows."""
    frames = bytearray()
    for first in range(0, len(messages), _MESSAGES_PER_FRAME):
        body = encoder.encode(messages[first : first + _MESSAGES_PER_FRAME])
        frames += _LENGTH.pack(len(body))
        frames += body
    return bytes(frames)


class FrameReader:
    """Splits a byte stream into frames; an incomplete one is kept for the next call."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes, and yield the bodies of complete frames."""
        self._rest += data
        start = 0
        while len(self._rest) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(self._rest, start)[0]
            if len(self._rest) < end:
                break
            yield bytes(self._rest[start + _LENGTH.size : end])
            start = end
        del self._rest[:start]
