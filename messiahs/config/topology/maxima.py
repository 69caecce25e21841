"""Reading the most that one task may have on a machine."""

from collections.abc import Callable
from typing import Final

from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys, subsection
from messiahs.core.model.task_limits import Maxima
from messiahs.errors import MessiahsError

MAXIMA_KEY: Final = "at_most"
_LEAST_FILES: Final = 1024
"""The starter of tasks has the same limit, and needs files for each of them."""
_MOST_FILES: Final = 1 << 20


def read_maxima(section: Section, problems: Problems) -> tuple[Maxima, int | None]:
    """Return the most memory, disk and run time of one task, and how many files it may open (None: no own limit)."""
    bounds = subsection(section, MAXIMA_KEY, problems) if MAXIMA_KEY in section else None
    if bounds is None:
        return Maxima(), None
    refuse_unknown_keys(bounds, ("mem", "disk", "time", "open_files"), problems)
    maxima = Maxima(
        memory_bytes=_read(bounds, "mem", size_bytes, problems),
        disk_bytes=_read(bounds, "disk", size_bytes, problems),
        run_seconds=_read(bounds, "time", duration_seconds, problems),
    )
    return maxima, _read(bounds, "open_files", _files, problems)


def _read(section: Section, key: str, read: Callable[[str], int], problems: Problems, /) -> int | None:
    if key not in section.values:
        return None
    problem = "no task could run with nothing"
    try:
        if (value := read(str(section.values[key]))) > 0:
            return value
    except MessiahsError as error:
        problem = str(error)
    problems.add(section.value_place(key), f"{key}: {problem}")
    return None


def _files(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not _LEAST_FILES <= int(text[:9]) <= _MOST_FILES:
        raise MessiahsError(f"`{text}` is not a number from {_LEAST_FILES} to {_MOST_FILES}")
    return int(text)
