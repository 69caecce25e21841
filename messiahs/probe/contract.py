"""The interface of back ends that measure a machine."""

from typing import Protocol

from messiahs.core.model.attributes import MACHINE_ATTRIBUTES
from messiahs.core.model.descriptions import SDV

CORES_OWN = frozenset(name for name, attribute in MACHINE_ATTRIBUTES.items() if attribute.supplier == "module")
"""Attributes that no probe reports, even if configured: the core computes them."""

KEYBOARD_IDLE = "keyboard_idle"
"""Seconds since the console was last used; absent if unknown. Only the owner's policy sees it."""


class Probe(Protocol):
    """Describes the current state of the machine; never reports attributes in `CORES_OWN`."""

    def measure(self) -> SDV:
        """Return the machine's attributes; cheap enough for every second. Failures of the machine never raise."""
