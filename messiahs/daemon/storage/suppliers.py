"""Who supplied which file: a hash is no capability, so only suppliers may refer to a file by its hash alone.

A supplier is another system that sends files here, a system behind that one, or a local user.
"""

import os
import re
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.executor.protocol.layout import file_name

USER_PREFIX: Final = "user:"
"""Begins the supplier's name of a local user. No name of a system contains a colon or a slash."""
_LINE: Final = re.compile(rb"([0-9a-f]{8}) (([0-9a-f]{64}) (.+))")
_SUPPLIERS_OF_A_FILE: Final = 256
"""The earliest of more suppliers are forgotten, and send the file again."""
_BEHIND_A_NEIGHBOR: Final = 16
"""Maximum number of suppliers of a file behind one neighbor, which could invent them; its earliest are forgotten."""
_SUPPLIERS_OF_ALL: Final = 524_288
"""Maximum number of suppliers of all files; beyond it, the neighbor with most of them loses an eighth of its own."""
_BEHIND: Final = "/"
"""Separates a neighbor from the name of a system behind it, which that neighbor gave it."""
_NOBODY: Final = _BEHIND
"""The supplier in a line that forgets all earlier suppliers of its file. No supplier has this name."""
_STALE_LINES: Final = 4_096
"""The file is written anew once this many of its lines are obsolete, or as many as there are files if they are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number of files, and their size together."""

    file_count: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class _File:
    """A stored file (mutable): its suppliers, the earliest first, and its size once somebody asked for it."""

    names: dict[str, None] = field(default_factory=dict)
    size_bytes: int | None = None


