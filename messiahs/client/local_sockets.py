"""Connections to the Unix socket of a module, and the process behind one that does not answer. Not in the papers."""

import grp
import pwd
import socket
import stat
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group, as SO_PEERCRED returns them."""
_SECONDS: Final = struct.Struct("ll")


def connected(path: Path, *, seconds: float) -> socket.socket:
    """Return a connection to a socket; raises OSError, and TimeoutError if too many others wait there for `seconds`."""
    plug = socket.socket(socket.AF_UNIX)
    try:
        # A timeout of Python's would not wait while the queue of the listener is full.
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SECONDS.pack(int(seconds), int(seconds % 1 * 1e6)))
        plug.connect(str(path))
    except BlockingIOError:
        plug.close()
        raise TimeoutError("too many requests wait for it") from None
    except OSError:
        plug.close()
        raise
    return plug


def why_closed(path: Path) -> str:
    """Return why this account may not connect to the socket of a module, and who can change that."""
    text = f"you have no permission to use the module `{path.stem}`"
    try:
        found = path.stat()
    except OSError as error:
        return f"{text}: the way to its socket {path} is closed to your account ({error.strerror})"
    owner = _name_of(found.st_uid, pwd.getpwuid)
    if found.st_mode & stat.S_IWGRP:
        group = _name_of(found.st_gid, grp.getgrgid)
        return f"{text}: it serves the group {group}; ask an administrator to add your account to it, and log in again"
    return (
        f"{text}: it serves its own account, {owner}, alone; {owner} opens it to others with `users: everyone` or "
        "`users: group:NAME` in its topology"
    )


def process_behind(plug: socket.socket) -> int | None:
    """Return the process that listens at the other end of a connection; None if it cannot be seen from here."""
    raw = plug.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(raw)[0] or None


def _name_of(number: int, look_up: Callable[[int], Sequence[object]]) -> str:
    try:
        return str(look_up(number)[0])
    except KeyError:
        return str(number)
