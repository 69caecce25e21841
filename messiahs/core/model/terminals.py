"""Terminals of tasks: their size, and what is brought to them.

The standard input of a task with a terminal is a sequence of frames: a byte that says what follows, two bytes with its
length, and that. So sizes keep their place among the keys, and every module on the way passes both on as bytes.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

LONGEST: Final = 65_535
"""The most rows, and the most columns."""
FRAME_BYTES: Final = 65_535
"""What one frame brings at most."""
HEADER: Final = struct.Struct(">BH")
SIZE: Final = struct.Struct(">HH")
TERMINAL_REQUIREMENT: Final = '($isolation eq "process" or $isolation eq "sandbox" or $isolation eq "bubblewrap")'
"""What machines fulfil that have terminals for tasks; those of release 0.1.0 state no isolation."""
ONE_ATTEMPT: Final = "what was typed in its terminal is gone with that attempt, so it does not run again"


class FrameKind(IntEnum):
    """What a frame brings."""

    KEYS = 0
    SIZE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSize:
    """The size of a terminal in characters, each between 1 and `LONGEST`."""

    rows: int
    columns: int


def frame_of_keys(keys: bytes) -> bytes:
    """Return what brings these bytes, at most `FRAME_BYTES`, as if they were typed."""
    return HEADER.pack(FrameKind.KEYS, len(keys)) + keys


def frame_of_size(size: TerminalSize) -> bytes:
    """Return what changes the size of the terminal."""
    return HEADER.pack(FrameKind.SIZE, SIZE.size) + SIZE.pack(size.rows, size.columns)
