"""`python -m tests.live.lying_sums FOLDER…` runs the modules of folders, until its input ends; some lie in vectors.

The lies concern the vectors for parents. Two are in the module's own record of what it sent, one is sent alone.
"""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.state.module import ModuleState
from messiahs.core.update import advertising
from messiahs.core.vectors.vectors import Interval, MachineClass, Vector
from messiahs.daemon.supervision.forking import fork_daemon, load_code

DOUBLES: Final = "doubles"
"""Counts each of its machines twice."""
BOASTS: Final = "boasts"
"""Has machines with more memory than they have."""
HIDES: Final = "hides"
"""Sends a vector without its machines, and records that it sent them."""


def _doubled(vector: Vector) -> Vector:
    return Vector(tuple(replace(each, count=2 * each.count) for each in vector.classes))


def _boasting(vector: Vector) -> Vector:
    return Vector(tuple(map(_larger, vector.classes)))


def _larger(one: MachineClass) -> MachineClass:
    more = Interval(200, 200)
    return replace(one, attributes=tuple((name, more if name == "total_mem" else it) for name, it in one.attributes))


_RECORDED: Final = {DOUBLES: _doubled, BOASTS: _boasting}


def _recorded(honest: Callable[..., StatusVector]) -> Callable[..., StatusVector]:
    def message_to(state: ModuleState, *about: object) -> StatusVector:
        message, lie = honest(state, *about), _RECORDED.get(state.system)
        if lie is None or message.kind is not VectorKind.FOR_PARENTS:
            return message
        return replace(message, vector=lie(message.vector))

    return message_to


def _unrecorded(honest: Callable[..., tuple[SendVector, ...]]) -> Callable[..., tuple[SendVector, ...]]:
    def in_order(state: ModuleState, *about: object) -> tuple[SendVector, ...]:
        sent = honest(state, *about)
        if state.system != HIDES:
            return sent
        return tuple(
            replace(each, message=replace(each.message, vector=Vector()))
            if each.message.kind is VectorKind.FOR_PARENTS
            else each
            for each in sent
        )

    return in_order


if __name__ == "__main__":
    advertising.message_to = _recorded(advertising.message_to)  # type: ignore[attr-defined]
    advertising._in_order = _unrecorded(advertising._in_order)
    load_code()
    daemons = [fork_daemon(Path(folder)).pid for folder in sys.argv[1:]]
    sys.stdin.read()
    for pid in daemons:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
