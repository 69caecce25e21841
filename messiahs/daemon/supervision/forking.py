"""Starting daemons as forks of a process that has loaded all of their code.

Loading takes a second of processor time; fifteen modules that start together load once, and share the memory. It must
happen before there are threads: gRPC starts its own only when a daemon opens its channels.
"""

import asyncio
import gc
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.daemon.process.hangup import hold_hangups

LOG_FILE: Final = "daemon.log"
_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR = 3, 4096
_FAILED_EXIT = 70
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)


class ForkedDaemon:
    """A daemon that is a child of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    async def wait(self) -> int:
        """Wait for its end; return its exit code, or the negative number of the signal that ended it."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        handle = os.pidfd_open(self.pid)
        loop.add_reader(handle, ended.set_result, None)
        try:
            await ended
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        _, status = os.waitpid(self.pid, 0)  # noqa: ASYNC222 - it has ended
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def load_code() -> None:
    """Load the code of daemons, and create what each of them would create at its first use."""
    # What is loaded stays, and the collector would visit it again and again.
    gc.disable()
    from messiahs.daemon.__main__ import prepare  # noqa: PLC0415 - the moment of loading matters
    from messiahs.language.syntax.parsing import policy_grammar  # noqa: PLC0415 - as above

    prepare()
    policy_grammar()
    gc.freeze()
    gc.enable()


def fork_daemon(folder: Path) -> ForkedDaemon:
    """Start the daemon of FOLDER/settings.json in a session of its own; it writes to FOLDER/daemon.log."""
    with (folder / LOG_FILE).open("ab") as log:
        sys.stdout.flush()
        sys.stderr.flush()
        # Signals are held until the daemon has its own handlers: the inherited ones would do the supervisor's work.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                _become_daemon(folder / "settings.json", log.fileno())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ForkedDaemon(pid)


def _become_daemon(settings_file: Path, log: int) -> None:
    """Run the daemon and exit: no code of the parent may continue in this process."""
    code = _FAILED_EXIT
    try:
        # Ctrl-C at the terminal is for the supervisor, which then ends its daemons in order.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        hold_hangups()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1))
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in enumerate((null, log, log)):
            os.dup2(source, target)
        os.closerange(_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR)
        from messiahs.daemon.__main__ import run_daemon  # noqa: PLC0415 - see `load_code`

        code = run_daemon(settings_file)
    except BaseException:  # noqa: BLE001 - after any error this process must not continue as its parent
        with suppress(OSError):
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            # On a full disk; this process must end here in any case.
            with suppress(BaseException):
                stream.flush()
        os._exit(code)
