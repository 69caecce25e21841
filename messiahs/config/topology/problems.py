"""Problems of a file in YAML, collected while it is read, so that all are reported together."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple

from messiahs.errors import MessiahsError, TopologyError

PROBLEM_LIMIT: Final = 100
"""Problems of one file that are reported; of more, their number."""
_CYCLE_BEGIN, _CYCLE_END = 4, 3


class Place(NamedTuple):
    """A place in the file; line and column count from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Problems:
    """Problems found in one file (mutable)."""

    file: str
    found: list[tuple[Place, str]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    """Problems of other files named in this one, with their own places."""
    error: Callable[[tuple[str, ...]], MessiahsError] = TopologyError
    """The exception that is raised."""

    def add(self, place: Place, text: str) -> None:
        """Add one problem."""
        self.found.append((place, text))

    def raise_if_any(self) -> None:
        """Raise the first problems in the order of the file, if there are any, then those of other files."""
        if self.found or self.elsewhere:
            found = (f"{self.file}:{place.line}:{place.column}: {text}" for place, text in sorted(self.found))
            lines = tuple(dict.fromkeys((*found, *self.elsewhere)))
            left_out = len(lines) - PROBLEM_LIMIT
            more = (f"{self.file}: {left_out} more problems",) if left_out > 0 else ()
            raise self.error((*lines[:PROBLEM_LIMIT], *more))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name nearest to `name`, or "" if none is near."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def shown_cycle(names: Sequence[str], link: str) -> str:
    """Return a cycle as a text, from its first name to that again; of a long one the first names and the last ones."""
    closed = [*names, names[0]]
    left_out = len(closed) - _CYCLE_BEGIN - _CYCLE_END
    if left_out > 1:
        closed[_CYCLE_BEGIN:-_CYCLE_END] = [f"… ({left_out} more)"]
    return link.join(closed)
