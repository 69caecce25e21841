"""Contents in memory as blocking sources of bytes."""

import hashlib
import threading

from messiahs.errors import ChannelError

_PIECE_BYTES = 100_000


class ContentSource:
    """Bytes from an offset on, in pieces; at `stop_at` it blocks until `go_on` or `close` (mutable)."""

    def __init__(self, content: bytes, *, offset: int = 0, stop_at: int | None = None) -> None:
        self._content, self._at, self._stop_at = content, offset, stop_at
        self._changed = threading.Condition()
        self.is_blocked, self.is_closed = False, False

    @property
    def sha256(self) -> bytes:
        """The hash of the whole content."""
        return hashlib.sha256(self._content).digest()

    def read_into(self, buffer: memoryview, /) -> int:
        """Read a piece."""
        with self._changed:
            if self._stop_at is not None and self._at >= self._stop_at:
                self.is_blocked = True
                self._changed.wait_for(lambda: self._stop_at is None or self.is_closed)
            if self.is_closed:
                raise ChannelError("the source was closed")
            end = min(len(self._content), self._at + min(len(buffer), _PIECE_BYTES))
            if self._stop_at is not None:
                end = min(end, self._stop_at)
            piece = self._content[self._at : end]
        self._at += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)

    def go_on(self) -> None:
        """Stop no more."""
        with self._changed:
            self._stop_at = None
            self._changed.notify_all()

    def close(self) -> None:
        """End the source."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
