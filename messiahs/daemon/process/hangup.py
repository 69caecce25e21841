"""The effect of SIGHUP: policies are reloaded, unless the terminal that started the process was closed."""

import asyncio
import errno
import signal
import termios
from collections.abc import Callable


def hold_hangups() -> None:
    """Hold SIGHUPs from now on until `on_hangup`, also in processes that this one becomes by exec or fork."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))


def on_hangup(reload: Callable[[], None], stop: Callable[[], None]) -> None:
    """Call `reload` at every SIGHUP from now on, and at a held one; call `stop` if the terminal is closed.

    A closed terminal and an administrator's reload send the same signal.
    """
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGHUP, lambda: stop() if _has_lost_its_terminal() else reload()
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))


class Held:
    """A call that may be requested any number of times before it can be made (mutable)."""

    def __init__(self) -> None:
        self._work: Callable[[], None] | None = None
        self._is_asked = False

    def __call__(self) -> None:
        """Make the call now if it is possible, else as soon as it is."""
        if self._work is None:
            self._is_asked = True
        else:
            self._work()

    def release(self, work: Callable[[], None]) -> None:
        """Set the function, and call it if that was requested."""
        self._work = work
        if self._is_asked:
            work()


def _has_lost_its_terminal() -> bool:
    try:
        termios.tcgetattr(0)
    except termios.error as error:
        # A file that never was a terminal answers ENOTTY.
        return bool(error.args[0] == errno.EIO)
    return False
