"""What the classes of a vector say, attribute by attribute, so that one comparison judges all of them (MESSIAHS 5.4).

A vector is judged far more often than it arrives. So each of its attributes is put in order once, and a comparison is
one look into that order, for one class or for all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import accumulate, compress, repeat
from operator import and_, or_, rshift
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from messiahs.core.model.attributes import Kind, Value

ClassSet = int
"""A set of classes of one vector: bit i stands for the class at place i. Negative: all but some of them."""

Judged = tuple[ClassSet, ClassSet]
"""The classes of which something is surely true, for every machine; and those of which it could be, for one."""

Ends = tuple[int, int]
"""The least and the greatest number of a class."""

Packed = int
"""Two sets of classes of one vector as one number: the second one stands above the first, which is not negative."""

NO_CLASS: Final[Judged] = (0, 0)
EVERY_CLASS: Final[Judged] = (-1, -1)

T = TypeVar("T")

_BITS: Final = bytes.maketrans(b"01", b"\0\1")
_CACHED_WIDTHS: Final = 128


class Column(NamedTuple):
    """What the classes say of one attribute, read as one type.

    `values` are the ends of all classes and grow. Beside each of them, and after the last, `cells` has the classes of
    which the attribute is surely and could be that much or more, packed; `width` is how many classes there are.

    Every machine of the `known` classes has a value between two ends. Of the `unclear` ones nothing is known: a value
    may have been withheld, or be lacking. No machine of all others has a value of this type. `possible` are the known
    and the unclear ones.
    """

    values: tuple[Any, ...]
    cells: tuple[Packed, ...]
    width: int

    @property
    def known(self) -> ClassSet:
        """The classes whose machines all have a value."""
        return unpacked(self.cells[0], self.width)[0]

    @property
    def possible(self) -> ClassSet:
        """The classes of which some machine may have a value."""
        return unpacked(self.cells[0], self.width)[1]

    @property
    def unclear(self) -> ClassSet:
        """The classes of which nothing is known."""
        return unpacked(self.cells[-1], self.width)[1]

    def ends(self) -> Iterator[tuple[Value, Packed]]:
        """Give every value with the classes of which it is the least, and above them those of which the greatest."""
        for value, cell, next_cell in zip(self.values, self.cells, self.cells[1:], strict=False):
            yield value, cell & ~next_cell

    def at_least(self, value: Value) -> Judged:
        """Say of which classes the attribute is at least so much."""
        return unpacked(self.cells[bisect_left(self.values, value)], self.width)

    def at_least_that_of(self, other: "Column") -> Judged:
        """Say of which classes this attribute is at least as much as another one."""
        return self._beside(other, bisect_left)

    def above_that_of(self, other: "Column") -> Judged:
        """Say of which classes this attribute is more than another one."""
        return self._beside(other, bisect_right)

    def _beside(self, other: "Column", search: Callable[[tuple[Any, ...], Any], int]) -> Judged:
        values, cells, width = self
        mine = [cells[search(values, value)] for value in other.values]
        ends = [both for _, both in other.ends()]
        surely = reduce(or_, map(and_, mine, map(rshift, ends, repeat(width))), 0)
        could = reduce(or_, map(and_, map(rshift, mine, repeat(width)), ends), self.unclear | other.unclear)
        return surely, could


class Classes(Protocol):
    """Classes that are judged at once: those of a vector, or of many."""

    @property
    def every_class(self) -> ClassSet:
        """The set of all of them."""

    def columns(self, kind: Kind, /, *names: str) -> list[Column]:
        """Give what they say of attributes, read as one type."""

    def verdict(self, question: object, /) -> Judged | None:
        """Give what was found when the same was asked before; None if that was long ago or never."""

    def remember(self, question: object, verdict: Judged, /) -> None:
        """Keep what was found."""


class Said(NamedTuple):
    """What the classes of a vector say of one attribute, read as integers and read as strings.

    `ends` has the least and the greatest number of each class, None where they are not known.
    """

    numbers: Column
    strings: Column
    ends: tuple[Ends | None, ...]


def said_by(values: Sequence[Ends | str | None]) -> Said:
    """Put in order what each class says: the ends of its numbers, one string, or nothing that is known."""
    width = len(values)
    numbers: dict[Value, Packed] = {}
    strings: dict[Value, Packed] = {}
    unclear = 0
    for said, (here, above) in zip(values, _alone(width), strict=True):
        if isinstance(said, tuple):
            least, greatest = said
            numbers[least] = numbers.get(least, 0) | here
            numbers[greatest] = numbers.get(greatest, 0) | above
        elif said is None:
            unclear |= here
        else:
            strings[said] = strings.get(said, 0) | here | above
    return Said(
        column_of(numbers, unclear=unclear, width=width),
        column_of(strings, unclear=unclear, width=width),
        tuple([said if isinstance(said, tuple) else None for said in values]),
    )


def column_of(ends: Mapping[Value, Packed], *, unclear: ClassSet, width: int) -> Column:
    """Make a column of `width` classes; no class has two values as the same end."""
    values: tuple[Any, ...] = tuple(sorted(ends))  # all of one type
    from_the_greatest = accumulate(map(ends.__getitem__, reversed(values)), or_, initial=unclear << width)
    return Column(values, tuple(from_the_greatest)[::-1], width)


def constant(value: Value, width: int) -> Column:
    """Give a column in which all classes say one value."""
    every_class = (1 << width) - 1
    return Column((value,), (packed(every_class, every_class, width), 0), width)


def packed(first: ClassSet, second: ClassSet, width: int, /) -> Packed:
    """Put two sets of classes into one number; neither is negative."""
    return second << width | first


def unpacked(both: Packed, width: int) -> Judged:
    """Give the two sets of classes that one number holds."""
    return both & ((1 << width) - 1), both >> width


def opposite(judged: Judged) -> Judged:
    """Say where something is false: what is surely true could not be false."""
    surely, could = judged
    return ~could, ~surely


def chosen(each: Iterable[T], classes: ClassSet) -> Iterator[T]:
    """Give what stands at the places of some classes."""
    return compress(each, bin(classes)[:1:-1].encode().translate(_BITS))


@lru_cache(_CACHED_WIDTHS)
def _alone(width: int) -> tuple[tuple[Packed, Packed], ...]:
    """Give for every class the set of it alone, as the first and as the second of two."""
    return tuple((1 << place, 1 << place + width) for place in range(width))
