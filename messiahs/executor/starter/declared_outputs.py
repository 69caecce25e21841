"""Declared outputs of a task, as they are when none of its processes remains.

Links are not followed: their targets may not be the task's to give away.
"""

import os
import stat
from dataclasses import dataclass, field
from itertools import islice

from messiahs.core.interface.causes import Cause
from messiahs.errors import CodecError
from messiahs.executor.attempt_values import Left
from messiahs.executor.protocol.layout import WORK
from messiahs.wire.limits import FILE_LIMIT, relative_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTRY_LIMIT = 16_384
_DEPTH_LIMIT = 64
_NAMES_LIMIT_BYTES = 64 << 10
"""Maximum length of all names together: every status of the attempt carries them."""
_SHOWN = 5


class _TooManyError(Exception):
    """There are more files than a status can carry."""


@dataclass(slots=True)
class Found:
    """Files that were found, by name, and names that were not (mutable)."""

    files: dict[str, Left] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    cause: Cause = Cause.NONE
    names_bytes: int = 0
    entries: int = 0

    @property
    def text(self) -> str:
        """Return what is missing or was omitted."""
        texts = []
        if self.cause == Cause.TOO_MANY_OUTPUTS:
            texts.append(
                f"its outputs are more than {FILE_LIMIT} files, or their names are too long: pack them with tar"
            )
        if self.missing:
            texts.append(f"missing at the end: {_listed(self.missing)}")
        if self.skipped:
            texts.append(f"omitted, because they are not regular files: {_listed(self.skipped)}")
        return "; ".join(texts)


def find_outputs(work: str, declared: tuple[str, ...]) -> Found:
    """Find every declared file and folder in a work folder; a folder stands for its files."""
    found = Found()
    for name in declared:
        try:
            if not _add_declared(found, work, name):
                found.missing.append(name)
        except _TooManyError:
            found.cause = Cause.TOO_MANY_OUTPUTS
            break
    if found.missing:
        found.cause = found.cause or Cause.OUTPUT_MISSING
    return found


def _add_declared(found: Found, work: str, name: str) -> bool:
    """Add a declared output; False if it does not exist, or its name leads out of the work folder."""
    if not _fits_a_status(name):
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
    """Add a file, or all files in a folder."""
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
    elif stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and _fits_a_status(path):
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


def _fits_a_status(path: str) -> bool:
    try:
        path.encode()
        relative_path(f"{WORK}/{path}")
    except (CodecError, UnicodeEncodeError):
        return False
    return True


def _listed(names: list[str]) -> str:
    shown = ", ".join(name.encode(errors="replace").decode() for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
