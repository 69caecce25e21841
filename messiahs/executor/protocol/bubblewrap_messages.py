"""What bubblewrap writes to the log of a task's errors until the task begins."""

from typing import Final

BUBBLEWRAP: Final = "bwrap"
"""The name of the program, with which its lines begin."""
MESSAGE_BYTES: Final = 5_000
"""Maximum length of what it says of a box: the path of a folder in it may have 4,096 bytes."""


def is_from_bubblewrap(log: bytes) -> bool:
    """Return whether the beginning of a log may be what bubblewrap says of a box, whose task has not begun then."""
    prefix = f"{BUBBLEWRAP}: ".encode()
    lines = log.splitlines()
    return len(log) < MESSAGE_BYTES and bool(lines) and all(line.startswith(prefix) for line in lines)
