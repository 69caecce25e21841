"""The counted things that a machine offers: those whose device files are there."""

import logging
from collections.abc import Callable

from messiahs.config.device_files import problems_of_things
from messiahs.config.settings import MachineSettings
from messiahs.core.model.counted import Counted

_LOG = logging.getLogger(__name__)


def offered_by(machine: MachineSettings) -> Callable[[], tuple[Counted, ...]]:
    """Return what looks for the things that a machine offers now, and logs what keeps it from offering others."""
    return Offered(machine).now if machine.devices else lambda: machine.counted


class Offered:
    """The counted things of a machine, some of which have device files (mutable: it logs each problem once).

    A thing without one of its files is not offered: a task that got it could not use it.
    """

    def __init__(self, machine: MachineSettings) -> None:
        self._counted, self._devices = machine.counted, machine.devices
        self._problems: dict[tuple[str, int], str] = {}

    def now(self) -> tuple[Counted, ...]:
        """Return the things of each kind whose files are there; of some kinds there may be none."""
        problems = {(name, number): problem for name, number, problem in problems_of_things(self._devices)}
        for name, number in sorted(problems.keys() - self._problems.keys()):
            _LOG.warning("%s %d is not offered to tasks: %s", name, number, problems[name, number])
        for name, number in sorted(self._problems.keys() - problems.keys()):
            _LOG.info("%s %d is offered to tasks again", name, number)
        self._problems = problems
        return tuple(
            [
                Counted(name=name, numbers=tuple([number for number in numbers if (name, number) not in problems]))
                for name, numbers in ((each.name, each.numbers) for each in self._counted)
            ]
        )
