"""Whose each process was when it was seen: what loses its parents later is still known to be of its attempt."""

from collections.abc import Iterator
from typing import NamedTuple

NOBODYS = ""
"""The folder of what may be of any attempt."""


class Seen(NamedTuple):
    """A process: when it started in ticks, its number in the starter's namespace, and its attempt's folder."""

    started: int
    number: int
    folder: str


class Sightings:
    """The processes that were seen, by their numbers in /proc (mutable).

    A number may be used again; with the start time it means one process only.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, Seen] = {}
        self._names: dict[str, set[bytes]] = {}

    def note(self, name: bytes, seen: Seen) -> None:
        """Remember a process; who had its number before is forgotten."""
        self.drop(name)
        self._seen[name] = seen
        self._names.setdefault(seen.folder, set()).add(name)

    def of(self, name: bytes, started: int) -> Seen | None:
        """Give what is remembered of that very process."""
        seen = self._seen.get(name)
        return seen if seen is not None and seen.started == started else None

    def all(self) -> Iterator[tuple[bytes, Seen]]:
        """Give everything that is remembered."""
        return iter(self._seen.items())

    def drop(self, name: bytes) -> None:
        """Forget a process that is gone."""
        seen = self._seen.pop(name, None)
        if seen is not None:
            names = self._names[seen.folder]
            names.discard(name)
            if not names:
                del self._names[seen.folder]

    def forget(self, folder: str) -> None:
        """Forget all of an attempt."""
        for name in self._names.pop(folder, ()):
            del self._seen[name]
