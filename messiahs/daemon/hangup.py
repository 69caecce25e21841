"""What SIGHUP means: policies are to be read again, unless the terminal is gone that a process was started from."""

import asyncio
import os
import signal
from collections.abc import Callable


def on_hangup(reload: Callable[[], None], stop: Callable[[], None]) -> None:
    """Call `reload` at every SIGHUP from now on; `stop` if standard input was a terminal and is one no more.

    A terminal that is closed says the same as an administrator who wants something read again.
    """
    had_terminal = os.isatty(0)

    def hung_up() -> None:
        if had_terminal and not os.isatty(0):
            stop()
        else:
            reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)
