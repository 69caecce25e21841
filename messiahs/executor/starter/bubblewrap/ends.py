"""The ends of tasks in boxes: what bubblewrap reports of them, and asking a task to end.

A box has three processes at first, which are one process group: bubblewrap itself, which the starter starts; its child,
the init of the box; and the task. When the first one ends, the kernel ends the second one, and with it everything else
in the box. The starter adopts the init, and has reaped it only when nothing of the box is left.
"""

import errno
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.linux.processes import signal_if, standing_of
from messiahs.executor.linux.strays import Children
from messiahs.executor.starter.bubblewrap.boxes import NO_FOLDER, NOT_EXECUTED, said_in
from messiahs.executor.starter.bubblewrap.view import WORK_SEEN
from messiahs.executor.starter.process_trees import children_of
from messiahs.executor.starter.spawn import NOT_EXECUTABLE, NOT_FOUND, no_folder

_SIGNALED: Final = 128
_MISSING: Final = (os.strerror(errno.ENOENT), os.strerror(errno.ENOTDIR))


def problem_of_box(log: str) -> NotSpawned:
    """Return why a box has never had its task, by what bubblewrap wrote to the log of its errors."""
    said = said_in(log)
    if said.startswith(NOT_EXECUTED):
        code = NOT_FOUND if said.endswith(_MISSING) else NOT_EXECUTABLE
        return NotSpawned(cause=Cause.NOT_FOUND, exit_code=code, text=said.removeprefix(NOT_EXECUTED))
    if said.startswith(NO_FOLDER):
        folder, _, why = said.removeprefix(NO_FOLDER).removeprefix(f"{WORK_SEEN}/").rpartition(": ")
        return no_folder(folder, why)
    return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"its box cannot be set up: {said}")


def true_end(exit_code: int) -> tuple[int | None, int | None]:
    """Return the exit code and the signal of a task: bubblewrap adds 128 to the number of a signal, like a shell."""
    number = exit_code - _SIGNALED
    return (None, number) if number in signal.valid_signals() else (exit_code, None)


def terminate_inside(children: Children, outermost: int) -> None:
    """Send SIGTERM and SIGCONT to the task in a box, and to its group; to the box itself if it has no task yet.

    `outermost` is the starter's number of bubblewrap's first process, which must not end before the task.
    """
    name = next((name for name, child in children.known().items() if child.number == outermost), None)
    inside = [] if name is None else list(_inside(name))
    # A task with a terminal leads a group of its own.
    leaders = (name, *(() if name is None else _first_inside(name)))
    group = [each for each in inside if (standing := standing_of(each)) is not None and standing.group in leaders]
    for number in (signal.SIGTERM, signal.SIGCONT):
        if not inside:
            with suppress(ProcessLookupError):
                os.killpg(outermost, number)
        for each in group:
            if (own := children.own_number(each)) != 0:
                signal_if(own, number, partial(_is_still, children, each, own))
    if inside:
        # A suspended box has a suspended init, which must run to notice the end of the task.
        with suppress(ProcessLookupError):
            os.killpg(outermost, signal.SIGCONT)


def _is_still(children: Children, name: bytes, number: int) -> bool:
    return children.own_number(name) == number


def _first_inside(outermost: bytes) -> Iterator[bytes]:
    return (each for init in children_of(outermost) for each in children_of(init))


def _inside(outermost: bytes) -> Iterator[bytes]:
    """Yield the processes in a box, except its init."""
    waiting = list(_first_inside(outermost))
    seen: set[bytes] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += children_of(name)
