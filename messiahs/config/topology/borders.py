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


def above(parents: Parents, system: str, *, borders: Collection[str]) -> tuple[str, ...]:
    """Return the borders behind which a system is, sorted; of borders one above the other, only the lower one."""
    found, seen, left = set[str](), {system}, list(parents.get(system, ()))
    while left:
        name = left.pop()
        if name in borders:
            found.add(name)
        elif name not in seen:
            seen.add(name)
            left.extend(parents.get(name, ()))
    return tuple(sorted(found))


def why_bypassed(
    system: str, parents: Collection[str], *, behind_now: Collection[str], new: str, behind_new: Collection[str]
) -> str:
    """Return why a system cannot get another parent, which would lead past a border; empty if it leads past none.

    `behind_now` are the borders `above` a system with these parents, and `behind_new` those above a child of the new
    parent, which has itself among them if it is one.
    """
    passed = next((each for each in behind_now if each not in behind_new), None)
    if passed is not None and new not in behind_new:
        return f"{system} is behind the border {passed}, and {new} is not: its name would be seen outside"
    for border in sorted(set(behind_new) - set(behind_now)):
        other = next((each for each in parents if each not in behind_now), None)
        if other is not None:
            return f"{new} is behind the border {border} or is it, and {other}, a parent of {system}, is not"
    return ""


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
