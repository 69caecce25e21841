"""A vector with indexes of its classes, so that it is read once and judged often (MESSIAHS 5.4)."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter, mul
from typing import Final

from messiahs.core.model.attributes import WILLINGNESS_HIGHEST, Kind
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.columns import AttributeColumns, ClassSet, Column, Judged, attribute_columns, chosen
from messiahs.core.vectors.vectors import ClassValue, Interval, MachineClass, Vector

_VERDICTS_KEPT: Final = 32
_CACHED_WIDTHS: Final = 128
_CACHED_INTERVALS: Final = 4096

_NAME_OF: Final = itemgetter(0)
_VALUE_OF: Final = itemgetter(1)
_COUNT_OF: Final = attrgetter("count")
_ATTRIBUTES_OF: Final = attrgetter("attributes")
_SOME_LACK_OF: Final = attrgetter("some_lack")


@dataclass(slots=True)
class IndexedVector:
    """A vector, and the indexes of its classes, which are built on use (mutable)."""

    vector: Vector
    _columns: dict[str, AttributeColumns] = field(default_factory=dict, init=False, compare=False, repr=False)
    _verdicts: dict[object, Judged] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Recent verdicts about the classes, by question."""
    _slots: dict[ClassSet, int] = field(default_factory=dict, init=False, compare=False, repr=False)
    _slots_of: list[int] = field(default_factory=list, init=False, compare=False, repr=False)
    """The least slots of each class, built on first use."""
    _willing_of: list[int] = field(default_factory=list, init=False, compare=False, repr=False)
    """The same, weighted by willingness."""
    _names: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    """The attributes of all classes, built on first use."""

    @property
    def every_class(self) -> ClassSet:
        """The set of all classes."""
        return (1 << len(self.vector.classes)) - 1

    def attribute_columns(self, *names: str) -> list[AttributeColumns]:
        """Return the columns of attributes; an attribute that some or all machines lack may have been withheld."""
        try:
            return [self._columns[name] for name in names]
        except KeyError:
            return [self._columns.get(name) or self._in_order(name) for name in names]

    def columns(self, kind: Kind, /, *names: str) -> list[Column]:
        """Return the columns of attributes, read as one type."""
        found = self.attribute_columns(*names)
        return [each.numbers for each in found] if kind is Kind.INTEGER else [each.strings for each in found]

    def has_attribute(self, name: str, /) -> bool:
        """Return whether any class has an attribute."""
        if not self._names:
            self._names.update(map(_NAME_OF, chain.from_iterable(map(_ATTRIBUTES_OF, self.vector.classes))))
        return name in self._names

    def free_slots(self, classes: ClassSet, /) -> int:
        """Return the least number of slots of some classes; each machine counts for one or more."""
        slots = self._slots.get(classes)
        if slots is None:
            slots = sum(chosen(self._least_slots(), classes))
            if len(self._slots) >= _VERDICTS_KEPT:
                self._slots.clear()
            self._slots[classes] = slots
        return slots

    def willing_slots(self, classes: ClassSet, /) -> int:
        """Return the sum of their slots, each weighed 1 and its machine's least willingness (100 if it states none)."""
        if not self._willing_of:
            (found,) = self.attribute_columns("willingness")
            weights = [
                1 + min(max(0, ends[0]), WILLINGNESS_HIGHEST) if ends else 1 + WILLINGNESS_HIGHEST
                for ends in found.ends
            ]
            self._willing_of.extend(map(mul, self._least_slots(), weights))
        return sum(chosen(self._willing_of, classes))

    def _least_slots(self) -> list[int]:
        if not self._slots_of:
            (found,) = self.attribute_columns("free_slots")
            least = [max(1, ends[0]) if ends else 1 for ends in found.ends]
            self._slots_of.extend(map(mul, map(_COUNT_OF, self.vector.classes), least))
        return self._slots_of

    def machines_in(self, classes: ClassSet, /) -> int:
        """Return the number of machines of some classes."""
        return sum(chosen(list(map(_COUNT_OF, self.vector.classes)), classes))

    def verdict(self, question: object, /) -> Judged | None:
        """Return the remembered verdict for a question; None if it was never stored, or has been dropped."""
        return self._verdicts.get(question)

    def remember(self, question: object, verdict: Judged, /) -> None:
        """Store the verdict for a question: questions are repeated, and the classes of a vector never change."""
        if len(self._verdicts) >= _VERDICTS_KEPT:
            self._verdicts.clear()
        self._verdicts[question] = verdict

    def _in_order(self, name: str) -> AttributeColumns:
        if not self.has_attribute(name):
            # A request may use any names, so nothing is stored for unknown ones.
            return _unknown(len(self.vector.classes))
        found = self._columns[name] = attribute_columns(list(map(_known, _values_of(name, self.vector.classes))))
        return found


@dataclass(slots=True)
class Indexes:
    """The indexed vectors of a module, by owner (mutable); any of them may be dropped at any time."""

    _of: dict[Hashable, IndexedVector] = field(default_factory=dict)

    def of(self, owner: Hashable, vector: Vector, /) -> IndexedVector:
        """Return a vector with its indexes, which are kept as long as it is the latest vector of its owner."""
        indexed = self._of.get(owner)
        if indexed is None or indexed.vector is not vector:
            indexed = self._of[owner] = IndexedVector(vector)
        return indexed

    def drop(self, owner: Hashable, /) -> None:
        """Forget the vector of an owner, if there is one."""
        self._of.pop(owner, None)


def _values_of(name: str, classes: Sequence[MachineClass]) -> Sequence[ClassValue | None]:
    """Return the value of each class; None where some or all machines lack it."""
    place = bisect_left(classes[0].attributes, name, key=_NAME_OF) if classes else 0
    with suppress(IndexError):
        pairs = [each.attributes[place] for each in classes]
        # Nearly always it is at the same position in all classes.
        if set(map(_NAME_OF, pairs)) == {name} and not any(map(_SOME_LACK_OF, classes)):
            return list(map(_VALUE_OF, pairs))
    return [None if name in each.some_lack else dict(each.attributes).get(name) for each in classes]


@lru_cache(_CACHED_WIDTHS)
def _unknown(width: int) -> AttributeColumns:
    return attribute_columns([None] * width)


@lru_cache(_CACHED_INTERVALS)
def _known(value: ClassValue | None) -> tuple[int, int] | str | None:
    if isinstance(value, Interval):
        return lowest_in(value.low), highest_in(value.high)
    return value if isinstance(value, str) else None
