"""The probe that measures nothing: for tests, and for machines whose owner wants to say what they are."""

from collections.abc import Mapping

from messiahs.core.attributes import Value
from messiahs.core.descriptions import SDV, sorted_pairs
from messiahs.probe.contract import CORES_OWN


class FixedProbe:
    """Always says what it was given."""

    def __init__(self, attributes: Mapping[str, Value]) -> None:
        said = {name: value for name, value in attributes.items() if name not in CORES_OWN}
        self._sdv = SDV(sorted_pairs(said))

    def measure(self) -> SDV:
        """Give the same description every time."""
        return self._sdv
