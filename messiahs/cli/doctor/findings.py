"""What the doctor finds: one line for each thing that it looks at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace
from messiahs.config.settings import ModuleSettings


class Level(StrEnum):
    """How bad something is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: what was looked at, what is so, and, unless it is ok, what to do."""

    level: Level
    what: str
    text: str

    def __str__(self) -> str:
        """Return the line."""
        return f"{self.level:4} {self.what}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A module as the doctor sees it; `pid` is None while it is down."""

    place: ModulePlace
    settings: ModuleSettings
    pid: int | None
    document: Document | None
    """Its own description; None if it is down or does not answer."""
    neighbors: list[Document]
    """Its links, as it describes them; empty if it is down or does not answer."""
    reach: list[Document]
    """What its neighbors answer when they are asked to dial it; empty as above."""
    unasked: str = ""
    """Why they were not asked although it answers."""
    removed: Sequence[Document] = ()
    """Who was removed from its neighbors, as it describes that; empty as above."""
    silence: str = ""
    """Why it does not answer although its process exists, and what to do; then `document` is None."""


Check = Callable[[Patient], Iterator[Finding]]


def ok(what: str, text: str) -> Finding:
    """Return a finding of something that is right."""
    return Finding(level=Level.OK, what=what, text=text)


def warn(what: str, text: str) -> Finding:
    """Return a finding of something that may become a problem, or is one for some."""
    return Finding(level=Level.WARN, what=what, text=text)


def fail(what: str, text: str) -> Finding:
    """Return a finding of something that keeps the module from its work."""
    return Finding(level=Level.FAIL, what=what, text=text)
