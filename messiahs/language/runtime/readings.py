"""Attributes that a policy reads: by scope, with a default, or only whether they are set.

Facts have one description per scope. When many machines are evaluated at once, one scope is a class of machines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from messiahs.core.interface.policies import AcceptQuery, CalendarTime, RunningQuery
from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Unit, Value
from messiahs.core.model.dates import date_of
from messiahs.core.model.descriptions import Description
from messiahs.core.model.instants import MILLISECOND
from messiahs.core.model.link_costs import LinkCosts
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.columns import Column, Packed, column_of, constant, packed
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Interval, MachineClass

TASK, HERE, CANDIDATE, PEER, NOW, MACHINE = "task", "here", "cand", "peer", "now", "machine"
"""The scopes of facts; `MACHINE` is the subject of a ranking, the others are written before an attribute's name."""

MEMORY, WAITING = "mem_used", ("waiting", "waiting_above")
"""Attributes of a task and of the own system that are measured or counted only if a rule reads them."""

Facts = Mapping[str, Description]

Span = tuple[int, int, bool]
"""The least and the greatest number that an operand may have, and whether it certainly has one."""


@dataclass(frozen=True, slots=True)
class Group:
    """Texts that a policy names together, such as the users of a department."""

    name: str
    members: frozenset[str] = field(repr=False)


class Reader(Protocol):
    """A condition or an amount."""

    @property
    def readings(self) -> tuple["Reading", ...]:
        """All attributes that it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One attribute of one scope, read as `kind`.

    With `default` it always has a value. With `pattern` its value is 1 if the attribute matches it, or is in the group,
    and 0 if not; with `is_presence` it is 1 if the attribute is set, with either type, and 0 if not. `unit` is used to
    format it.
    """

    scope: str
    name: str
    kind: Kind
    default: Value | None = None
    pattern: str | Group | None = None
    is_presence: bool = False
    unit: Unit = field(default=Unit.NONE, compare=False)

    @property
    def key(self) -> str:
        """A text that is unique for each reading."""
        return repr((self.scope, self.name, self.kind.value, self.default, self.pattern, self.is_presence))

    @property
    def is_needed(self) -> bool:
        """Whether a predicate that reads it is false wherever the attribute is unset."""
        return self.default is None and not self.is_presence

    def value_in(self, facts: Facts) -> Value | None:
        """Return the value; None if the attribute has none of this type."""
        said = facts.get(self.scope, {}).get(self.name)
        if self.is_presence:
            return int(_typed(said, Kind.STRING) is not None or _typed(said, Kind.INTEGER) is not None)
        value = _typed(said, self.kind)
        return self._matched(self.default if value is None else value)

    def is_told_by(self, facts: Facts, scope: str) -> bool:
        """Return whether its value is a fact also where classes of machines take the place of `scope`."""
        return self.scope != scope or self.name in facts.get(scope, ())

    def column_over(self, facts: Facts, scope: str, vector: IndexedVector, /) -> Column | None:
        """Return the value in each class, which takes the place of `scope`; None if it is a fact and has no value."""
        if not self.is_told_by(facts, scope):
            return self.column_in(vector)
        value = self.value_in(facts)
        return None if value is None else constant(value, len(vector.vector.classes))

    def column_in(self, vector: IndexedVector) -> Column:
        """Return the value in each class; unclear where it may have been withheld."""
        (columns,) = vector.attribute_columns(self.name)
        numbers, strings, width = columns.numbers, columns.strings, len(vector.vector.classes)
        if self.is_presence:
            present = numbers.known | strings.known
            return column_of({1: packed(present, present, width)}, unclear=numbers.unclear, width=width)
        read, other = (numbers, strings) if self.kind is Kind.INTEGER else (strings, numbers)
        if self.default is None and self.pattern is None:
            return read
        ends = dict(read.ends())
        if self.default is not None:
            # A value of the other type is no value.
            ends[self.default] = ends.get(self.default, 0) | packed(other.known, other.known, width)
        if self.pattern is not None:
            ends = self._matched_in(ends)
        return column_of(ends, unclear=read.unclear, width=width)

    def amounts_in(self, vector: IndexedVector) -> tuple[tuple[int, int] | None, ...]:
        """Return the range in each class, with the default for machines that advertise none; None without a value."""
        ((*_, ends),) = vector.attribute_columns(self.name)
        default = self.default
        if not isinstance(default, int):
            return ends
        lacking = zip(vector.vector.classes, ends, strict=True)
        return tuple([said or _with_default(default, self.name, machine_class) for machine_class, said in lacking])

    def spans_in(self, vector: IndexedVector) -> list[Span | None]:
        """Return the numbers that it may have in each class; None where it has none on any machine."""
        ((numbers, strings, ends),) = vector.attribute_columns(self.name)
        filled = (self.default, self.default, True) if isinstance(self.default, int) else None
        hidden: Span = (INTEGER_LOWEST, INTEGER_HIGHEST, filled is not None)
        unclear, others = numbers.unclear, strings.known
        return [
            (*said, True) if said is not None else filled if others >> place & 1 or not unclear >> place & 1 else hidden
            for place, said in enumerate(ends)
        ]

    def _matched_in(self, strings: Mapping[Value, Packed]) -> dict[Value, Packed]:
        matched: dict[Value, Packed] = {0: 0, 1: 0}
        for value, classes in strings.items():
            matched[self._matched(value) or 0] |= classes
        return matched

    def _matched(self, value: Value | None) -> Value | None:
        if value is None or self.pattern is None:
            return value
        return int(matches(self.pattern, str(value)))

    def __str__(self) -> str:
        return f"${self.name}" if self.scope in {TASK, MACHINE} else f"${self.scope}.{self.name}"


