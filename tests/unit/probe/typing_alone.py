"""`python -m tests.unit.probe.typing_alone`: what the probe says where there is one terminal at most.

Prints what `keyboard_idle` is without a terminal, with one that nobody has read, and after somebody typed there.
"""

import json
import os
import sys
from pathlib import Path

from messiahs.core.model.attributes import Value
from messiahs.probe.contract import KEYBOARD_IDLE
from messiahs.probe.proc import ProcProbe
from tests.waiting import eventually


def main() -> None:
    """Make a terminal, and type until that is noted: the kernel does so every 8 s only."""
    said = [_idle()]
    master, slave = os.openpty()
    said.append(_idle())

    def is_noted() -> bool:
        os.write(master, b"x\n")
        os.read(slave, 2)
        said[2:] = [_idle()]
        return said[2] is not None

    eventually(is_noted)
    sys.stdout.write(json.dumps(said))


def _idle() -> Value | None:
    return ProcProbe({}, lambda: Path("/")).measure().description().get(KEYBOARD_IDLE)


if __name__ == "__main__":
    main()
