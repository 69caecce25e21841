"""Counted things: GPUs, licences and whatever else a machine has a number of, each of which one task at a time uses.

The site names them; `$NAME` is how many a machine has, or a task needs, and `$free_NAME` is how many no claim holds.
They travel as ordinary attributes, so every release passes them on.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from messiahs.core.model.attributes import (
    MACHINE_ATTRIBUTES,
    SEEN_BY_THE_OWNER,
    TASK_ATTRIBUTES,
)
from messiahs.core.model.descriptions import Description, Pairs

GPUS: Final = "gpus"
COUNTED_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""The name of counted things; it is also a part of the name of a variable that tasks see."""
KINDS: Final = 3
"""Kinds of counted things on one machine; each takes two of the extension attributes of its description."""
THINGS: Final = 256
"""Things of one kind on one machine."""
HIGHEST_NUMBER: Final = 65_535
_FREE: Final = "free_"
_ATTRIBUTES: Final = frozenset((*MACHINE_ATTRIBUTES, *TASK_ATTRIBUTES, *(each.name for each in SEEN_BY_THE_OWNER)))
_OTHER_VARIABLES: Final = frozenset(("array_index", "attempt", "module", "state", "task_id"))
"""Their variables, such as MESSIAHS_TASK_ID, mean something else."""

Uses = tuple[tuple[str, int], ...]
"""How many counted things of each kind one task needs, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Things of one kind by their numbers, in increasing order: those of a machine, or those assigned to a task."""

    name: str
    numbers: tuple[int, ...]


def free(name: str) -> str:
    """Return the attribute that says how many things of a kind no claim holds."""
    return f"{_FREE}{name}"


def shown_name(name: str) -> str:
    """Return the name of a kind as people read it: `GPUs`; names that a site has chosen stay as they are."""
    return "GPUs" if name == GPUS else name


def problem_of_name(name: str) -> str:
    """Return why counted things cannot have this name; empty if they can."""
    if not COUNTED_NAME.fullmatch(name):
        return "a name has small letters, digits and `_`, at most 32, and begins with a letter"
    if name.startswith(_FREE):
        return f"names that begin with `{_FREE}` say how many are free"
    if name in _ATTRIBUTES or free(name) in _ATTRIBUTES:
        return "it is an attribute of every machine or task; find another name"
    return "its variable would be one that every task has; find another name" if name in _OTHER_VARIABLES else ""


def uses_in(pairs: Pairs) -> Uses:
    """Return the counted things that a task states: each positive integer that is no attribute of the catalogue.

    On a machine that does not count such things, it is an attribute like others, and nothing is assigned.
    """
    return tuple([(name, value) for name, value in pairs if isinstance(value, int) and value > 0 and _is_kind(name)])


def _is_kind(name: str) -> bool:
    return name not in _ATTRIBUTES and free(name) not in _ATTRIBUTES


def counted_in(uses: Uses, here: Description, /) -> Uses:
    """Return the part of `uses` that one machine, exactly described, counts."""
    return tuple([(name, amount) for name, amount in uses if free(name) in here])


def requirement_for(uses: Iterable[tuple[str, int]]) -> str:
    """Return the predicate that only machines fulfil which count such things and have so many; empty for none."""
    return " and ".join(f"${name} >= {amount} and ${free(name)} >= 0" for name, amount in uses)


def unassigned(machine: Counted, taken: Iterable[Counted]) -> tuple[int, ...]:
    """Return the numbers of a machine's things that nothing in `taken` has, in increasing order."""
    gone = {number for each in taken if each.name == machine.name for number in each.numbers}
    return tuple([number for number in machine.numbers if number not in gone])
