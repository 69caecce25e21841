"""The statements of a trial so far, as the queries of a policy; a statement holds until it is stated again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from messiahs.core.interface.calendar import calendar_time
from messiahs.core.interface.parts import Failed, Part, PartKind, PartState
from messiahs.core.interface.policies import AcceptQuery, Asker, CalendarTime, Placed, Used
from messiahs.core.model.attributes import KNOWN_ONCE_HERE, Value
from messiahs.core.model.descriptions import INPUT_SIZE, SDV, TDV, Pairs, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MICROSECOND, Duration, Instant
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.model.series import Series, name_in_history
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, MachineClass, Vector, coalesce, vector_of
from messiahs.language.explaining.ranks import NoChance
from messiahs.language.policytest.stated_values import (
    Below,
    Members,
    NamedTask,
    Place,
    Rival,
    SetClock,
    State,
    Statement,
    Use,
    Values,
    Wait,
)
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import HERE, PEER, TASK, stated_costs

_Query = TypeVar("_Query")
_Answer = TypeVar("_Answer")

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local, wherever that is
NOON: Final = datetime(2026, 1, 7, 12, 0)  # noqa: DTZ001 - local, wherever that is
"""The time of a trial that states none: a Wednesday."""
_END: Final = datetime(9000, 1, 1)  # noqa: DTZ001 - local, wherever that is
_MICROSECONDS: Final = 1000
_OF_THE_MODULE: Final = ("tasks", "waiting", "waiting_above", "lent")


@dataclass(slots=True, kw_only=True)
class Situation:
    """All statements of a trial so far (mutable)."""

    policy: CompiledPolicy
    moment: datetime = NOON
    said: dict[str, dict[str, Value]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    below: Vector = EMPTY
    rivals: dict[str, Rival] = field(default_factory=dict)
    tasks: dict[str, NamedTask] = field(default_factory=dict)
    members: int = 0
    past: dict[str, Series] = field(default_factory=dict)
    """The history of what was stated of the own system, as far as the policy keeps it."""
    jumped: timedelta = timedelta()
    """By how much the clock was set: no time passes then."""
    states: dict[PartKind, PartState] = field(default_factory=dict)
    """States of the policy's parts."""
    failure: str = ""
    """Why a part of the policy gave no answer; the latest reason counts."""

    def take(self, statement: Statement) -> None:
        """Apply a statement; a wait advances the clock."""
        match statement:
            case SetClock(moment):
                self.jumped += moment - self.moment
                self.moment = moment
            case Wait(duration_ns):
                self.moment = self.later(duration_ns)
            case State(scope, values, forgotten):
                said = self.said.setdefault(scope, {})
                said.update(values)
                for name in forgotten:
                    said.pop(name, None)
                if scope == HERE:
                    self._remember(said)
            case Place(slots, values):
                self.placed.append(Placed(tdv=TDV(sorted_pairs(self.stated(values))), slots=slots))
            case Use(used_ns, values):
                self.used.append(self._used(used_ns, values))
            case Below():
                self.below = coalesce((self.below, machines_of(statement)), keys=self.policy.keys)
            case Rival(name=name):
                self.rivals[name] = statement
            case NamedTask(name):
                self.tasks[name] = statement
            case Members(count):
                self.members = count

    def later(self, duration_ns: Duration, /) -> datetime:
        """Return the time after `duration_ns`; the calendar ends in the year 9000."""
        return min(_END, self.moment + timedelta(microseconds=duration_ns // _MICROSECONDS))

    @property
    def now(self) -> CalendarTime:
        """The time as a policy reads it."""
        return calendar_time(self.moment)

    @property
    def here(self) -> SDV | None:
        """The own machine; None if machines below are stated and nothing about it: then the system has no machine."""
        said = {name: value for name, value in self.known_here.items() if name not in _OF_THE_MODULE}
        return None if self.below.machines and not said else SDV(sorted_pairs(said))

    @property
    def module(self) -> dict[str, Value]:
        """Attributes that the module counts itself, with or without a machine."""
        return {name: value for name, value in self.said.get(HERE, {}).items() if name in _OF_THE_MODULE}

    @property
    def known_here(self) -> dict[str, Value]:
        """All attributes of the own system, with its history, unless that is stated itself."""
        past = {
            name_in_history(name, statistic): value
            for name, series in self.past.items()
            for statistic, value in series.statistics(instant_of(self.moment - self.jumped)).items()
        }
        return {**past, **self.said.get(HERE, {})}

    @property
    def sender(self) -> SystemId:
        """The name of the asking system."""
        return SystemId(str(self.said.get(PEER, {}).get("name", "peer")))

    @property
    def asker(self) -> Asker:
        """The asking system."""
        said = self.said.get(PEER, {})
        balance = said.get("balance")
        return Asker(
            system=self.sender,
            relation=Relation(str(said.get("relation", Relation.CHILD))),
            balance=balance if isinstance(balance, int) else None,
            history=history_in(said, self.policy),
            costs=stated_costs(said),
        )

    @property
    def neighbor(self) -> Neighbor:
        """The asking system as a neighbor; its relation is also its place in the primary tree."""
        relation, system = self.asker.relation, self.asker.system
        is_parent, is_child = relation is Relation.PARENT, relation is Relation.CHILD
        return Neighbor(
            system=system,
            is_parent=is_parent,
            is_primary_parent=is_parent,
            is_child=is_child,
            is_primary_child=is_child,
            is_sibling=relation is Relation.SIBLING,
        )

    @property
    def task(self) -> dict[str, Value]:
        """The task's attributes; by default one slot, from the peer and a user called `user`."""
        sender: dict[str, Value] = {"from": self.sender, "relation": self.asker.relation.value}
        return {**sender, **self.stated(tuple(self.said.get(TASK, {}).items()))}

    @property
    def tdv(self) -> TDV:
        """The attributes that the task itself states."""
        known_here = {"from", *KNOWN_ONCE_HERE}
        return TDV(sorted_pairs({name: value for name, value in self.task.items() if name not in known_here}))

    @property
    def request(self) -> AcceptQuery:
        """The peer's request to place the task."""
        slots = dict(self.tdv.pairs)["cpus"]
        return AcceptQuery(
            tdv=self.tdv,
            asker=self.asker,
            here=self.here,
            subtree=IndexedVector(self.below),
            now=self.now,
            placed=tuple(self.placed),
            used=tuple(self.used),
            wanted_slots=slots if isinstance(slots, int) else 1,
            module=self.module,
        )

    def _remember(self, said: Mapping[str, Value]) -> None:
        now = instant_of(self.moment - self.jumped)
        for kept in self.policy.histories:
            value = said.get(kept.name)
            series = self.past.get(kept.name, Series(length_ns=kept.length_ns, since=now))
            if value is None or isinstance(value, int):
                self.past[kept.name] = series.then(value, now)

    def _used(self, used_ns: Duration, values: Values) -> Used:
        stated = self.stated(values)
        return Used(
            sink=self.sender,
            origin=SystemId(str(stated["origin"])),
            user=str(stated["user"]),
            account=str(stated.get("account", "")),
            used_ns=used_ns,
        )

    def asked(self, kind: PartKind, part: Part[_Query, _Answer], query: _Query, /) -> _Answer:
        """Ask a part without randomness; its state is kept for the next expectation of the trial.

        A substitute replaces the answer of a part that fails, as it does in a module; `failure` tells.
        """
        answer, self.states[kind] = part.decide(query, self.states.get(kind, part.initial), NoChance())
        if isinstance(answer, Failed):
            self.failure = answer.why
            instead: _Answer = answer.instead
            return instead
        return answer

    def stated(self, values: Values) -> Mapping[str, Value]:
        """Return the attributes of a task with these stated values."""
        return {"cpus": 1, INPUT_SIZE: 0, "origin": self.sender, "user": "user", **dict(values)}


def history_in(said: Mapping[str, Value], policy: CompiledPolicy) -> Pairs:
    """Return what is stated of the history that the policy keeps of a neighbor."""
    names = [each.name for each in policy.in_history]
    return tuple((name, said[name]) for name in names if name in said)


def instant_of(moment: datetime) -> Instant:
    """Return the time of a trial as an instant."""
    return Instant((moment - EPOCH) // timedelta(microseconds=1) * MICROSECOND)


def machines_of(below: Below) -> Vector:
    """Return the vector of a number of equal machines."""
    (alike,) = vector_of(SDV(sorted_pairs(dict(below.values)))).classes
    return Vector((MachineClass(count=below.count, attributes=alike.attributes),)) if below.count else EMPTY
