"""The probe that measures nothing: for tests, and for machines that are described by configuration."""

from collections.abc import Mapping
from pathlib import Path

from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.probe.console import keyboard_idle_seconds
from messiahs.probe.contract import CORES_OWN, KEYBOARD_IDLE


class FixedProbe:
    """Reports the configured attributes; only the use of a configured console is measured."""

    def __init__(self, attributes: Mapping[str, Value], console: Path | None = None) -> None:
        reported = {name: value for name, value in attributes.items() if name not in CORES_OWN}
        self._sdv, self._console = SDV(sorted_pairs(reported)), console

    def measure(self) -> SDV:
        """Return the same description every time, except `keyboard_idle` if there is a console."""
        idle = keyboard_idle_seconds(self._console) if self._console is not None else None
        return self._sdv if idle is None else SDV(sorted_pairs({**self._sdv.description(), KEYBOARD_IDLE: idle}))
