"""What every back end that describes a machine promises."""

from typing import Protocol

from messiahs.core.model.attributes import MACHINE_ATTRIBUTES
from messiahs.core.model.descriptions import SDV

CORES_OWN = frozenset(name for name, attribute in MACHINE_ATTRIBUTES.items() if attribute.supplier == "module")
"""What no probe reports, even if it is told to: the core knows it."""

KEYBOARD_IDLE = "keyboard_idle"
"""Seconds since somebody last used the console; not said where nothing can tell. It is for the owner's policy alone."""


class Probe(Protocol):
    """Describes the machine as it is now; never says anything of `CORES_OWN`."""

    def measure(self) -> SDV:
        """Give the machine's attributes; cheap enough for every second, and never raises for what a machine does."""
