"""Who supplied which file: a hash is no capability, so only suppliers may refer to a file by its hash alone.

A supplier is another system that sends files here, a system behind that one, or a local user.
"""

import os
import re
import threading
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
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
_STALE_LINES: Final = 4_096
"""The file is written anew when it has so many more lines than suppliers."""


class Suppliers:
    """A file with a line for each supplier of each stored file; methods can be called in any thread.

    A line has a checksum. One that is cut or damaged, after a power failure or on a full disk, names nobody and costs a
    second transfer of that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[bytes, dict[str, None]] = {}
        self._stale_lines = 0
        content = b""
        with suppress(OSError):
            content = path.read_bytes()
        for line in content.split(b"\n"):
            match = _LINE.fullmatch(line)
            if match is not None and match[1] == _checksum(match[2]):
                self._add(bytes.fromhex(match[3].decode()), match[4].decode())

    def has(self, sha256: bytes, supplier: str) -> bool:
        """Whether a supplier brought all bytes of a file."""
        with self._lock:
            return supplier in self._known.get(sha256, ())

    def files_of(self, supplier: str) -> list[bytes]:
        """Return the hashes of the files that a supplier brought."""
        with self._lock:
            return [sha256 for sha256, names in self._known.items() if supplier in names]

    def note(self, hashes: Iterable[bytes], supplier: str) -> None:
        """Record that a supplier brought all bytes of these files."""
        with self._lock:
            new = [sha256 for sha256 in hashes if supplier not in self._known.get(sha256, ())]
            for sha256 in new:
                self._add(sha256, supplier)
            if not new:
                return
            with suppress(OSError):
                if self._stale_lines < _STALE_LINES:
                    self._append(b"".join(_line(sha256, supplier) for sha256 in new))
                else:
                    self._write_all()

    def forget(self, hashes: Collection[bytes]) -> None:
        """Forget files that are deleted."""
        with self._lock:
            gone = [sha256 for sha256 in hashes if self._known.pop(sha256, None) is not None]
            if gone:
                with suppress(OSError):
                    self._write_all()

    def _add(self, sha256: bytes, supplier: str) -> None:
        names = self._known.setdefault(sha256, {})
        names[supplier] = None
        if len(names) > _SUPPLIERS_OF_A_FILE:
            del names[next(iter(names))]
            self._stale_lines += 1

    def _append(self, lines: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # The last line may be cut, and must not become the beginning of this one.
            os.write(descriptor, b"\n" + lines)
        finally:
            os.close(descriptor)

    def _write_all(self) -> None:
        content = b"".join(_line(sha256, each) for sha256, names in self._known.items() for each in names)
        write_whole(self._path, content, mode=0o600)
        self._stale_lines = 0


def supplier_of(peer: SystemId, behind: bytes) -> str:
    """Return the supplier of files that a peer sends for itself, or for a system behind it, which only it knows."""
    return f"{peer}/{behind.hex()}" if behind else str(peer)


def neighbor_of(supplier: str) -> SystemId:
    """Return the peer that sends the files of a supplier."""
    return SystemId(supplier.partition("/")[0])


def _line(sha256: bytes, supplier: str) -> bytes:
    entry = f"{file_name(sha256)} {supplier}".encode()
    return b"%b %b\n" % (_checksum(entry), entry)


def _checksum(entry: bytes) -> bytes:
    return b"%08x" % zlib.crc32(entry)
