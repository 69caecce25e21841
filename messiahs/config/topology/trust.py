"""Roots of other sites in a topology: those recorded for a link, and those that introduce another site.

`trust:` of an external system is a file, `{file: FILE, names: [PATTERN, …]}`, or a list of these; several files hold
an old root and its successor, for example. Without `names` a file vouches for the external system alone.
`introductions:` is a list of `{file, names}`: task streams between systems with these names and those of this site run
straight. In a pattern, `*` stands for any text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.settings import TrustedFile
from messiahs.config.topology.files import problem_with_copy, problem_with_roots
from messiahs.config.topology.problems import Place, Problems
from messiahs.config.topology.topology import Topology
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys

_KEYS: Final = ("file", "names")
_PATTERN: Final = re.compile(r"[a-z0-9.*-]{1,255}", re.ASCII)
_FORM: Final = "the name of a file, relative to the topology file, or {file: FILE, names: [PATTERN, ...]}, or a list"
_INTRODUCTIONS: Final = "introductions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRoots:
    """A file of roots and the names for which they may vouch, with their places in the topology."""

    file: Path
    place: Place
    names: tuple[tuple[str, Place], ...]

    def finished(self) -> TrustedFile:
        """Return the setting."""
        return TrustedFile(file=self.file, names=tuple(name for name, _ in self.names))


def read_trust(section: Section, system: str, *, folder: Path, problems: Problems) -> tuple[NamedRoots, ...]:
    """Return the roots under `trust:` of an external system; it is a problem if none of them may vouch for it."""
    if "trust" not in section:
        return ()
    found = _read(section, "trust", folder=folder, problems=problems, vouches_for=system)
    names = [pattern for each in found for pattern, _ in each.names]
    if names and not any(_matches(pattern, system) for pattern in names):
        text = f"none of these roots may vouch for `{system}` itself: add it to `names`"
        problems.add(section.value_place("trust"), text)
    return found


def read_introductions(top: Section, *, folder: Path, problems: Problems) -> tuple[NamedRoots, ...]:
    """Return the roots under `introductions:`."""
    if _INTRODUCTIONS not in top:
        return ()
    return _read(top, _INTRODUCTIONS, folder=folder, problems=problems, vouches_for=None)


def check_names(recorded: Iterable[NamedRoots], problems: Problems, *, own: Iterable[str]) -> None:
    """Add a problem for each pattern with which a root of another site could vouch for a system of this site."""
    names = tuple(own)
    for each in recorded:
        for pattern, place in each.names:
            matched = next((name for name in names if _matches(pattern, name)), None)
            if matched is not None:
                text = f"`{pattern}` matches `{matched}`, a system of this site, for which only its own root may vouch"
                problems.add(place, text)


def check_roots(recorded: Iterable[NamedRoots], problems: Problems) -> None:
    """Add a problem for every file without valid roots."""
    for each in recorded:
        problem = problem_with_roots(each.file)
        if problem:
            problems.add(each.place, problem)


def warnings_of_externals(topology: Topology) -> tuple[str, ...]:
    """Warn of every external system without roots of its own; both sites may still have one root together."""
    return tuple(
        f"`{system.name}` is external and has no `trust:`: only a root of this site may vouch for it. If its site has "
        "a root of its own, copy that root.pem, and name the copy as `trust: FILE`"
        for system in topology.externals
        if not system.trust
    )


def problems_with_copies(topology: Topology, own_roots: Path) -> tuple[str, ...]:
    """Return a problem for every file that holds only the root of this site, for which `module run` does not start."""
    linked = ((f"`trust:` of `{system.name}`", each) for system in topology.systems for each in system.trust)
    introduced = ((f"`{_INTRODUCTIONS}:`", each) for each in topology.introductions)
    found = ((where, problem_with_copy(each.file, own_roots)) for where, each in (*linked, *introduced))
    return tuple(f"{where}: {problem}" for where, problem in found if problem)


def _read(
    section: Section, key: str, *, folder: Path, problems: Problems, vouches_for: str | None
) -> tuple[NamedRoots, ...]:
    value, place = section.values[key], section.value_place(key)
    listed = _items(value, place) if isinstance(value, CommentedSeq) and value else ((value, place),)
    return tuple(
        found
        for item, at in listed
        if (found := _read_one(item, at, key, folder=folder, problems=problems, vouches_for=vouches_for)) is not None
    )


def _read_one(
    item: object, place: Place, key: str, *, folder: Path, problems: Problems, vouches_for: str | None
) -> NamedRoots | None:
    default = () if vouches_for is None else ((vouches_for, place),)
    if vouches_for is not None and _is_file(item):
        return NamedRoots(file=folder.absolute() / str(item), place=place, names=default)
    if not isinstance(item, CommentedMap):
        form = _FORM if vouches_for is not None else "a list of {file: FILE, names: [PATTERN, ...]}"
        problems.add(place, f"`{key}` takes {form}")
        return None
    section = Section(item, place)
    refuse_unknown_keys(section, _KEYS, problems)
    if not _is_file(section.values.get("file")):
        problems.add(place, f"`{key}` needs `file: FILE` here, a copy of the other site's root.pem")
        return None
    names = _read_names(section, key, problems) if "names" in section else default
    if "names" not in section and not default:
        problems.add(place, f"`{key}` needs `names: [PATTERN, ...]` here: the systems for which these roots vouch")
    file_place = section.value_place("file")
    return NamedRoots(file=folder.absolute() / str(section.values["file"]), place=file_place, names=names)


def _read_names(section: Section, key: str, problems: Problems) -> tuple[tuple[str, Place], ...]:
    value, place = section.values["names"], section.value_place("names")
    listed = tuple(_items(value, place)) if isinstance(value, CommentedSeq) else ()
    if not listed:
        problems.add(place, f"`names` of `{key}` takes a list of names, in which `*` stands for any text")
    for name, at in listed:
        if not isinstance(name, str) or not _PATTERN.fullmatch(name):
            problems.add(at, f"`{name}` matches no name: small letters, digits, `-`, `.`, and `*` for any text")
    return tuple((str(name), at) for name, at in listed)


def _items(listed: CommentedSeq, place: Place) -> Iterator[tuple[object, Place]]:
    places: Mapping[int, list[int]] = listed.lc.data or {}
    for position, item in enumerate(listed):
        yield item, Place(places[position][0] + 1, places[position][1] + 1) if position in places else place


def _is_file(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern)
