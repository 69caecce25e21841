"""What SIGHUP means: policies are to be read again, unless the terminal is gone that a process was started from."""

import asyncio
import errno
import signal
import termios
from collections.abc import Callable


def hold_hangups() -> None:
    """Keep a SIGHUP that comes from now on until `on_hangup`; also in what this process becomes by exec or fork."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def on_hangup(reload: Callable[[], None], stop: Callable[[], None]) -> None:
    """Call `reload` at every SIGHUP from now on, and at one that was held; `stop` if the terminal is gone.

    A terminal that is closed says the same as an administrator who wants something read again.
    """
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGHUP, lambda: stop() if _has_lost_its_terminal() else reload()
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))


class Held:
    """A call that is asked for, at any time and any number of times, before it can be made (mutable)."""

    def __init__(self) -> None:
        self._work: Callable[[], None] | None = None
        self._is_asked = False

    def __call__(self) -> None:
        """Make the call now if it can be made, else as soon as it can."""
        if self._work is None:
            self._is_asked = True
        else:
            self._work()

    def release(self, work: Callable[[], None]) -> None:
        """Say what is to be called, and call it if that was asked for."""
        self._work = work
        if self._is_asked:
            work()


def _has_lost_its_terminal() -> bool:
    try:
        termios.tcgetattr(0)
    except termios.error as error:
        # What never was a terminal answers ENOTTY.
        return bool(error.args[0] == errno.EIO)
    return False
