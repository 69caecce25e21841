"""Waking a main thread that waits for a queue when a signal arrives."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS_AT_ONCE: Final = 256


@contextmanager
def woken_by_signals(wake: Callable[[], None]) -> Iterator[None]:
    """Call `wake`, from a thread, after every signal that has a handler; for the main thread.

    Python runs handlers in the main thread, and a signal by itself does not end a wait there: the kernel may interrupt
    another thread, or this one just before it waits.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def pass_on() -> None:
        while reader.recv(_SIGNALS_AT_ONCE):
            wake()

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    former = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        writer.close()
        thread.join()
        reader.close()
