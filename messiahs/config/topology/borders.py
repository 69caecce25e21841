"""What is behind each border of a topology, and links that would lead past it (MESSIAHS 4)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

Parents = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bypass:
    """A system behind a border has a parent that is neither behind it nor a border itself."""

    system: str
    parent: str
    border: str


def behind(parents: Parents, border: str, *, ends: Collection[str] = ()) -> tuple[str, ...]:
    """Return all systems below a border in the order of `parents`, but none that are only below one of the `ends`."""
    found, left = {border}, [border]
    while left:
        above = left.pop()
        below = [name for name, theirs in parents.items() if above in theirs and name not in found]
        found.update(below)
        left.extend(name for name in below if name not in ends)
    return tuple(name for name in parents if name in found and name != border)


def bypasses(parents: Parents, borders: Collection[str]) -> Iterator[Bypass]:
    """Yield the links that lead past a border; a system may have several parents that are all borders of its site."""
    for border in borders:
        inside = behind(parents, border, ends=borders)
        for system in inside:
            for parent in parents[system]:
                if parent in parents and parent not in inside and parent not in borders:
                    yield Bypass(system=system, parent=parent, border=border)
