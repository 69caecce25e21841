"""Streams of raw bytes over TLS for large files, used by threads with blocking calls (MESSIAHS 5.3.3)."""

import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Final

from messiahs.channel.byte_streams.byte_threads import BUFFER_BYTES
from messiahs.errors import ChannelError

SILENCE_SECONDS: Final = 60.0
"""A peer that sends or takes nothing for this long is considered gone."""
LEAST_BYTES_PER_SECOND: Final = 1_024
"""A peer with a lower average rate, after the time that it may be silent, is considered gone."""
_GATHERING_SECONDS: Final = 0.02
"""A read waits this long for more than the first bytes, so that few large pieces are handled instead of many."""


class BulkStream:
    """One connection, in one direction: one thread either reads or writes. Errors are `ChannelError` (mutable).

    A peer that sends or takes nothing for `silence_seconds` is considered gone. `close` may be called from any thread.
    """

    def __init__(self, connection: ssl.SSLSocket, *, silence_seconds: float = SILENCE_SECONDS) -> None:
        self._connection, self._silence_seconds = connection, silence_seconds
        self._lock = threading.Lock()
        self._is_used, self._is_closed = False, False
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._read_bytes, self._waited_seconds = 0, 0.0

    def read_into(self, buffer: memoryview, /) -> int:
        """Wait for the next bytes; 0 when the peer has ended its stream."""
        self._begin_use()
        try:
            self._connection.settimeout(0)
            return self._gather(buffer)
        except OSError as error:
            raise _broken(error) from error
        finally:
            self._end_use()

    def write(self, piece: memoryview, /) -> None:
        """Send a piece; returns when the kernel has taken all of it."""
        self._begin_use()
        try:
            for start in range(0, len(piece), BUFFER_BYTES):
                part = piece[start : start + BUFFER_BYTES]
                self._connection.settimeout(self._silence_seconds + len(part) / LEAST_BYTES_PER_SECOND)
                self._connection.sendall(part)
        except TimeoutError as error:
            raise ChannelError(f"the peer took less than {LEAST_BYTES_PER_SECOND} bytes a second") from error
        except OSError as error:
            raise _broken(error) from error
        finally:
            self._end_use()

    def close(self) -> None:
        """End the stream; a call in progress in another thread fails. Repeated calls are allowed."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            is_used = self._is_used
        if was_closed:
            return
        with suppress(OSError):
            # Not the method of `SSLSocket`: it makes a read in another thread return bytes that are still encrypted.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)
        if not is_used:
            self._connection.close()

    def _begin_use(self) -> None:
        with self._lock:
            if self._is_closed:
                raise ChannelError("the stream was closed")
            self._is_used = True

    def _end_use(self) -> None:
        with self._lock:
            self._is_used = False
            is_closed = self._is_closed
        if is_closed:
            self._connection.close()
            raise ChannelError("the stream was closed")

    def _gather(self, buffer: memoryview) -> int:
        size, until = 0, 0.0
        while size < len(buffer):
            try:
                count = self._connection.recv_into(buffer[size:])
            except ssl.SSLWantReadError:
                now = time.monotonic()
                until = until or now + _GATHERING_SECONDS
                if not size:
                    self._await_first()
                elif now >= until or not self._is_ready(until - now):
                    break
            except OSError:
                if not size:
                    raise
                break
            else:
                if not count:
                    break
                size += count
        self._read_bytes += size
        if size and self._patience_seconds <= 0:
            raise ChannelError(self._too_slow)
        return size

    @property
    def _patience_seconds(self) -> float:
        """How long this side may still wait; the time that it takes to use the bytes does not count."""
        return self._silence_seconds + self._read_bytes / LEAST_BYTES_PER_SECOND - self._waited_seconds

    @property
    def _too_slow(self) -> str:
        rate = f"less than {LEAST_BYTES_PER_SECOND} bytes a second"
        return f"the peer sent nothing for {self._silence_seconds:g} s, or {rate}"

    def _await_first(self) -> None:
        seconds = min(self._silence_seconds, self._patience_seconds)
        if seconds <= 0 or not self._is_ready(seconds):
            raise ChannelError(self._too_slow)

    def _is_ready(self, seconds: float) -> bool:
        began = time.monotonic()
        is_ready = bool(self._poll.poll(seconds * 1000))
        self._waited_seconds += time.monotonic() - began
        return is_ready


def _broken(error: OSError) -> ChannelError:
    return ChannelError(f"the stream of bytes broke: {error.strerror or error}")
