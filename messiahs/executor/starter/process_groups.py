"""Signals to process groups, and finding ended children."""

import os
import signal

from messiahs.executor.linux.processes import ProcessIdentity, is_alive
from messiahs.executor.starter.journal import Spawned


def next_dead() -> os.waitid_result | None:
    """Return a child that has ended, without reaping it; None if there is none."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def signal_group(process: int, number: int) -> bool:
    """Signal a process group; False if it is empty."""
    try:
        os.killpg(process, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_group(spawned: Spawned) -> None:
    """Kill the remains of an attempt of an earlier starter, if its first process still runs."""
    if is_alive(ProcessIdentity(pid=spawned.pid, started=spawned.started)):
        signal_group(spawned.pid, signal.SIGKILL)
