"""SHA-256 beside other work: a large file is hashed in one thread while another one reads, writes or sends it."""

import hashlib
import threading
from queue import SimpleQueue
from typing import Final

_AT_ONCE_BYTES: Final = 64 << 10
"""Smaller pieces are hashed at once, because a thread costs more."""


class HashBeside:
    """The hash of pieces in order, computed in a thread of its own that ends with `close` (mutable).

    One thread at a time adds pieces and waits. A piece must not change before `wait` has returned.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._pieces: SimpleQueue[memoryview | None] = SimpleQueue()
        self._hashed: SimpleQueue[None] = SimpleQueue()
        self._unhashed = 0
        self._thread: threading.Thread | None = None

    def add(self, piece: memoryview) -> None:
        """Hash a piece after those before it."""
        if self._thread is None:
            if len(piece) <= _AT_ONCE_BYTES:
                self._hash.update(piece)
                return
            self._thread = threading.Thread(target=self._run, name="hash", daemon=True)
            self._thread.start()
        self._unhashed += 1
        self._pieces.put(piece)

    def wait(self, *, unhashed: int = 0) -> None:
        """Return when at most so many pieces are not hashed yet."""
        while self._unhashed > unhashed:
            self._hashed.get()
            self._unhashed -= 1

    def digest(self) -> bytes:
        """Return the hash of all pieces."""
        self.wait()
        return self._hash.digest()

    def close(self) -> None:
        """End the thread after the pieces that it has; repeated calls are allowed."""
        self._pieces.put(None)

    def _run(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._hash.update(piece)
            self._hashed.put(None)
