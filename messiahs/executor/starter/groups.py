"""Signals to process groups, and which child has ended."""

import os
import signal

from messiahs.executor.linux.processes import ProcessIdentity, is_alive
from messiahs.executor.starter.journal import Spawned


def next_dead() -> os.waitid_result | None:
    """Name a child that has ended, and leave it unreaped; None if there is none."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def signal_group(process: int, number: int) -> bool:
    """Signal a process group; False if nothing is in it."""
    try:
        os.killpg(process, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_group(spawned: Spawned) -> None:
    """Kill what an earlier starter left of an attempt, if that very process still runs."""
    if is_alive(ProcessIdentity(pid=spawned.pid, started=spawned.started)):
        signal_group(spawned.pid, signal.SIGKILL)
