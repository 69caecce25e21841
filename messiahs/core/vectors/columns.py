"""The values of a vector's classes, attribute by attribute, so that one comparison judges all classes (MESSIAHS 5.4).

A vector is judged far more often than it arrives, so each of its attributes is sorted once. A comparison is then one
binary search, for one class or for all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import accumulate, compress, repeat
from operator import and_, or_, rshift
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from messiahs.core.model.attributes import Kind, Value

ClassSet = int
"""A set of classes of one vector: bit i is set for the class at place i. Negative: all but some of them."""

Judged = tuple[ClassSet, ClassSet]
"""The classes of which something is true for every machine, and those of which it may be true for some machine."""

Ends = tuple[int, int]
"""The least and the greatest number of a class."""

Packed = int
"""Two sets of classes of one vector in one number: the second is shifted above the first, which is not negative."""

NO_CLASS: Final[Judged] = (0, 0)
EVERY_CLASS: Final[Judged] = (-1, -1)

T = TypeVar("T")

_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_CACHED_WIDTHS: Final = 128


class Column(NamedTuple):
    """The values of one attribute in all classes, read as one type.

    `values` are the ends of all classes in increasing order. `cells` has, for each of them and after the last, the
    classes in which the attribute surely and possibly is at least that value, packed; `width` is the number of classes.

    Every machine of the `known` classes has a value between two ends. For the `unclear` classes nothing is known: a
    value may be withheld or missing. No machine of any other class has a value of this type. `possible` are the known
    and the unclear classes.
    """

    values: tuple[Any, ...]
    cells: tuple[Packed, ...]
    width: int

    @property
    def known(self) -> ClassSet:
        """The classes in which every machine has a value."""
        return unpacked(self.cells[0], self.width)[0]

    @property
    def possible(self) -> ClassSet:
        """The classes in which some machine may have a value."""
        return unpacked(self.cells[0], self.width)[1]

    @property
    def unclear(self) -> ClassSet:
        """The classes of which nothing is known."""
        return unpacked(self.cells[-1], self.width)[1]

    def ends(self) -> Iterator[tuple[Value, Packed]]:
        """Yield each value with the classes whose least value it is, packed with those whose greatest value it is."""
        for value, cell, next_cell in zip(self.values, self.cells, self.cells[1:], strict=False):
            yield value, cell & ~next_cell

    def at_least(self, value: Value) -> Judged:
        """Return the classes in which the attribute is at least `value`."""
        return unpacked(self.cells[bisect_left(self.values, value)], self.width)

    def at_least_that_of(self, other: "Column") -> Judged:
        """Return the classes in which this attribute is at least as great as another one."""
        return self._beside(other, bisect_left)

    def above_that_of(self, other: "Column") -> Judged:
        """Return the classes in which this attribute is greater than another one."""
        return self._beside(other, bisect_right)

    def _beside(self, other: "Column", search: Callable[[tuple[Any, ...], Any], int]) -> Judged:
        values, cells, width = self
        mine = [cells[search(values, value)] for value in other.values]
        ends = [both for _, both in other.ends()]
        surely = reduce(or_, map(and_, mine, map(rshift, ends, repeat(width))), 0)
        could = reduce(or_, map(and_, map(rshift, mine, repeat(width)), ends), self.unclear | other.unclear)
        return surely, could


class Classes(Protocol):
    """Classes that are judged together: those of one vector, or of many."""

    @property
    def every_class(self) -> ClassSet:
        """The set of all classes."""

    def columns(self, kind: Kind, /, *names: str) -> list[Column]:
        """Return the columns of attributes, read as one type."""

    def verdict(self, question: object, /) -> Judged | None:
        """Return the remembered verdict for a question; None if it was never stored, or has been dropped."""

    def remember(self, question: object, verdict: Judged, /) -> None:
        """Store the verdict for a question."""


class AttributeColumns(NamedTuple):
    """The columns of one attribute of a vector, read as integers and as strings.

    `ends` has the least and the greatest number of each class, or None where they are unknown.
    """

    numbers: Column
    strings: Column
    ends: tuple[Ends | None, ...]


def attribute_columns(values: Sequence[Ends | str | None]) -> AttributeColumns:
    """Return the columns for the values of each class: the ends of its numbers, one string, or None if unknown."""
    width = len(values)
    numbers: dict[Value, Packed] = {}
    strings: dict[Value, Packed] = {}
    unclear = 0
    for value, (here, above) in zip(values, _alone(width), strict=True):
        if isinstance(value, tuple):
            least, greatest = value
            numbers[least] = numbers.get(least, 0) | here
            numbers[greatest] = numbers.get(greatest, 0) | above
        elif value is None:
            unclear |= here
        else:
            strings[value] = strings.get(value, 0) | here | above
    return AttributeColumns(
        column_of(numbers, unclear=unclear, width=width),
        column_of(strings, unclear=unclear, width=width),
        tuple([value if isinstance(value, tuple) else None for value in values]),
    )


def column_of(ends: Mapping[Value, Packed], *, unclear: ClassSet, width: int) -> Column:
    """Return a column of `width` classes; each class has at most one value as each of its ends."""
    values: tuple[Any, ...] = tuple(sorted(ends))  # all of one type
    from_the_greatest = accumulate(map(ends.__getitem__, reversed(values)), or_, initial=unclear << width)
    return Column(values, tuple(from_the_greatest)[::-1], width)


def constant(value: Value, width: int) -> Column:
    """Return a column in which all classes have the same value."""
    every_class = (1 << width) - 1
    return Column((value,), (packed(every_class, every_class, width), 0), width)


def packed(first: ClassSet, second: ClassSet, width: int, /) -> Packed:
    """Return two sets of classes in one number; neither may be negative."""
    return second << width | first


def unpacked(both: Packed, width: int) -> Judged:
    """Return the two sets of classes in one number."""
    return both & ((1 << width) - 1), both >> width


def opposite(judged: Judged) -> Judged:
    """Return the classes in which the opposite holds: surely true becomes not possible, and vice versa."""
    surely, could = judged
    return ~could, ~surely


def chosen(each: Iterable[T], classes: ClassSet) -> Iterator[T]:
    """Yield the items at the places of some classes."""
    return compress(each, bin(classes)[:1:-1].encode().translate(_BITS))


@lru_cache(_CACHED_WIDTHS)
def _alone(width: int) -> tuple[tuple[Packed, Packed], ...]:
    """Return for every class the set that holds it alone, as the first and as the second set of two."""
    return tuple((1 << place, 1 << place + width) for place in range(width))
