"""Who supplied which file: a hash is no capability, so only suppliers may refer to a file by its hash alone.

A supplier is another system that sends files here, a system behind that one, or a local user.
"""

import os
import re
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import write_whole
from messiahs.core.model.ids import SystemId
from messiahs.executor.protocol.layout import file_name

USER_PREFIX: Final = "user:"
"""Begins the supplier's name of a local user. No name of a system contains a colon or a slash."""
_LINE: Final = re.compile(r"([0-9a-f]{64}) (.+)", re.ASCII)


class Suppliers:
    """A file with a line for each supplier of each stored file; methods can be called in any thread.

    A line that is lost, after a power failure or on a full disk, costs a second transfer of that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[bytes, set[str]] = {}
        text = ""
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            match = _LINE.fullmatch(line)
            if match is not None:
                self._known.setdefault(bytes.fromhex(match[1]), set()).add(match[2])

    def has(self, sha256: bytes, supplier: str) -> bool:
        """Whether a supplier brought all bytes of a file."""
        with self._lock:
            return supplier in self._known.get(sha256, ())

    def note(self, hashes: Iterable[bytes], supplier: str) -> None:
        """Record that a supplier brought all bytes of these files."""
        with self._lock:
            new = [sha256 for sha256 in hashes if supplier not in self._known.get(sha256, ())]
            for sha256 in new:
                self._known.setdefault(sha256, set()).add(supplier)
            if new:
                with suppress(OSError):
                    self._append("".join(_line(sha256, supplier) for sha256 in new))

    def forget(self, hashes: Collection[bytes]) -> None:
        """Forget files that are deleted."""
        with self._lock:
            gone = [sha256 for sha256 in hashes if self._known.pop(sha256, None) is not None]
            if gone:
                text = "".join(_line(sha256, each) for sha256, names in self._known.items() for each in sorted(names))
                with suppress(OSError):
                    write_whole(self._path, text.encode(), mode=0o600)

    def _append(self, text: str) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


def supplier_of(peer: SystemId, behind: bytes) -> str:
    """Return the supplier of files that a peer sends for itself, or for a system behind it, which only it knows."""
    return f"{peer}/{behind.hex()}" if behind else str(peer)


def _line(sha256: bytes, supplier: str) -> str:
    return f"{file_name(sha256)} {supplier}\n"
