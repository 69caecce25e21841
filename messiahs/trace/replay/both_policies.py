"""A policy that decides as recorded, and asks two others the same questions (MESSIAHS 2).

The two draw the random bits that the recorded policy drew; beyond these, both draw the same other bits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from messiahs.core.interface.parts import (
    Disclosure,
    Failed,
    Part,
    PartKind,
    PartState,
    Policy,
    Transfer,
)
from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Allocation,
    AllocationQuery,
    Asker,
    Asking,
    HereQuery,
    JoinQuery,
    Limits,
    MigrationQuery,
    Randomness,
    RankQuery,
    Refused,
    RunningQuery,
    RunningRule,
    SourceQuery,
    TaskOrderQuery,
    Timeouts,
    UpdateQuery,
)
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.model.series import Kept
from messiahs.core.model.terms import terms_text


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a policy, and the answers of two policies."""

    question: str
    old: str
    new: str


Note = Callable[[Asked], None]


@dataclass(slots=True)
class AskingBoth:
    """Decides as `recorded`, and notes the answers of `old` and `new` to the same questions (mutable).

    The module keeps the states of the recorded parts; those of the two others are kept here.
    """

    recorded: Policy
    old: Policy
    new: Policy
    note: Note
    states: dict[tuple[bool, PartKind], PartState] = field(default_factory=dict)
    """By whether the part belongs to the new policy, and its kind."""

    @property
    def timeouts(self) -> Timeouts:
        """The timeouts of the recorded policy, which are not compared."""
        return self.recorded.timeouts

    @property
    def limits(self) -> Limits:
        """The limits of the recorded policy, which are not compared."""
        return self.recorded.limits

    @property
    def histories(self) -> tuple[Kept, ...]:
        """Those of all three policies, of the same attribute the recorded or else the old one."""
        policies = (self.recorded, self.old, self.new)
        return tuple({each.name: each for policy in reversed(policies) for each in policy.histories}.values())

    @property
    def keys(self) -> tuple[str, ...]:
        """The recorded keys."""
        return self.recorded.keys

    @property
    def running(self) -> tuple[RunningRule, ...]:
        """The recorded rules."""
        return self.recorded.running

    @property
    def update(self) -> Part[UpdateQuery, bool]:
        """The recorded part; the vectors for neighbors are compared as a whole."""
        return self.recorded.update

    @property
    def disclosure(self) -> Disclosure:
        """The recorded disclosure."""
        return self.recorded.disclosure

    @property
    def transfer(self) -> Transfer:
        """The recorded asks and offers, with questions to both."""
        return _TransferBoth(self)

    @property
    def acceptance(self) -> "_PartBoth":
        """The part that judges tasks."""
        return self._both(PartKind.ACCEPTANCE, lambda policy: policy.acceptance, _accepting, _verdict)

    @property
    def location(self) -> "_PartBoth":
        """The part that orders candidates."""
        return self._both(PartKind.LOCATION, lambda policy: policy.location, _ranking, _listed)

    @property
    def sources(self) -> "_PartBoth":
        """The part that orders neighbors that are asked for tasks."""
        return self._both(PartKind.SOURCES, lambda policy: policy.sources, _asking, _listed)

    @property
    def selection(self) -> "_PartBoth":
        """The part that orders tasks; it is not called while the recorded policy keeps the order of arrival."""
        return self._both(PartKind.SELECTION, lambda policy: policy.selection, _serving, _numbered)

    @property
    def migration(self) -> "_PartBoth":
        """The part that chooses among running tasks."""
        return self._both(PartKind.MIGRATION, lambda policy: policy.migration, _moving, _numbered)

    @property
    def allocation(self) -> "_PartBoth":
        """The part that grants places."""
        return self._both(PartKind.ALLOCATION, lambda policy: policy.allocation, _granting, _granted)

    @property
    def admission(self) -> "_PartBoth":
        """The part that judges a system that requests to join."""
        return self._both(PartKind.ADMISSION, lambda policy: policy.admission, _joining, _verdict)

    def _both(
        self,
        kind: PartKind,
        part_of: Callable[[Policy], Part[Any, Any]],
        question: Callable[[Any], str],
        answered_text: Callable[[Any], str],
    ) -> "_PartBoth":
        return _PartBoth(both=self, kind=kind, part_of=part_of, question=question, answered_text=answered_text)

    def ask(self, question: str, answer: Callable[[Policy], str]) -> None:
        """Ask both, and note their answers."""
        self.note(Asked(question, answer(self.old), answer(self.new)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartBoth:
    """A part that decides as recorded; `question` and `answered_text` format what both others are asked and answer."""

    both: AskingBoth
    kind: PartKind
    part_of: Callable[[Policy], Any]
    question: Callable[[Any], str]
    answered_text: Callable[[Any], str]

    @property
    def recorded(self) -> Any:  # noqa: ANN401 - of this kind
        return self.part_of(self.both.recorded)

    @property
    def text(self) -> str:
        return str(self.recorded.text)

    @property
    def initial(self) -> PartState:
        state: PartState = self.recorded.initial
        return state

    @property
    def reads_memory(self) -> bool:
        return bool(self.recorded.reads_memory)

    @property
    def keeps_arrival(self) -> bool:
        return bool(self.recorded.keeps_arrival)

    def why_refused(self, query: AcceptQuery, /) -> str:
        return str(self.recorded.why_refused(query))

    def why_ranked(self, query: RankQuery, /) -> Mapping[SystemId, str]:
        texts: Mapping[SystemId, str] = self.recorded.why_ranked(query)
        return texts

    @property
    def reads_usage(self) -> bool:
        policies = (self.both.recorded, self.both.old, self.both.new)
        return any(self.part_of(policy).reads_usage for policy in policies)

    def decide(
        self,
        query: Any,  # noqa: ANN401 - of this kind
        state: PartState,
        randomness: Randomness,
        /,
    ) -> tuple[Any, PartState]:
        """Answer as recorded, and ask both others, each with the bits that the recorded part drew."""
        drawn = _Noted(randomness)
        answered: tuple[Any, PartState] = self.recorded.decide(query, state, drawn)

        def answer_of(policy: Policy) -> str:
            part, place = self.part_of(policy), (policy is self.both.new, self.kind)
            before = self.both.states.get(place, part.initial)
            answer, self.both.states[place] = part.decide(query, before, drawn.again())
            return self.answered_text(answer.instead if isinstance(answer, Failed) else answer)

        if question := self.question(query):
            self.both.ask(question, answer_of)
        return answered


@dataclass(frozen=True, slots=True)
class _TransferBoth:
    both: AskingBoth

    @property
    def asks(self) -> tuple[Asking, ...]:
        return tuple(_AskingBoth(self.both, ask) for ask in self.both.recorded.transfer.asks)

    @property
    def keep_at_least(self) -> int:
        return self.both.recorded.transfer.keep_at_least

    @property
    def offers_running(self) -> bool:
        return self.both.recorded.transfer.offers_running

    @property
    def reads_memory(self) -> bool:
        return self.both.recorded.transfer.reads_memory

    @property
    def reads_waiting(self) -> bool:
        return self.both.recorded.transfer.reads_waiting

    def offers(self, query: RunningQuery, /) -> bool:
        question = f"offer a task{_whose(query.task)}"
        self.both.ask(question, lambda policy: "offered" if policy.transfer.offers(query) else "kept")
        return self.both.recorded.transfer.offers(query)


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
                "; ".join(f"{{ {ask.wanting} }}" for ask in policy.transfer.asks if ask.is_wanted(query)) or "nothing"
            )

        self.both.ask("ask for tasks", wanted)
        return self.ask.is_wanted(query)


@dataclass(slots=True)
class _Noted:
    """Draws from another source, and can repeat the draws (mutable)."""

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
    """Repeats earlier draws, by default none, and continues with fixed numbers (mutable)."""

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
    """Return the wanted slots as text; a task that follows in its claim needs no more than the claim has."""
    count = query.wanted_slots
    return f"{count} slot{'s' * (count > 1)}" if count else "a task in its claim"


def _verdict(answer: Accepted | Refused) -> str:
    if isinstance(answer, Accepted):
        return f"accepted{terms_text(answer.account, answer.network)}"
    why = ": ".join(part for part in (answer.rule, answer.text) if part)
    return f"{answer.code.value}{'' if answer.is_final else ' here'}{f' by {why}' if why else ''}"


def _whose(task: Description) -> str:
    user = task.get("user")
    return f" of {user}" if user is not None else ""


def _accepting(query: AcceptQuery) -> str:
    return f"accept {_slots(query)} {_from(query.asker)}"


def _joining(query: JoinQuery) -> str:
    return f"admit {query.name} as {query.role.value}"


def _ranking(query: RankQuery) -> str:
    names = ", ".join(candidate.system for candidate in query.candidates)
    return f"rank {names}" if names else ""


def _asking(query: SourceQuery) -> str:
    return f"ask {_listed(tuple(source.system for source in query.sources))} for tasks"


def _serving(query: TaskOrderQuery) -> str:
    return f"rank {len(query.tasks)} tasks"


def _moving(query: MigrationQuery) -> str:
    return f"move {query.wanted} of {len(query.tasks)} tasks"


def _granting(query: AllocationQuery) -> str:
    return f"grant {query.wanted} places of {query.slots} slots"


def _listed(answer: tuple[SystemId, ...]) -> str:
    return ", ".join(answer) or "none"


def _numbered(answer: tuple[int, ...]) -> str:
    return ", ".join(str(place + 1) for place in answer) or "none"


def _granted(answer: Allocation) -> str:
    return f"{answer.places} of {answer.slots} slots"
