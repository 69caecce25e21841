"""Streams of raw bytes over TLS for large files, used by threads with blocking calls (MESSIAHS 5.3.3)."""

import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Final

from messiahs.channel.byte_threads import BUFFER_BYTES
from messiahs.errors import ChannelError

SILENCE_SECONDS: Final = 60.0
"""A peer that sends or takes nothing for this long is considered gone."""
LEAST_BYTES_PER_SECOND: Final = 1_024
"""A peer with a lower average rate, after the time that it may be silent, is considered gone."""
_GATHERING_SECONDS: Final = 0.02
"""A read waits this long for more than the first bytes, so that few large pieces are handled instead of many."""


class BulkStream:
    """One connection, in one direction: one thread either reads or writes. Errors are `ChannelError` (mutable).

    `close` may be called from any thread.
    """

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_used, self._is_closed = False, False
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._slow_at = time.monotonic() + SILENCE_SECONDS

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
                self._connection.settimeout(SILENCE_SECONDS + len(part) / LEAST_BYTES_PER_SECOND)
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
                if not size:
                    self._await_first(now)
                    continue
                until = until or now + _GATHERING_SECONDS
                if now >= until or not self._poll.poll((until - now) * 1000):
                    break
                continue
            except OSError:
                if not size:
                    raise
                break
            if not count:
                break
            size += count
        self._slow_at += size / LEAST_BYTES_PER_SECOND
        return size

    def _await_first(self, now: float) -> None:
        seconds = min(SILENCE_SECONDS, self._slow_at - now)
        if seconds <= 0 or not self._poll.poll(seconds * 1000):
            rate = f"less than {LEAST_BYTES_PER_SECOND} bytes a second"
            raise ChannelError(f"the peer sent nothing for {SILENCE_SECONDS:.0f} s, or {rate}")


def _broken(error: OSError) -> ChannelError:
    return ChannelError(f"the stream of bytes broke: {error.strerror or error}")
