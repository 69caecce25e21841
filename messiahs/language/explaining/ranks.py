"""Explain the order in which systems are asked and tasks served: the value of each key of `rank`.

The values are those that determine the order itself. Nothing is random here: keys that draw leave candidates in order
of name.
"""

from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.policies import RankQuery, TaskOrderQuery
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import fitting
from messiahs.core.vectors.columns import chosen
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Vector
from messiahs.language.runtime.candidate_ranking import (
    First,
    KeyOrder,
    Most,
    RankKey,
    Turn,
    WrittenOrder,
    keys_of,
    link_of,
    ranked_by,
    ranking_facts,
)
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.part_keys import ByPart
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, NOW, TASK, Facts, Reading, calendar_facts
from messiahs.language.runtime.rule_explanation import ExplainedRule, explain_rule
from messiahs.language.runtime.task_ranking import TaskRanking, key_order


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedKey:
    """Text for a key, and `value`, its number if it has one.

    The attributes in `unset` are the reason why it has no value or is not true. `rule` explains the comparisons of a
    key that is equal for all.
    """

    text: str
    value: int | None = None
    unset: tuple[str, ...] = ()
    rule: ExplainedRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A candidate, and the value of each key."""

    system: str
    relation: Relation
    keys: tuple[ExplainedKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedOrder:
    """An order of a policy: the value of each key, and the resulting order.

    `ranked` is None if no candidates are known; `unable` are candidates that could not hold the task and are not asked.
    """

    written: WrittenOrder
    keys: tuple[ExplainedKey, ...]
    ranked: tuple[RankedCandidate, ...] | None = None
    unable: tuple[str, ...] = ()


class NoChance:
    """A source of random bits that are all 0, and change no order."""

    def bits(self, count: int, /) -> int:
        """Return 0."""
        del count
        return 0


_OF_CANDIDATES: Final = frozenset({MACHINE, CANDIDATE})
_FIRST: Final = ("surely true", "could be true", "false")
_DRAWN: Final = "drawn anew each time"
_BY_PART: Final = "decided by the part for all at once"
_DIFFERS: Final = "differs from candidate to candidate"


def explain_candidates(policy: CompiledPolicy, query: RankQuery, /, *, are_known: bool) -> ExplainedOrder | None:
    """Explain `rank candidates` for one task; None for a policy without it.

    Without `are_known` no candidates are known, and the query has none.
    """
    written = _written(policy, "rank candidates")
    if written is None:
        return None
    facts, keys_in_order = ranking_facts(query), keys_of(policy.location)
    keys = tuple(_key_of_all(key, facts) for key in keys_in_order)
    if not are_known:
        return ExplainedOrder(written=written, keys=keys)
    candidates = {each.system: each for each in query.candidates}
    ranked: list[RankedCandidate] = []
    for _, orders, system in ranked_by(keys_in_order, query, policy.location.initial, NoChance()).candidates:
        candidate = candidates.pop(system)
        _, could = fitting(query.need, candidate.view)
        able = IndexedVector(Vector(tuple(chosen(candidate.view.vector.classes, could))))
        about = {**facts, CANDIDATE: link_of(candidate)}
        keys = tuple(_key_over_classes(*each, about, able) for each in zip(keys_in_order, orders, strict=True))
        ranked.append(RankedCandidate(system=system, relation=candidate.relation, keys=keys))
    return ExplainedOrder(written=written, keys=keys, ranked=tuple(ranked), unable=tuple(sorted(candidates)))


def explain_task_order(policy: CompiledPolicy, query: TaskOrderQuery, /) -> ExplainedOrder | None:
    """Explain `rank tasks` for the only task of a query; None for a policy without it."""
    written = _written(policy, "rank tasks")
    if written is None:
        return None
    order = TaskRanking(keys=keys_of(policy.selection))
    (((orders, _),), _) = order.ranked(query, order.initial, NoChance())
    facts = {HERE: query.here, NOW: calendar_facts(query.now), TASK: query.tasks[0]}
    keys = tuple(_key_over_facts(*each, facts) for each in zip(order.keys, orders, strict=True))
    return ExplainedOrder(written=written, keys=keys)


def _written(policy: CompiledPolicy, head: str) -> WrittenOrder | None:
    return next((order for order in policy.orders if order.head == head), None)


def _key_of_all(key: RankKey, facts: Facts) -> ExplainedKey:
    """Explain a key without looking at candidates, as far as it does not depend on them."""
    if isinstance(key, Turn | ByPart):
        return ExplainedKey(text=_DRAWN if isinstance(key, Turn) else _BY_PART)
    own = [reading for reading in _readings(key) if reading.scope not in _OF_CANDIDATES]
    if len(own) == len(_readings(key)):
        return _key_over_facts(key, key_order(key, facts), facts)
    unset = tuple(str(reading) for reading in own if reading.value_in(facts) is None)
    return _last(unset, is_first=isinstance(key, First)) if unset else ExplainedKey(text=_DIFFERS)


def _key_over_facts(key: RankKey, order: KeyOrder, facts: Facts, /) -> ExplainedKey:
    match key:
        case First(condition):
            rule = explain_rule(condition, f"first where {condition.predicate}", facts)
            return ExplainedKey(text="true" if rule.is_true else "false", rule=rule)
        case Most():
            return _amount(key, order, tuple(str(each) for each in _readings(key) if each.value_in(facts) is None))
        case Turn():
            return ExplainedKey(text=_DRAWN)
        case ByPart():
            return ExplainedKey(text=_BY_PART)


def _key_over_classes(key: RankKey, order: KeyOrder, facts: Facts, able: IndexedVector, /) -> ExplainedKey:
    """Explain the value of a key for a candidate; `able` are its classes that could hold the task."""
    if isinstance(key, ByPart):
        return ExplainedKey(text=f"place {order[1] + 1}", value=order[1] + 1)
    if isinstance(key, Turn):
        return ExplainedKey(text=_DRAWN)
    has_values = {
        reading: _is_said(reading, key, able) if reading.scope == MACHINE else reading.value_in(facts) is not None
        for reading in _readings(key)
    }
    unset = tuple(str(reading) for reading, is_there in has_values.items() if not is_there)
    if isinstance(key, Most):
        return _amount(key, order, unset)
    text = _FIRST[order[1]]
    if not unset or text == _FIRST[0]:
        return ExplainedKey(text=text)
    # An attribute that machines do not advertise may have been withheld, and could have any value.
    is_false = text == _FIRST[-1]
    return _last(unset, is_first=True) if is_false else ExplainedKey(text=f"{text}{_without(unset)}", unset=unset)


def _is_said(reading: Reading, key: First | Most, able: IndexedVector) -> bool:
    if isinstance(key, Most):
        return any(reading.amounts_in(able))
    has_any = any(reading.name in dict(each.attributes) for each in able.vector.classes)
    return has_any or reading.default is not None or reading.is_presence


def _amount(key: Most, order: KeyOrder, unset: tuple[str, ...]) -> ExplainedKey:
    has_none, number = order
    if has_none:
        return _last(unset, is_first=False)
    value = number if key.is_least else -number
    return ExplainedKey(text=str(value), value=value)


def _last(unset: tuple[str, ...], *, is_first: bool) -> ExplainedKey:
    """Explain a key without a value: attributes are unset, or its number does not fit."""
    why = _without(unset) if unset else ": no value of it is within 64 bits"
    return ExplainedKey(text=f"{'false' if is_first else 'uninitialised'}, goes last{why}", unset=unset)


def _without(unset: tuple[str, ...]) -> str:
    return f": {', '.join(unset)} {'have' if len(unset) > 1 else 'has'} no value"


def _readings(key: First | Most) -> tuple[Reading, ...]:
    return key.condition.readings if isinstance(key, First) else key.amount.readings