class Suppliers:
    """A file with a line for each supplier of each stored file; methods can be called in any thread.

    A line has a checksum. One that is cut or damaged, after a power failure or on a full disk, names nobody and costs a
    second transfer of that file. A further line forgets the suppliers of a file that is deleted. One thread writes at a
    time; others leave their lines to it and do not wait.
    """

    def __init__(self, path: Path, size_of: Callable[[bytes], int | None]) -> None:
        """Read the file at `path`; `size_of` returns the size of a stored file, None if it is missing."""
        self._path, self._size_of = path, size_of
        self._lock = threading.Lock()
        self._known: dict[bytes, _File] = {}
        self._counting = threading.Lock()
        """Held while the files of a supplier are counted, which takes long: before `_lock`."""
        self._held: dict[str, Amount] = {}
        """What the suppliers have here that were counted: their files whose size is known."""
        self._lines_of: Counter[SystemId] = Counter()
        """The number of suppliers of all files, by neighbor."""
        self._line_count = self._stale_lines = 0
        self._unwritten: list[bytes] = []
        self._writing = threading.Lock()
        with suppress(OSError), path.open("rb") as file:
            for line in file:
                self._read(line.removesuffix(b"\n"))

    def has(self, sha256: bytes, supplier: str) -> bool:
        """Whether a supplier brought all bytes of a file.

        It takes no lock, because the event loop calls it. Each of its two lookups is atomic.
        """
        file = self._known.get(sha256)
        return file is not None and supplier in file.names

    def held_by(self, supplier: str, *, is_counted_again: bool = False) -> Amount:
        """Return what a supplier brought of the files that are here.

        All its files are looked at the first time, and again only if the caller wants that, because somebody else may
        have removed some.
        """
        with self._counting:
            if is_counted_again or supplier not in self._held:
                self._count(supplier)
            return self._held[supplier]

    def note(self, hashes: Iterable[bytes], supplier: str) -> None:
        """Record that a supplier brought all bytes of these files, which are stored."""
        with self._lock:
            new = [sha256 for sha256 in dict.fromkeys(hashes) if not self.has(sha256, supplier)]
            for sha256 in new:
                file = self._add(sha256, supplier)
                if supplier in self._held and file.size_bytes is None:
                    self._note_size(sha256, self._size_of(sha256))
            self._unwritten += (_line(sha256, supplier) for sha256 in new)
        self._write()

    def forget(self, hashes: Collection[bytes]) -> None:
        """Forget files that are deleted."""
        with self._lock:
            self._unwritten += [_line(sha256, _NOBODY) for sha256 in hashes if self._drop(sha256)]
        self._write()

    def _read(self, line: bytes) -> None:
        match = _LINE.fullmatch(line)
        if match is not None and match[1] == _checksum(match[2]):
            sha256, supplier = bytes.fromhex(match[3].decode()), match[4].decode()
            if supplier == _NOBODY:
                self._drop(sha256)
            else:
                self._add(sha256, sys.intern(supplier))

    def _count(self, supplier: str) -> None:
        with self._lock:
            theirs = {sha256: file for sha256, file in self._known.items() if supplier in file.names}
            if supplier not in self._held:
                # Files that are noted from now on are added to this.
                sizes = [file.size_bytes for file in theirs.values() if file.size_bytes is not None]
                self._held[supplier] = Amount(file_count=len(sizes), size_bytes=sum(sizes))
        found = {sha256: self._size_of(sha256) for sha256 in theirs}
        with self._lock:
            for sha256, size_bytes in found.items():
                self._note_size(sha256, size_bytes)
        self.forget([sha256 for sha256, size_bytes in found.items() if size_bytes is None])

    def _note_size(self, sha256: bytes, size_bytes: int | None) -> None:
        """Note the size of a file, which never changes, unless that is known; it counts for all its suppliers."""
        file = self._known.get(sha256)
        if file is not None and file.size_bytes is None and size_bytes is not None:
            file.size_bytes = size_bytes
            for name in file.names:
                self._change(name, file, 1)

    def _change(self, supplier: str, file: _File, sign: int) -> None:
        held = self._held.get(supplier)
        if held is not None and file.size_bytes is not None:
            self._held[supplier] = Amount(
                file_count=held.file_count + sign, size_bytes=held.size_bytes + sign * file.size_bytes
            )

    def _add(self, sha256: bytes, supplier: str) -> _File:
        file = self._known.setdefault(sha256, _File())
        if supplier in file.names:
            self._stale_lines += 1
            return file
        file.names[supplier] = None
        self._change(supplier, file, 1)
        self._lines_of[neighbor_of(supplier)] += 1
        self._line_count += 1
        for name in _surplus(file, supplier):
            self._remove(sha256, name)
        if self._line_count > _SUPPLIERS_OF_ALL:
            self._make_room()
        return file

    def _make_room(self) -> None:
        """Forget an eighth of the suppliers of the neighbor that has most, those of the earliest files first."""
        neighbor, count = self._lines_of.most_common(1)[0]
        theirs = ((sha256, each) for sha256, file in self._known.items() for each in file.names)
        excess = list(islice((each for each in theirs if neighbor_of(each[1]) == neighbor), count // 8 + 1))
        for sha256, name in excess:
            self._remove(sha256, name)

    def _remove(self, sha256: bytes, name: str) -> None:
        file, neighbor = self._known[sha256], neighbor_of(name)
        del file.names[name]
        self._change(name, file, -1)
        self._lines_of[neighbor] -= 1
        if not self._lines_of[neighbor]:
            del self._lines_of[neighbor]
        self._line_count -= 1
        self._stale_lines += 1
        if not file.names:
            del self._known[sha256]

    def _drop(self, sha256: bytes) -> bool:
        """Forget the suppliers of a file; return whether it had some."""
        file = self._known.get(sha256)
        if file is None:
            return False
        for name in list(file.names):
            self._remove(sha256, name)
        self._stale_lines += 1
        return True

    def _write(self) -> None:
        """Append lines for what has changed, or write the file anew; a full disk costs what was to be written.

        Another thread that is doing so goes on with these lines.
        """
        while self._unwritten and self._writing.acquire(blocking=False):
            try:
                with suppress(OSError):
                    self._write_lines()
            finally:
                self._writing.release()

    def _write_lines(self) -> None:
        with self._lock:
            lines, self._unwritten = self._unwritten, []
            is_stale = self._stale_lines >= max(_STALE_LINES, self._line_count)
            if is_stale:
                known = [(sha256, tuple(file.names)) for sha256, file in self._known.items()]
                stale_lines = self._stale_lines
        if is_stale:
            content = b"".join(_line(sha256, each) for sha256, names in known for each in names)
            write_whole(self._path, content, mode=0o600)
            with self._lock:
                # Without this, the next change writes the file anew.
                self._stale_lines -= stale_lines
        else:
            self._append(b"".join(lines))

    def _append(self, lines: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # The last line may be cut, and must not become the beginning of this one.
            os.write(descriptor, b"\n" + lines)
        finally:
            os.close(descriptor)


def supplier_of(peer: SystemId, behind: bytes) -> str:
    """Return the supplier of files that a peer sends for itself, or for a system behind it, which only it knows."""
    return f"{peer}{_BEHIND}{behind.hex()}" if behind else str(peer)


def neighbor_of(supplier: str) -> SystemId:
    """Return the peer that sends the files of a supplier."""
    return SystemId(supplier.partition(_BEHIND)[0])


def _surplus(file: _File, supplier: str) -> Collection[str]:
    """Return the suppliers of a file that are too many now that this one came."""
    if len(file.names) > _BEHIND_A_NEIGHBOR and _BEHIND in supplier:
        neighbor = neighbor_of(supplier)
        behind = [each for each in file.names if neighbor_of(each) == neighbor]
        if len(behind) > _BEHIND_A_NEIGHBOR:
            return behind[:1]
    return [next(iter(file.names))] if len(file.names) > _SUPPLIERS_OF_A_FILE else []


def _line(sha256: bytes, supplier: str) -> bytes:
    entry = f"{file_name(sha256)} {supplier}".encode()
    return b"%b %b\n" % (_checksum(entry), entry)


def _checksum(entry: bytes) -> bytes:
    return b"%08x" % zlib.crc32(entry)
