"""A policy that decides as it was recorded, and asks two others the same questions (MESSIAHS 2).

The two draw the random bits that the recorded one drew; where it drew none or fewer, both draw the same others.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Asker,
    Asking,
    CalendarTime,
    HereQuery,
    JoinQuery,
    Migrating,
    Policy,
    Randomness,
    RankQuery,
    Refused,
    RunningQuery,
    RunningRule,
    TaskOrder,
    TaskOrderQuery,
    Timeouts,
)
from messiahs.core.model.descriptions import SDV, Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.vectors.vectors import Vector


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a policy, and what the two answered."""

    question: str
    old: str
    new: str


Note = Callable[[Asked], None]


@dataclass(frozen=True, slots=True)
class AskingBoth:
    """Decides as `recorded`, and notes what `old` and `new` answer to the same questions."""

    recorded: Policy
    old: Policy
    new: Policy
    note: Note

    @property
    def timeouts(self) -> Timeouts:
        """Those of the recorded policy, as all that is no question."""
        return self.recorded.timeouts

    @property
    def keys(self) -> tuple[str, ...]:
        """The recorded keys."""
        return self.recorded.keys

    @property
    def change_share(self) -> int:
        """The recorded share."""
        return self.recorded.change_share

    @property
    def running(self) -> tuple[RunningRule, ...]:
        """The recorded rules."""
        return self.recorded.running

    @property
    def migrating(self) -> Migrating:
        """What is asked and offered as recorded."""
        return _MigratingBoth(self)

    @property
    def task_order(self) -> TaskOrder | None:
        """The recorded order; without one, nobody is asked for it."""
        return None if self.recorded.task_order is None else _OrderBoth(self)

    def accept(self, query: AcceptQuery, /) -> Accepted | Refused:
        """Judge tasks."""
        self.ask(f"accept {_slots(query)} {_from(query.asker)}", lambda policy: _verdict(policy.accept(query)))
        return self.recorded.accept(query)

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Say what was against tasks."""
        return self.recorded.why_refused(query)

    def admits(self, query: JoinQuery, /) -> Accepted | Refused:
        """Judge a system that wants to join."""
        self.ask(f"admit {query.name} as {query.role.value}", lambda policy: _verdict(policy.admits(query)))
        return self.recorded.admits(query)

    def rank(self, query: RankQuery, randomness: Randomness, /) -> tuple[SystemId, ...]:
        """Order candidates."""
        drawn = _Noted(randomness)
        order = self.recorded.rank(query, drawn)
        names = ", ".join(candidate.system for candidate in query.candidates)
        if names:
            self.ask(f"rank {names}", lambda policy: ", ".join(policy.rank(query, drawn.again())) or "nobody")
        return order

    def describe_here(self, measured: SDV, now: CalendarTime, /) -> SDV:
        """Describe the own machine; what neighbors are told of it is compared as a whole, vector by vector."""
        return self.recorded.describe_here(measured, now)

    def pass_on(self, vector: Vector, /) -> Vector:
        """Pass on."""
        return self.recorded.pass_on(vector)

    def reveal(self, vector: Vector, neighbor: Neighbor, /) -> Vector:
        """Reveal."""
        return self.recorded.reveal(vector, neighbor)

    def reveals_to(self, neighbor: Neighbor, /) -> bool:
        """Say whether a neighbor is told anything."""
        return self.recorded.reveals_to(neighbor)

    def audience_of(self, neighbor: Neighbor, /) -> Hashable:
        """Tell neighbors apart."""
        return self.recorded.audience_of(neighbor)

    def name_for(self, neighbor: Neighbor, /) -> str:
        """Give the name that a neighbor sees."""
        return self.recorded.name_for(neighbor)

    def ask(self, question: str, answer: Callable[[Policy], str]) -> None:
        """Ask both, and note their answers."""
        self.note(Asked(question, answer(self.old), answer(self.new)))


@dataclass(frozen=True, slots=True)
class _MigratingBoth:
    both: AskingBoth

    @property
    def asks(self) -> tuple[Asking, ...]:
        return tuple(_AskingBoth(self.both, ask) for ask in self.both.recorded.migrating.asks)

    @property
    def keep_at_least(self) -> int:
        return self.both.recorded.migrating.keep_at_least

    @property
    def offers_running(self) -> bool:
        return self.both.recorded.migrating.offers_running

    @property
    def reads_memory(self) -> bool:
        return self.both.recorded.migrating.reads_memory

    @property
    def reads_waiting(self) -> bool:
        return self.both.recorded.migrating.reads_waiting

    def offers(self, query: RunningQuery, /) -> bool:
        question = f"offer a task{_whose(query.task)}"
        self.both.ask(question, lambda policy: "offered" if policy.migrating.offers(query) else "kept")
        return self.both.recorded.migrating.offers(query)


@dataclass(frozen=True, slots=True)
class _AskingBoth:
    both: AskingBoth
    ask: Asking

    @property
    def every_ns(self) -> int:
        return self.ask.every_ns

    @property
    def wanting(self) -> str:
        return self.ask.wanting

    def is_wanted(self, query: HereQuery, /) -> bool:
        def wanted(policy: Policy) -> str:
            return (
                "; ".join(f"{{ {ask.wanting} }}" for ask in policy.migrating.asks if ask.is_wanted(query)) or "nothing"
            )

        self.both.ask("ask for tasks", wanted)
        return self.ask.is_wanted(query)


@dataclass(frozen=True, slots=True)
class _OrderBoth:
    both: AskingBoth

    @property
    def reads_memory(self) -> bool:
        order = self.both.recorded.task_order
        return order is not None and order.reads_memory

    def order(self, query: TaskOrderQuery, randomness: Randomness, /) -> tuple[int, ...]:
        order, drawn = self.both.recorded.task_order, _Noted(randomness)
        assert order is not None
        places = order.order(query, drawn)

        def first_to_last(policy: Policy) -> str:
            order = policy.task_order
            ordered = range(len(query.tasks)) if order is None else order.order(query, drawn.again())
            return ", ".join(str(place + 1) for place in ordered)

        self.both.ask(f"rank {len(query.tasks)} tasks", first_to_last)
        return places


@dataclass(slots=True)
class _Noted:
    """Draws from elsewhere, and can draw the same again (mutable)."""

    randomness: Randomness
    drawn: list[int] = field(default_factory=list)

    def bits(self, count: int, /) -> int:
        number = self.randomness.bits(count)
        self.drawn.append(number)
        return number

    def again(self) -> "PastDraws":
        return PastDraws(iter(self.drawn))


@dataclass(slots=True)
class PastDraws:
    """Draws what was drawn before, by default nothing, and after that always the same (mutable)."""

    left: Iterator[int] = field(default_factory=lambda: iter(()))
    more: int = 0

    def bits(self, count: int, /) -> int:
        """Draw."""
        number = next(self.left, None)
        if number is None:
            self.more += 1
            number = int.from_bytes(sha256(str(self.more).encode()).digest())
        return number % (1 << count)


def _from(asker: Asker) -> str:
    return "from users" if asker.relation is Relation.SELF else f"from {asker.system}"


def _slots(query: AcceptQuery) -> str:
    """Say what is wanted; a task that follows in its claim wants no more than that has."""
    count = query.wanted_slots
    return f"{count} slot{'s' * (count > 1)}" if count else "a task in its claim"


def _verdict(answer: Accepted | Refused) -> str:
    if isinstance(answer, Accepted):
        return "accepted"
    told = ": ".join(part for part in (answer.rule, answer.text) if part)
    return f"{answer.code.value}{'' if answer.is_final else ' here'}{f' by {told}' if told else ''}"


def _whose(task: Description) -> str:
    user = task.get("user")
    return f" of {user}" if user is not None else ""
