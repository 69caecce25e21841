"""Owners of processes that were seen: a process that loses its parents later is still known to be of its attempt."""

from collections.abc import Iterator
from typing import NamedTuple

NOBODYS = ""
"""The folder of processes that may belong to any attempt."""


class Seen(NamedTuple):
    """A process: its start time in ticks, its number in the starter's namespace, and its attempt's folder."""

    started: int
    number: int
    folder: str


class ProcessOwners:
    """The processes that were seen, by their numbers in /proc (mutable).

    A number may be reused; together with the start time it identifies one process.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, Seen] = {}
        self._names: dict[str, set[bytes]] = {}

    def note(self, name: bytes, seen: Seen) -> None:
        """Remember a process, instead of an earlier one with its number."""
        self.drop(name)
        self._seen[name] = seen
        self._names.setdefault(seen.folder, set()).add(name)

    def of(self, name: bytes, started: int) -> Seen | None:
        """Return what is known about this process."""
        seen = self._seen.get(name)
        return seen if seen is not None and seen.started == started else None

    def all(self) -> Iterator[tuple[bytes, Seen]]:
        """Return all remembered processes."""
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
        """Forget all processes of an attempt."""
        for name in self._names.pop(folder, ()):
            del self._seen[name]
