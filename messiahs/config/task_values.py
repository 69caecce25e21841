"""The quantities and numbers that a task states: how they are written, and between which bounds they are."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.core.interface.limits import RETRY_LIMIT
from messiahs.core.model.attributes import INTEGER_HIGHEST, PRIORITY_HIGHEST
from messiahs.core.model.counted import THINGS
from messiahs.errors import MessiahsError


def _above_zero(read: Callable[[str], int]) -> Callable[[str], int]:
    def value(text: str) -> int:
        if _ZERO.fullmatch(text):
            raise MessiahsError(f"`{text}` is not more than 0: leave it out if the task states none")
        return read(text)

    return value


_ZERO: Final = re.compile(r"\s*0+(\.0*)?\s*[A-Za-z]*\s*", re.ASCII)
QUANTITIES: Final[Mapping[str, Callable[[str], int]]] = MappingProxyType(
    {
        "mem": _above_zero(size_bytes),
        "disk": _above_zero(size_bytes),
        "time": _above_zero(duration_seconds),
        "deadline": duration_seconds,
    }
)
"""What reads the text of a size or a time; a `MessiahsError` says how it is written."""
RANGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "mem": (1, INTEGER_HIGHEST),
        "disk": (1, INTEGER_HIGHEST),
        "time": (1, INTEGER_HIGHEST),
        "deadline": (0, INTEGER_HIGHEST),
        "cpus": (1, INTEGER_HIGHEST),
        "gpus": (1, THINGS),
        "retries": (0, RETRY_LIMIT),
        "priority": (-PRIORITY_HIGHEST, PRIORITY_HIGHEST),
    }
)
"""The lowest and the highest number of an option."""


def range_text(within: tuple[int, int]) -> str:
    """Return between which numbers a value may be, as text."""
    lowest, highest = within
    return f"from {lowest}" if highest == INTEGER_HIGHEST else f"from {lowest} to {highest}"
