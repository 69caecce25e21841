"""`python -m tests.unit.probe.typing_alone`: what the probe says where there is one terminal at most.

Prints what `keyboard_idle` is without a terminal, with one that nobody has read, and after somebody typed there.
"""

import json
import os
import select
import sys
import time
from pathlib import Path

from messiahs.core.model.attributes import Value
from messiahs.probe.contract import KEYBOARD_IDLE
from messiahs.probe.proc import ProcProbe

_LIMIT_SECONDS = 60


def main() -> None:
    """Make a terminal, and type until that is noted: the kernel does so every 8 s only."""
    said = [_idle()]
    master, slave = os.openpty()
    said.append(_idle())
    deadline = time.monotonic() + _LIMIT_SECONDS
    while (idle := _idle()) is None and time.monotonic() < deadline:
        os.write(master, b"x\n")
        os.read(slave, 2)
        select.select([], [], [], 0.1)
    sys.stdout.write(json.dumps([*said, idle]))


def _idle() -> Value | None:
    return ProcProbe({}, Path("/")).measure().description().get(KEYBOARD_IDLE)


if __name__ == "__main__":
    main()
