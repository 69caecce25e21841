"""Creation of the probe that the settings of a machine request."""

from collections.abc import Callable
from pathlib import Path

from messiahs.config.settings import MachineSettings
from messiahs.core.model.descriptions import is_valid_value
from messiahs.errors import MessiahsError
from messiahs.probe.contract import Probe
from messiahs.probe.fixed import FixedProbe
from messiahs.probe.proc import ProcProbe


def make_probe(settings: MachineSettings, tasks: Callable[[], Path]) -> Probe:
    """Return a probe; `tasks` returns the folder on whose disk tasks write.

    Raises `MessiahsError` for invalid settings.
    """
    for name, value in settings.attributes.items():
        if not is_valid_value(value):
            raise MessiahsError(
                f"attribute {name}: {value!r} is out of range (64 bits, or 64 bytes of text without control characters)"
            )
    match settings.probe:
        case "fixed":
            return FixedProbe(settings.attributes, settings.console_file)
        case "proc":
            return ProcProbe(settings.attributes, tasks, settings.console_file)
        case unknown:
            raise MessiahsError(f"there is no probe {unknown!r}: write fixed or proc")
