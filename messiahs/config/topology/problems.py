"""Problems of a file in YAML, collected while it is read, so that all are reported together."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from messiahs.errors import MessiahsError, TopologyError


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
        """Raise all problems in the order of the file, if there are any, then those of other files."""
        if self.found or self.elsewhere:
            lines = (f"{self.file}:{place.line}:{place.column}: {text}" for place, text in sorted(self.found))
            raise self.error(tuple(dict.fromkeys((*lines, *self.elsewhere))))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name nearest to `name`, or "" if none is near."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
