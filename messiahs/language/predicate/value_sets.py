"""Sets of integers, or of strings, as unions of intervals: the possible values of a variable.

A cut is a position between values, `(number, "")` before an integer and `(0, text)` before a string. The string after
`s` in the order of code points is `s` and a NUL, so intervals of both types are half-open, from one cut to another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Value
from messiahs.language.predicate.syntax import Order

Cut = tuple[int, str]
Interval = tuple[Cut, Cut]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Intervals in ascending order that neither overlap nor touch, each of them from its first cut to its second."""

    intervals: tuple[Interval, ...]

    def __and__(self, other: "ValueSet") -> "ValueSet":
        """Return the intersection."""
        common: list[Interval] = []
        mine, others = iter(self.intervals), iter(other.intervals)
        one, two = next(mine, None), next(others, None)
        while one is not None and two is not None:
            start, end = max(one[0], two[0]), min(one[1], two[1])
            if start < end:
                common.append((start, end))
            if one[1] <= two[1]:
                one = next(mine, None)
            else:
                two = next(others, None)
        return ValueSet(tuple(common))

    def __or__(self, other: "ValueSet") -> "ValueSet":
        """Return the union."""
        return union_of((self, other))

    def __contains__(self, value: Value) -> bool:
        """Return whether a value is in the set."""
        return bool(self & only(value))

    def __bool__(self) -> bool:
        """Return whether the set is not empty."""
        return bool(self.intervals)

    @property
    def first(self) -> Cut:
        """The cut before all values of a set that is not empty."""
        return self.intervals[0][0]

    @property
    def last(self) -> Cut:
        """The cut after all values of a set that is not empty."""
        return self.intervals[-1][1]


def union_of(sets: Iterable[ValueSet]) -> ValueSet:
    """Return the union of sets."""
    joined: list[Interval] = []
    for start, end in sorted(interval for each in sets for interval in each.intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return ValueSet(tuple(joined))


_BOTTOM: Final[dict[Kind, Cut]] = {Kind.INTEGER: (INTEGER_LOWEST, ""), Kind.STRING: (0, "")}
_TOP: Final[dict[Kind, Cut]] = {Kind.INTEGER: (INTEGER_HIGHEST + 1, ""), Kind.STRING: (1, "")}


def everything(kind: Kind) -> ValueSet:
    """Return all values of a type."""
    return ValueSet(((_BOTTOM[kind], _TOP[kind]),))


def only(value: Value) -> ValueSet:
    """Return the set of one value."""
    return ValueSet(((before(value), after(value)),))


def integers(low: int, high: int) -> ValueSet:
    """Return the integers from `low` to `high`, both included."""
    return ValueSet(((before(low), after(high)),) if low <= high else ())


def before(value: Value) -> Cut:
    """Return the cut before a value."""
    return (0, value) if isinstance(value, str) else (value, "")


def after(value: Value) -> Cut:
    """Return the cut after a value."""
    return (0, f"{value}\0") if isinstance(value, str) else (value + 1, "")


def those(order: Order, value: Value) -> ValueSet:
    """Return the values that are in an order to `value`, as its left operand."""
    kind = Kind.STRING if isinstance(value, str) else Kind.INTEGER
    bottom, top = _BOTTOM[kind], _TOP[kind]
    cuts: dict[Order, tuple[Interval, ...]] = {
        Order.LESS: ((bottom, before(value)),),
        Order.LESS_OR_EQUAL: ((bottom, after(value)),),
        Order.EQUAL: ((before(value), after(value)),),
        Order.NOT_EQUAL: ((bottom, before(value)), (after(value), top)),
        Order.GREATER_OR_EQUAL: ((before(value), top),),
        Order.GREATER: ((after(value), top),),
    }
    return ValueSet(tuple(interval for interval in cuts[order] if interval[0] < interval[1]))


def up_to(last: Cut, *, is_strict: bool, kind: Kind) -> ValueSet:
    """Return the values less than (or equal to) some value before a cut."""
    end = last
    if is_strict and kind is Kind.INTEGER:
        end = (last[0] - 1, "")
    elif is_strict and last[1].endswith("\0"):
        end = (0, last[1][:-1])
    return ValueSet(((_BOTTOM[kind], end),) if _BOTTOM[kind] < end else ())


def from_on(first: Cut, *, is_strict: bool, kind: Kind) -> ValueSet:
    """Return the values greater than (or equal to) some value after a cut."""
    start = first
    if is_strict:
        start = (first[0] + 1, "") if kind is Kind.INTEGER else (first[0], f"{first[1]}\0")
    return ValueSet(((start, _TOP[kind]),) if start < _TOP[kind] else ())
