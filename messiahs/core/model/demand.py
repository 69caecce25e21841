"""Unmet demand: what waiting and denied tasks lacked, in a few classes that are summed as supply is (MESSIAHS 7.2).

A class holds no names of users, tasks or systems. It says which capacity was missing, and of which architecture and
operating system the machine would have to be. Not in the papers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import add
from types import MappingProxyType
from typing import Final, NamedTuple

from messiahs.core.model.attributes import INTEGER_HIGHEST, MOST_MACHINES
from messiahs.core.model.counted import COUNTED_NAME, free
from messiahs.core.model.descriptions import is_valid_value
from messiahs.core.model.instants import DAY

CLASS_LIMIT: Final = 16
"""Most classes of one sum; the smallest ones are added up as `OTHER`."""
CPUS: Final = "cpus"
MEMORY: Final = "mem"
DISK: Final = "disk"
ARCH: Final = "arch"
OS: Final = "os"
REQUIREMENT: Final = "requirement"
"""The requirement of the task, apart from counted things, architecture and operating system."""
POLICY: Final = "policy"
"""No capacity: policies refused the tasks, so that more machines of the same owners would not help."""
OTHER: Final = "other"
"""Unknown, withheld, or one of more classes than are counted apart."""
CAPACITY: Final = COUNTED_NAME
"""The name of a capacity: one of the above, or that of a counted thing."""

DAY_HALF_LIFE_NS: Final = DAY * 693_147 // 1_000_000
"""A day times the logarithm of 2. With this half-life, the sum of a steady stream is what arrives in one day."""

_MOST: Final = MOST_MACHINES
_MADE_PUBLIC_BY: Final[Mapping[tuple[str, bool], str]] = MappingProxyType(
    {
        (CPUS, False): "slots",
        (CPUS, True): "free_slots",
        (MEMORY, False): "total_mem",
        (MEMORY, True): "avail_mem",
        (DISK, False): "total_disk",
        (DISK, True): "avail_disk",
        (ARCH, False): "arch",
        (OS, False): "os",
    }
)
_OF_NO_ATTRIBUTE: Final = frozenset((REQUIREMENT, POLICY, OTHER))


class DemandKey(NamedTuple):
    """The class of a demand.

    No machine has the `capacity`, or with `is_busy` those that have it are in use. `amount` is how much of it one task
    needs, rounded up to a power of two (processors, bytes, things; 0 if that says nothing). `arch` and `os` are those
    that the task requires; empty: any.
    """

    capacity: str
    is_busy: bool = False
    amount: int = 0
    arch: str = ""
    os: str = ""


OTHER_KEY: Final = DemandKey(OTHER)


def sendable(key: DemandKey) -> DemandKey:
    """Return a key within the bounds of the wire: users choose its names, amounts and texts."""
    capacity = key.capacity if CAPACITY.fullmatch(key.capacity) else OTHER
    arch, os = (text if is_valid_value(text) else "" for text in (key.arch, key.os))
    return DemandKey(capacity, key.is_busy, min(key.amount, INTEGER_HIGHEST), arch, os)


class DemandSize(NamedTuple):
    """The tasks of a class that wait now, the slots that they would take, and the demand of the last day.

    `wanted_s` is the time for which slots were wanted in vain, in processor-seconds, and `denied` the number of tasks
    that were denied at once. Both decay, so that older demand counts less.
    """

    tasks: int = 0
    processors: int = 0
    wanted_s: int = 0
    denied: int = 0

    def plus(self, other: "DemandSize") -> "DemandSize":
        """Return the sum, each number at most what can be sent: a neighbor may report any."""
        return DemandSize(*(min(_MOST, one + more) for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class DemandClass:
    """The demand of one class."""

    key: DemandKey
    size: DemandSize


Demand = tuple[DemandClass, ...]
"""Classes with different keys, at most `CLASS_LIMIT`, the one that wants most processors first, and `OTHER` last."""


def rounded_up(amount: int) -> int:
    """Return the least power of two that is not below a positive amount; 0 for others."""
    return 1 << (amount - 1).bit_length() if amount > 0 else 0


def summed(classes: Iterable[DemandClass]) -> Demand:
    """Add up classes: exact in total, since what exceeds the limit is in the class `OTHER_KEY`."""
    # A parent of a thousand children adds up many thousands of classes: plain numbers are faster than named tuples.
    sums: dict[DemandKey, list[int]] = {}
    for each in classes:
        known = sums.get(each.key)
        if known is None:
            sums[each.key] = [*each.size]
        else:
            known[:] = map(add, known, each.size)
    sizes = {key: DemandSize(*(min(_MOST, amount) for amount in amounts)) for key, amounts in sums.items()}
    other = sizes.pop(OTHER_KEY, DemandSize())
    ordered = sorted((DemandClass(key, size) for key, size in sizes.items() if any(size)), key=_rank)
    is_too_many = len(ordered) + any(other) > CLASS_LIMIT
    kept = ordered[: CLASS_LIMIT - 1] if is_too_many else ordered
    for each in ordered[len(kept) :]:
        other = other.plus(each.size)
    return (*kept, DemandClass(OTHER_KEY, other)) if any(other) else tuple(kept)


def total_of(demand: Demand) -> DemandSize:
    """Return the sum of all classes."""
    total = DemandSize()
    for each in demand:
        total = total.plus(each.size)
    return total


def redacted(demand: Demand, shows: Callable[[str], bool], /, *, least: int) -> Demand:
    """Return the demand without what is said about attributes that are not shown, and no class of few tasks.

    What a class says of a withheld attribute is removed, and one that lacks it becomes a part of `OTHER_KEY`. So do
    classes of fewer than `least` tasks, waiting and denied ones; fewer than `least` tasks altogether are not shown.
    """
    shown = summed(DemandClass(_shown(each.key, shows), each.size) for each in demand)
    if least and any(_tasks(each.size) < least for each in shown):
        few = [each for each in shown if _tasks(each.size) < least]
        shown = summed([each if each not in few else DemandClass(OTHER_KEY, each.size) for each in shown])
        # What is added up may still be few: then the next smallest class goes with it.
        while len(shown) > 1 and shown[-1].key == OTHER_KEY and _tasks(shown[-1].size) < least:
            shown = summed((*shown[:-2], DemandClass(OTHER_KEY, shown[-2].size.plus(shown[-1].size))))
        shown = () if _tasks(total_of(shown)) < least else shown
    return shown


def things_named(names: Iterable[str], variables: Collection[str], /) -> tuple[str, ...]:
    """Return those names of counted things that a requirement with these variables asks for."""
    return tuple(name for name in names if name in variables and free(name) in variables)


def _shown(key: DemandKey, shows: Callable[[str], bool]) -> DemandKey:
    if key.capacity not in _OF_NO_ATTRIBUTE:
        thing = free(key.capacity) if key.is_busy else key.capacity
        if not shows(_MADE_PUBLIC_BY.get((key.capacity, key.is_busy), thing)):
            return OTHER_KEY
    arch = key.arch if shows("arch") else ""
    return key._replace(arch=arch, os=key.os if shows("os") else "")


def _tasks(size: DemandSize) -> int:
    return size.tasks + size.denied


def _rank(each: DemandClass) -> tuple[int, int, int, int, DemandKey]:
    size = each.size
    return (-size.processors, -size.wanted_s, -size.denied, -size.tasks, each.key)
