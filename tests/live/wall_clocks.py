"""Wall clocks of daemons that a test sets: the one of the system, and the seconds in a file by which it is wrong."""

import time
from pathlib import Path
from typing import Final

WALL: Final = "wall"
_OF_THE_SYSTEM: Final = time.time_ns


def follow_wall(folder: Path) -> None:
    """Let the wall clock of this process be ahead by the seconds in FOLDER/wall."""

    def time_ns() -> int:
        wall = folder / WALL
        return _OF_THE_SYSTEM() + (int(wall.read_text() or 0) * 1_000_000_000 if wall.exists() else 0)

    time.time_ns = time_ns
