"""What the classes of a vector say, attribute by attribute, so that one comparison judges all of them (MESSIAHS 5.4).

A vector is judged far more often than it arrives. So each of its attributes is put in order once, and a comparison is
two looks into that order, for one class or for all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, compress
from operator import or_
from typing import Any, Final, NamedTuple, TypeVar

from messiahs.core.attributes import Value

ClassSet = int
"""A set of classes of one vector: bit i stands for the class at place i. Negative: all but some of them."""

Judged = tuple[ClassSet, ClassSet]
"""The classes of which something is surely true, for every machine; and those of which it could be, for one."""

NO_CLASS: Final[Judged] = (0, 0)
EVERY_CLASS: Final[Judged] = (-1, -1)

T = TypeVar("T")

_BITS: Final = bytes.maketrans(b"01", b"\0\1")


class Ends(NamedTuple):
    """The least (or the greatest) value of each class.

    `values` grow, and beside each are the `classes` of which this end is at least that value; an empty set is last.
    """

    values: tuple[Any, ...] = ()
    classes: tuple[ClassSet, ...] = (0,)

    def groups(self) -> Iterator[tuple[Any, ClassSet]]:
        """Give every value and the classes of which it is the end."""
        for place, value in enumerate(self.values):
            yield value, self.classes[place] & ~self.classes[place + 1]


class Column(NamedTuple):
    """What the classes say of one attribute, read as one type.

    Every machine of the `known` classes has a value between their ends. Of the `unclear` ones nothing is known: a value
    may have been withheld, or be lacking. No machine of all others has a value of this type. `possible` are the known
    and the unclear ones.
    """

    known: ClassSet
    unclear: ClassSet
    possible: ClassSet
    least: Ends
    greatest: Ends

    def at_least(self, value: Value) -> Judged:
        """Say of which classes the attribute is at least so much."""
        _, unclear, _, (least, from_least), (greatest, from_greatest) = self
        return from_least[bisect_left(least, value)], from_greatest[bisect_left(greatest, value)] | unclear

    def at_least_that_of(self, other: "Column") -> Judged:
        """Say of which classes this attribute is at least as much as another one."""
        return self._beside(other, bisect_left)

    def above_that_of(self, other: "Column") -> Judged:
        """Say of which classes this attribute is more than another one."""
        return self._beside(other, bisect_right)

    def _beside(self, other: "Column", search: Callable[[tuple[Any, ...], Any], int]) -> Judged:
        surely, could = 0, self.unclear | other.unclear
        for value, here in other.greatest.groups():
            surely |= self.least.classes[search(self.least.values, value)] & here
        for value, here in other.least.groups():
            could |= self.greatest.classes[search(self.greatest.values, value)] & here
        return surely, could


class Said(NamedTuple):
    """What the classes of a vector say of one attribute, read as integers and read as strings.

    `ends` has the least and the greatest number of each class, None where they are not known.
    """

    numbers: Column
    strings: Column
    ends: tuple[tuple[int, int] | None, ...]


def column_of(least: Mapping[Value, ClassSet], greatest: Mapping[Value, ClassSet], *, unclear: ClassSet = 0) -> Column:
    """Make a column of the classes at each end; no class stands at two values of one end."""
    ends = _ends(least)
    known = ends.classes[0]
    return Column(known, unclear, known | unclear, ends, ends if greatest is least else _ends(greatest))


def constant(value: Value, classes: ClassSet) -> Column:
    """Give a column in which all `classes` say one value."""
    ends = Ends((value,), (classes, 0))
    return Column(classes, 0, classes, ends, ends)


def opposite(judged: Judged) -> Judged:
    """Say where something is false: what is surely true could not be false."""
    surely, could = judged
    return ~could, ~surely


def chosen(each: Iterable[T], classes: ClassSet) -> Iterator[T]:
    """Give what stands at the places of some classes."""
    return compress(each, bin(classes)[:1:-1].encode().translate(_BITS))


def grouped(values: Iterable[Any]) -> dict[Any, ClassSet]:
    """Give every value that occurs and the classes at whose place it stands."""
    groups: dict[Any, ClassSet] = {}
    for place, value in enumerate(values):
        groups[value] = groups.get(value, 0) | 1 << place
    return groups


def _ends(groups: Mapping[Value, ClassSet]) -> Ends:
    values: tuple[Any, ...] = tuple(sorted(groups))  # all of one type
    from_the_greatest = accumulate([groups[value] for value in reversed(values)], or_, initial=0)
    return Ends(values, tuple(from_the_greatest)[::-1])
