"""The history of a number that changes: how many values, their mean, deviation and permanence (MESSIAHS 5.1).

A value holds until the next one, so that mean and deviation are those over time, and do not depend on how often a
value is repeated. All totals are exact integers: every host computes the same.

The length of a history is divided into `PANES` panes. The totals since the start are kept as they were at the end of
each of the last panes, and a statistic covers what has been added since the oldest of them: more than the length, and
at most a quarter more. Adding a value and computing the statistics cost the same for every length.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import isqrt
from typing import Final, NamedTuple

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Attribute, Scope, Unit
from messiahs.core.model.instants import DAY, SECOND, Instant

PANES: Final = 4
SHORTEST_NS: Final = SECOND
LONGEST_NS: Final = 30 * DAY
HISTORY_LIMIT: Final = 8
"""The most attributes of which a policy keeps the history."""


class Statistic(StrEnum):
    """What a history tells of an attribute; the name of each is added to that of the attribute."""

    COUNT = "count"
    MEAN = "mean"
    DEVIATION = "sd"
    PERMANENCE = "permanence"


@dataclass(frozen=True, slots=True)
class Kept:
    """An attribute of which a history is kept, written without `$`, the length of that history, and its range."""

    name: str
    length_ns: int
    low: int = INTEGER_LOWEST
    high: int = INTEGER_HIGHEST

    def bounded(self, value: int) -> int:
        """Return the nearest value in the range: a neighbor may report anything."""
        return min(self.high, max(self.low, value))


class Totals(NamedTuple):
    """Totals over the time since the first value; `runs` counts the periods in which a value stayed the same."""

    known_ns: int = 0
    """Time for which there was a value."""
    times_value: bytes = b""
    times_square: bytes = b""
    """Values, and their squares, each multiplied by the nanoseconds for which it held: integers beyond 64 bits."""
    values: int = 0
    runs: int = 0

    def held(self, value: int | None, duration_ns: int) -> "Totals":
        """Add the time for which a value held; None: there was none."""
        if value is None:
            return self
        times_value = _number(self.times_value) + value * duration_ns
        times_square = _number(self.times_square) + value * value * duration_ns
        known_ns = self.known_ns + duration_ns
        return Totals(known_ns, _stored(times_value), _stored(times_square), self.values, self.runs)


_NOTHING: Final = Totals()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The history of one number; `marks` are the totals at the ends of the last panes, at most one more than `PANES`.

    In a mark, `runs` are those that had ended. Panes end at multiples of their length.
    """

    length_ns: int
    since: Instant
    """When the totals were computed; `value` has held since."""
    value: int | None = None
    totals: Totals = _NOTHING
    marks: tuple[Totals, ...] = ()

    def at(self, now: Instant) -> "Series":
        """Return the history as it is at `now`, with the same value; an earlier `now` changes nothing."""
        if now <= self.since:
            return self
        totals = self.totals.held(self.value, now - self.since)
        return Series(
            length_ns=self.length_ns, since=now, value=self.value, totals=totals, marks=self._marks_before(now)
        )

    def then(self, value: int | None, now: Instant) -> "Series":
        """Return the history with a further value at `now`, of at most 64 bits; None: there is none any more."""
        now = max(now, self.since)
        totals = self.totals.held(self.value, now - self.since)
        if value is not None:
            known_ns, times_value, times_square, values, runs = totals
            totals = Totals(known_ns, times_value, times_square, values + 1, runs + (value != self.value))
        return Series(length_ns=self.length_ns, since=now, value=value, totals=totals, marks=self._marks_before(now))

    def statistics(self, now: Instant) -> dict[Statistic, int]:
        """Return what the history tells at `now`; nothing while no value has held for any time in its length.

        The mean is rounded to the nearest integer, half up; the deviation, that of all the time, down. The permanence
        is the mean time in seconds for which a value stayed the same, rounded down.
        """
        present = self.at(now)
        # Before the first pane has ended, the history begins with its first value.
        base = present.marks[0] if len(present.marks) > PANES else _NOTHING
        known_ns = present.totals.known_ns - base.known_ns
        if not known_ns:
            return {}
        value = _number(present.totals.times_value) - _number(base.times_value)
        square = _number(present.totals.times_square) - _number(base.times_square)
        variance = (square * known_ns - value * value) // (known_ns * known_ns)
        runs = present.totals.runs - base.runs
        return {
            Statistic.COUNT: present.totals.values - base.values,
            Statistic.MEAN: (2 * value + known_ns) // (2 * known_ns),
            Statistic.DEVIATION: isqrt(variance),
            Statistic.PERMANENCE: known_ns // runs // SECOND,
        }

    def _marks_before(self, now: Instant) -> tuple[Totals, ...]:
        """Return the marks of the last panes that have ended before `now`.

        A pane that ends at `now` is not over: a value that arrives at this instant still belongs to it.
        """
        pane_ns = self.length_ns // PANES
        last = (now - 1) // pane_ns
        # The ends of earlier panes are not needed, so that a long silence costs no more than a short one.
        first = max(-(-self.since // pane_ns), last - PANES)
        if first > last or now <= self.since:
            return self.marks
        marks = [self._mark(pane * pane_ns) for pane in range(first, last + 1)]
        return (*self.marks, *marks)[-(PANES + 1) :]

    def _mark(self, end: int) -> Totals:
        """Return the totals at the end of a pane, which is not before `since`; the run of the value goes on."""
        totals = self.totals.held(self.value, end - self.since)
        return totals._replace(runs=totals.runs - (self.value is not None))


def _stored(number: int) -> bytes:
    """Return an integer as the shortest bytes: neither traces nor stored formats have more than 64 bits for one."""
    return number.to_bytes((number.bit_length() + 8) // 8, "little", signed=True)


def _number(stored: bytes) -> int:
    return int.from_bytes(stored, "little", signed=True)


def name_in_history(name: str, statistic: Statistic, /) -> str:
    """Return the name of a statistic of an attribute."""
    return f"{name}_{statistic.value}"


def attributes_in_history(attribute: Attribute, /) -> tuple[Attribute, ...]:
    """Return the attributes that the history of a number has; they are unset while nothing is known."""
    about = f"of ${attribute.name} in its history"

    def told(statistic: Statistic, meaning: str, *, unit: Unit, low: int | None, high: int | None = None) -> Attribute:
        return Attribute(
            name=name_in_history(attribute.name, statistic),
            unit=unit,
            scope=Scope.MACHINE,
            supplier="module",
            meaning=f"{meaning} {about}",
            low=low,
            high=high,
            is_optional=True,
        )

    return (
        told(Statistic.COUNT, "values", unit=Unit.NONE, low=0),
        told(Statistic.MEAN, "mean", unit=attribute.unit, low=attribute.low, high=attribute.high),
        told(Statistic.DEVIATION, "standard deviation", unit=attribute.unit, low=0),
        told(Statistic.PERMANENCE, "mean time without a change", unit=Unit.SECONDS, low=0),
    )
