"""The order in which systems are asked: the keys of a `rank candidates` block, one after the other (MESSIAHS 6.2).

An attribute without a scope is read in the classes of a candidate's view that could hold the task, and the best class
determines the key's value. A class counts with its guaranteed value, the worst one of its interval.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from messiahs.core.interface.parts import Failed, PartState
from messiahs.core.interface.policies import Candidate, Randomness, RankQuery
from messiahs.core.model.attributes import Unit, Value
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.task_filter.matching import fitting
from messiahs.core.vectors.columns import ClassSet
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.part_keys import ByPart, Placed, part_in, placed_by
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, NOW, TASK, Facts, calendar_facts, cost_facts

_DRAW_BITS: Final = 64
_FIRST: Final = ("surely true", "could be true", "false")
"""The values of a `first` key, by their numbers."""


class Turn(StrEnum):
    """Orders that read no attribute."""

    RANDOM = "random"
    ROUND_ROBIN = "round robin"


@dataclass(frozen=True, slots=True)
class First:
    """Prefers candidates for which the condition is certainly true, then those for which it may be."""

    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """Prefers the greatest value, or with `is_least` the least; candidates without a value are last."""

    amount: Amount
    is_least: bool = False


RankKey = First | Most | Turn | ByPart
KeyOrder = tuple[int, int]
"""Value of a key, the lower one first: (1, 0) is no value. For `first`, 0 is certain, 1 possible, 2 false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOrder:
    """A `rank` block as written: each key on one line, and its offset in the file, in characters from 0."""

    head: str
    start: int
    keys: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Orders the candidates that could hold the task; last are those that lost tasks, or denied such ones, recently.

    Candidates with equal keys are in order of name. At most one key is a part, whose state is the state of the ranking.
    """

    keys: tuple[RankKey, ...]

    @property
    def text(self) -> str:
        """The part among the keys; empty without one, since only a part has a state."""
        part = part_in(self.keys)
        return "" if part is None else part.text

    @property
    def initial(self) -> PartState:
        """The initial state of the part among the keys."""
        part = part_in(self.keys)
        return () if part is None else part.initial

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every `first where`."""
        return conditions_in("candidates", self.keys)

    def decide(
        self, query: RankQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[SystemId, ...] | Failed[tuple[SystemId, ...]], PartState]:
        """Order candidates."""
        ranked = ranked_by(self.keys, query, state, randomness)
        return ranked.by_part.answering(tuple(system for _, _, system in ranked.candidates))

    def why_ranked(self, query: RankQuery, /) -> dict[SystemId, str]:
        """Return the value of each key for each candidate; of a part or a drawn place, only that it decides."""
        common, texts = ranking_facts(query), dict[SystemId, str]()
        for candidate in query.candidates:
            facts, could = {**common, CANDIDATE: link_of(candidate)}, fitting(query.need, candidate.view)[1]
            values = (_key_text(key, facts, candidate.view, could) for key in self.keys)
            texts[candidate.system] = "; ".join(values)
        return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The candidates in order: whether tasks were lost there, the values of the keys, and the name.

    `by_part` is the answer of the part among the keys, if there is one.
    """

    candidates: list[tuple[bool, list[KeyOrder], SystemId]]
    by_part: Placed[SystemId]


def conditions_in(ranked: str, keys: tuple[RankKey, ...], /) -> Iterator[tuple[str, Condition]]:
    """Yield the conditions of some keys, which order what `ranked` says."""
    for key in keys:
        if isinstance(key, First):
            yield f"rank {ranked} by first where {key.condition.predicate}", key.condition


def keys_of(order: object, /) -> tuple[RankKey, ...]:
    """Return the keys of an order; a part alone is its only key."""
    keys: tuple[RankKey, ...] | None = getattr(order, "keys", None)
    return (ByPart(order),) if keys is None else keys  # type: ignore[arg-type]


def ranked_by(keys: tuple[RankKey, ...], query: RankQuery, state: PartState, randomness: Randomness, /) -> Ranked:
    """Return the candidates in the order of some keys."""
    could = {each.system: classes for each in query.candidates if (classes := fitting(query.need, each.view)[1])}
    by_part: Placed[SystemId] = Placed(places=dict.fromkeys(could, 0), state=state)
    part = part_in(keys)
    if part is not None:
        able = tuple(each for each in query.candidates if each.system in could)
        by_part = placed_by(part, replace(query, candidates=able), state, randomness)
    chosen = sorted(
        (each for each in query.candidates if each.system in could and each.system in by_part.places),
        key=lambda candidate: candidate.system,
    )
    turns = {key: turns_of(key, len(chosen), randomness) for key in dict.fromkeys(keys) if isinstance(key, Turn)}
    ranked: list[tuple[bool, list[KeyOrder], SystemId]] = []
    common = ranking_facts(query)
    for place, candidate in enumerate(chosen):
        system, facts = candidate.system, {**common, CANDIDATE: link_of(candidate)}
        values = [
            (0, turns[key][place])
            if isinstance(key, Turn)
            else (0, by_part.places[system])
            if isinstance(key, ByPart)
            else _value(key, facts, candidate.view, could[system])
            for key in keys
        ]
        ranked.append((candidate.has_lost, values, system))
    ranked.sort()
    return Ranked(candidates=ranked, by_part=by_part)


def turns_of(turn: Turn, count: int, randomness: Randomness, /) -> list[int]:
    """Return the position of each place in a round; the round starts at random, since a policy has no memory."""
    if turn is Turn.RANDOM:
        return [randomness.bits(_DRAW_BITS) for _ in range(count)]
    start = randomness.bits(_DRAW_BITS) % count if count > 1 else 0
    return [(place - start) % count for place in range(count)]


def ranking_facts(query: RankQuery, /) -> Facts:
    """Return the facts that are equal for all candidates."""
    here = {**query.module, **(query.here.description() if query.here is not None else {})}
    return {TASK: query.tdv.description(), HERE: here, NOW: calendar_facts(query.now)}


def link_of(candidate: Candidate, /) -> Description:
    """Return the attributes of `$cand` for a candidate."""
    facts: dict[str, Value] = {
        "name": candidate.system,
        "relation": candidate.relation.value,
        "age": candidate.age_ns // SECOND,
        "count": candidate.view.vector.machines,
    }
    balance: dict[str, Value] = {} if candidate.balance is None else {"balance": candidate.balance}
    return {**facts, **balance, **cost_facts(candidate.costs), **dict(candidate.history)}


def _key_text(key: RankKey, facts: Facts, view: IndexedVector, classes: ClassSet, /) -> str:
    match key:
        case Turn():
            return f"{key.value}: drawn"
        case ByPart(part):
            return f"placed by {part.text}"
        case First(condition):
            return f"first where {condition.predicate}: {_FIRST[_value(key, facts, view, classes)[1]]}"
        case Most(amount=amount, is_least=is_least):
            has_none, number = _value(key, facts, view, classes)
            value = "no value" if has_none else value_text(number if is_least else -number, amount.unit or Unit.NONE)
            return f"{'least' if is_least else 'most'} of {', '.join(map(str, amount.readings))}: {value}"


def _value(key: First | Most, facts: Facts, view: IndexedVector, classes: ClassSet, /) -> KeyOrder:
    if isinstance(key, First):
        surely, could = key.condition.over(facts, MACHINE, view)
        return (0, 0 if surely & classes else 1 if could & classes else 2)
    ranges = key.amount.ranges_in(facts, MACHINE, view, classes)
    ends = [greatest if key.is_least else -least for least, greatest in ranges]
    return (0, min(ends)) if ends else (1, 0)