def reads(reader: Reader, scope: str, name: str, /) -> bool:
    """Return whether a condition or an amount reads an attribute of a scope."""
    return any((reading.scope, reading.name) == (scope, name) for reading in reader.readings)


def _with_default(default: int, name: str, machine_class: MachineClass) -> tuple[int, int]:
    """Return the range of a class in which machines without the attribute count with the default."""
    said = dict(machine_class.attributes)[name] if name in machine_class.some_lack else None
    if not isinstance(said, Interval):
        return (default, default)
    return (min(lowest_in(said.low), default), max(highest_in(said.high), default))


def matches(pattern: str | Group, text: str) -> bool:
    """Return whether a text is in a group, or matches a pattern, in which `*` stands for any characters."""
    if isinstance(pattern, Group):
        return text in pattern.members
    first, *parts = pattern.split("*")
    if not parts:
        return text == pattern
    last = parts.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    place, end = len(first), len(text) - len(last)
    # The leftmost match of each part leaves the most text for the others, so no backtracking is necessary.
    for part in parts:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _typed(value: Value | None, kind: Kind) -> Value | None:
    if kind is Kind.STRING:
        return value if isinstance(value, str) else None
    return value if isinstance(value, int) and INTEGER_LOWEST <= value <= INTEGER_HIGHEST else None


def calendar_facts(now: CalendarTime) -> dict[str, int | str]:
    """Return the attributes of `$now`."""
    date = date_of(now.date)
    return {
        "clock": now.clock,
        "weekday": date.isoweekday(),
        "day": date.day,
        "month": date.month,
        "date": now.date,
    }


def cost_facts(costs: LinkCosts, /) -> dict[str, Value]:
    """Return the communication costs that are known, as attributes of `$cand` and `$peer`."""
    facts: dict[str, Value] = {}
    if costs.round_trip_ns is not None:
        facts["round_trip"] = (costs.round_trip_ns + MILLISECOND // 2) // MILLISECOND
    if costs.throughput is not None:
        facts["throughput"] = costs.throughput
    return facts


def stated_costs(said: Description, /) -> LinkCosts:
    """Return the communication costs among stated attributes of `$cand` or `$peer`."""
    trip, throughput = said.get("round_trip"), said.get("throughput")
    return LinkCosts(
        trip * MILLISECOND if isinstance(trip, int) else None, throughput if isinstance(throughput, int) else None
    )


def request_facts(query: AcceptQuery, /) -> Facts:
    """Return the facts about a request; without a machine there are none about the own machine."""
    task = {**query.tdv.description(), "from": query.asker.system}
    peer: dict[str, Value] = {"name": query.asker.system, "relation": query.asker.relation.value}
    if query.asker.balance is not None:
        peer["balance"] = query.asker.balance
    peer |= cost_facts(query.asker.costs)
    peer |= query.asker.history
    here = {**query.module, **(query.here.description() if query.here is not None else {})}
    return {TASK: task, PEER: peer, HERE: here, NOW: calendar_facts(query.now)}


def running_facts(query: RunningQuery, /) -> Facts:
    """Return the facts about a running task."""
    return {TASK: query.task, HERE: query.here, NOW: calendar_facts(query.now)}
