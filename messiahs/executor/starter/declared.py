"""What a task was to leave behind: its declared outputs, as they are when nothing of it runs any more.

No link is followed: what a link points to is not the task's to give away.
"""

import os
import stat
from dataclasses import dataclass, field
from itertools import islice

from messiahs.core.interface.causes import Cause
from messiahs.errors import CodecError
from messiahs.executor.protocol.frames import Left
from messiahs.executor.protocol.layout import WORK
from messiahs.wire.limits import FILE_LIMIT, relative_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTRY_LIMIT = 16_384
_DEPTH_LIMIT = 64
_NAMES_LIMIT_BYTES = 64 << 10
"""Of all names together: they travel in every status of the attempt."""
_SHOWN = 5


class _TooManyError(Exception):
    """More was found than can be told."""


@dataclass(slots=True)
class Found:
    """The files that were found, by name (grows while they are looked for), and what was not."""

    files: dict[str, Left] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    cause: Cause = Cause.NONE
    names_bytes: int = 0
    entries: int = 0

    @property
    def text(self) -> str:
        """Say what is wrong, and what was left out."""
        said = []
        if self.cause == Cause.TOO_MANY_OUTPUTS:
            said.append(
                f"its outputs are more than {FILE_LIMIT} files, or their names are too long: pack them with tar"
            )
        if self.missing:
            said.append(f"not there at the end: {_listed(self.missing)}")
        if self.skipped:
            said.append(f"left out, as no plain files: {_listed(self.skipped)}")
        return "; ".join(said)


def find_outputs(work: str, declared: tuple[str, ...]) -> Found:
    """Look for every declared file and folder in a work folder; a folder stands for the files in it."""
    found = Found()
    for name in declared:
        try:
            if not _look_at(found, work, name):
                found.missing.append(name)
        except _TooManyError:
            found.cause = Cause.TOO_MANY_OUTPUTS
            break
    if found.missing:
        found.cause = found.cause or Cause.OUTPUT_MISSING
    return found


def _look_at(found: Found, work: str, name: str) -> bool:
    """Add a declared output; False if there is none, or if its name leads out of the work folder."""
    if not _can_be_told(name):
        return False
    *folders, last = name.split("/")
    opened: list[int] = []
    try:
        opened.append(os.open(work, _FOLDER))
        for folder in folders:
            opened.append(os.open(folder, _FOLDER, dir_fd=opened[-1]))
        status = os.stat(last, dir_fd=opened[-1], follow_symlinks=False)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return False
        _add(found, opened[-1], last, path=name, depth=0)
    except (OSError, ValueError):
        return False
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def _add(found: Found, folder: int, entry: str, *, path: str, depth: int) -> None:
    """Add a file, or all that is in a folder."""
    found.entries += 1
    if found.entries > _ENTRY_LIMIT:
        raise _TooManyError
    status = os.stat(entry, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and depth < _DEPTH_LIMIT:
        descriptor = os.open(entry, _FOLDER, dir_fd=folder)
        try:
            for below in _entries_of(descriptor, at_most=_ENTRY_LIMIT - found.entries):
                _add_below(found, descriptor, below, path=f"{path}/{below}", depth=depth + 1)
        finally:
            os.close(descriptor)
    elif stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and _can_be_told(path):
        if not status.st_mode & stat.S_IRUSR:
            os.chmod(entry, stat.S_IMODE(status.st_mode) | stat.S_IRUSR, dir_fd=folder)
        _note(found, Left(path, status.st_size, bool(status.st_mode & stat.S_IXUSR)))
    else:
        found.skipped.append(path)


def _entries_of(folder: int, *, at_most: int) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, at_most + 1)]
    if len(names) > at_most:
        raise _TooManyError
    return sorted(names)


def _add_below(found: Found, folder: int, entry: str, *, path: str, depth: int) -> None:
    try:
        _add(found, folder, entry, path=path, depth=depth)
    except OSError:
        found.skipped.append(path)


def _note(found: Found, left: Left) -> None:
    if left.name in found.files:
        return
    found.names_bytes += len(left.name.encode())
    if len(found.files) >= FILE_LIMIT or found.names_bytes > _NAMES_LIMIT_BYTES:
        raise _TooManyError
    found.files[left.name] = left


def _can_be_told(path: str) -> bool:
    try:
        path.encode()
        relative_path(f"{WORK}/{path}")
    except (CodecError, UnicodeEncodeError):
        return False
    return True


def _listed(names: list[str]) -> str:
    shown = ", ".join(name.encode(errors="replace").decode() for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
