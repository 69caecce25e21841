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
    found = _below(_children_of(parents), border, ends)
    return tuple(name for name in parents if name in found)


def bypasses(parents: Parents, borders: Collection[str]) -> Iterator[Bypass]:
    """Yield the links that lead past a border; a system may have several parents that are all borders of its site."""
    children, proxies = _children_of(parents), frozenset(borders)
    places = {name: place for place, name in enumerate(parents)}
    for border in borders:
        inside = _below(children, border, proxies)
        for system in sorted(inside, key=places.__getitem__):
            for parent in parents[system]:
                if parent in parents and parent not in inside and parent not in proxies:
                    yield Bypass(system=system, parent=parent, border=border)


def _children_of(parents: Parents) -> Mapping[str, list[str]]:
    children: dict[str, list[str]] = {}
    for name, theirs in parents.items():
        for parent in theirs:
            children.setdefault(parent, []).append(name)
    return children


def _below(children: Mapping[str, list[str]], border: str, ends: Collection[str]) -> set[str]:
    found, left = {border}, [border]
    while left:
        below = [name for name in children.get(left.pop(), ()) if name not in found]
        found.update(below)
        left.extend(name for name in below if name not in ends)
    return found - {border}
