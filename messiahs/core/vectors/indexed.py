"""A vector with what is found out about its classes, so that it is judged often and read once (MESSIAHS 5.4)."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter, mul
from typing import Final

from messiahs.core.model.attributes import Kind
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.columns import ClassSet, Column, Judged, Said, chosen, said_by
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
    """A vector, and what follows from it, which fills up as it is asked for (mutable)."""

    vector: Vector
    _said: dict[str, Said] = field(default_factory=dict, init=False, compare=False, repr=False)
    _verdicts: dict[object, Judged] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What was found of the classes lately, by what was asked."""
    _slots: dict[ClassSet, int] = field(default_factory=dict, init=False, compare=False, repr=False)
    _slots_of: list[int] = field(default_factory=list, init=False, compare=False, repr=False)
    """Of each class, once it is needed."""
    _names: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    """What any class says, once it is needed."""

    @property
    def every_class(self) -> ClassSet:
        """The set of all classes."""
        return (1 << len(self.vector.classes)) - 1

    def said(self, *names: str) -> list[Said]:
        """Give what the classes say of attributes; what some or all machines lack may only have been withheld."""
        try:
            return [self._said[name] for name in names]
        except KeyError:
            return [self._said.get(name) or self._in_order(name) for name in names]

    def columns(self, kind: Kind, /, *names: str) -> list[Column]:
        """Give what the classes say of attributes, read as one type."""
        said = self.said(*names)
        return [each.numbers for each in said] if kind is Kind.INTEGER else [each.strings for each in said]

    def says(self, name: str, /) -> bool:
        """Say whether any class says an attribute."""
        if not self._names:
            self._names.update(map(_NAME_OF, chain.from_iterable(map(_ATTRIBUTES_OF, self.vector.classes))))
        return name in self._names

    def free_slots(self, classes: ClassSet, /) -> int:
        """Give how many slots some classes have at least; each machine counts for one or more."""
        slots = self._slots.get(classes)
        if slots is None:
            if not self._slots_of:
                (said,) = self.said("free_slots")
                least = [max(1, ends[0]) if ends else 1 for ends in said.ends]
                self._slots_of.extend(map(mul, map(_COUNT_OF, self.vector.classes), least))
            slots = sum(chosen(self._slots_of, classes))
            if len(self._slots) >= _VERDICTS_KEPT:
                self._slots.clear()
            self._slots[classes] = slots
        return slots

    def verdict(self, question: object, /) -> Judged | None:
        """Give what was found when the same was asked before; None if that was long ago or never."""
        return self._verdicts.get(question)

    def remember(self, question: object, verdict: Judged, /) -> None:
        """Keep what was found: the same is asked of a vector again and again, and its classes never change."""
        if len(self._verdicts) >= _VERDICTS_KEPT:
            self._verdicts.clear()
        self._verdicts[question] = verdict

    def _in_order(self, name: str) -> Said:
        if not self.says(name):
            # Strangers may ask for any names: nothing is kept of them, and no class is looked at.
            return _unsaid(len(self.vector.classes))
        said = self._said[name] = said_by(list(map(_known, _values_of(name, self.vector.classes))))
        return said


@dataclass(slots=True)
class Indexes:
    """The indexed vectors of a module, by whose they are (mutable); any of them may be dropped at any time."""

    _of: dict[Hashable, IndexedVector] = field(default_factory=dict)

    def of(self, whose: Hashable, vector: Vector, /) -> IndexedVector:
        """Give a vector with what was found out about it while it was the latest one of its owner."""
        indexed = self._of.get(whose)
        if indexed is None or indexed.vector is not vector:
            indexed = self._of[whose] = IndexedVector(vector)
        return indexed

    def drop(self, whose: Hashable, /) -> None:
        """Forget the vector of an owner, if there is one."""
        self._of.pop(whose, None)


def _values_of(name: str, classes: Sequence[MachineClass]) -> Sequence[ClassValue | None]:
    """Give what each class says; None where some or all machines lack it."""
    place = bisect_left(classes[0].attributes, name, key=_NAME_OF) if classes else 0
    with suppress(IndexError):
        pairs = [each.attributes[place] for each in classes]
        # Nearly always it stands at the same place in all classes.
        if set(map(_NAME_OF, pairs)) == {name} and not any(map(_SOME_LACK_OF, classes)):
            return list(map(_VALUE_OF, pairs))
    return [None if name in each.some_lack else dict(each.attributes).get(name) for each in classes]


@lru_cache(_CACHED_WIDTHS)
def _unsaid(width: int) -> Said:
    return said_by([None] * width)


@lru_cache(_CACHED_INTERVALS)
def _known(value: ClassValue | None) -> tuple[int, int] | str | None:
    if isinstance(value, Interval):
        return lowest_in(value.low), highest_in(value.high)
    return value if isinstance(value, str) else None
