"""The nearest change of one value with which more machines of a pool would match: of a fact, or of a literal in a rule.

Tried are the bounds of the pool's classes and the literals of the rules: nothing between two of them matters.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Value
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.explaining.pool import Demand, judge_pool
from messiahs.language.predicate.syntax import (
    SPELLINGS,
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Variable,
    comparisons_of,
)
from messiahs.language.runtime.class_explanation import Machines, machines_in
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.conditions import Condition, condition_of
from messiahs.language.runtime.readings import Facts, Reading
from messiahs.language.syntax.written import Compound, Joint, Term, Written, terms_of

_TRIED_LIMIT: Final = 200
"""So many values are tried on each side, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would be different, and the machines that would match then."""

    text: str
    machines: Machines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Knob:
    """One value that could be another: what it is now, what it could be, and what would match then."""

    value: Value | None
    others: tuple[Value, ...]
    told: Callable[[Value], str]
    matched: Callable[[Value], Machines]


def changes_for(demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector, /) -> tuple[Change, ...]:
    """Give for each fact and each literal the nearest change that helps; what helps most stands in front."""
    now = machines_in(judge_pool(demands, facts, pool), pool)
    knobs = [*_facts_in(demands, facts, pool), *_literals_in(demands, facts, pool)]
    changes = {change.text: change for knob in knobs for change in _nearest(knob, now)}
    return tuple(sorted(changes.values(), key=lambda each: (-each.machines.could, -each.machines.surely, each.text)))


def _nearest(knob: _Knob, now: Machines) -> Iterator[Change]:
    """Try lesser and greater numbers up to the first that helps; of strings, and where there is no value, the best."""
    numbers = sorted({each for each in knob.others if isinstance(each, int)})
    value = knob.value
    if isinstance(value, int):
        lesser = [each for each in reversed(numbers) if each < value][:_TRIED_LIMIT]
        greater = [each for each in numbers if each > value][:_TRIED_LIMIT]
        for side in (lesser, greater):
            tried = ((each, knob.matched(each)) for each in side)
            found = next(((each, machines) for each, machines in tried if _is_more(machines, now)), None)
            if found is not None:
                yield Change(text=knob.told(found[0]), machines=found[1])
        return
    # Of several that are equally good the first: a literal stands before its neighbors.
    others = knob.others[:_TRIED_LIMIT]
    helping = [(each, machines) for each in others if _is_more(machines := knob.matched(each), now)]
    if helping:
        best, machines = max(helping, key=lambda each: (each[1].could, each[1].surely))
        yield Change(text=knob.told(best), machines=machines)


def _is_more(machines: Machines, now: Machines) -> bool:
    return machines.could > now.could or (machines.could == now.could and machines.surely > now.surely)


def _facts_in(demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector) -> Iterator[_Knob]:
    found: dict[Reading, dict[Value, None]] = {}
    for demand in demands:
        for condition in demand.conditions:
            readings = {reading.key: reading for reading in condition.readings}
            for comparison in _comparisons_in(condition):
                for reading, other in _sides_of(comparison, readings):
                    if reading.scope != demand.scope and not reading.is_presence and reading.pattern is None:
                        plain = replace(reading, default=None)
                        found.setdefault(plain, {}).update(dict.fromkeys(_bounds_at(other, demand.scope, pool)))
    for reading, bounds in found.items():
        yield _fact(reading, bounds, demands, facts, pool=pool)


def _fact(
    reading: Reading, bounds: Iterable[Value], demands: tuple[Demand, ...], facts: Facts, *, pool: IndexedVector
) -> _Knob:
    value = reading.value_in(facts)
    said = facts.get(reading.scope, {})

    def matched(other: Value) -> Machines:
        changed = {**facts, reading.scope: {**said, reading.name: other}}
        return machines_in(judge_pool(demands, changed, pool), pool)

    def told(other: Value) -> str:
        written = value_text(other, reading.unit)
        if not isinstance(value, int) or not isinstance(other, int):
            return f"{reading} were {written}"
        return f"{reading} were at {'most' if other < value else 'least'} {written}"

    return _Knob(value=value, others=tuple(bounds), told=told, matched=matched)


def _literals_in(demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector) -> Iterator[_Knob]:
    for demand in demands:
        for condition in demand.conditions:
            readings = {reading.key: reading for reading in condition.readings}
            assert condition.written is not None, "a policy without mistakes"
            for term in terms_of(condition.written):
                comparison = term.expression
                if not isinstance(comparison, Comparison):
                    continue
                for reading, other in _sides_of(comparison, readings):
                    is_literal = isinstance(other, int | str) and reading.pattern is None and not reading.is_presence
                    if is_literal and reading.scope == demand.scope:
                        yield _literal(term, comparison, demand, (demands, facts, pool), reading=reading)


def _literal(
    term: Term,
    comparison: Comparison,
    demand: Demand,
    asked: tuple[tuple[Demand, ...], Facts, IndexedVector],
    *,
    reading: Reading,
) -> _Knob:
    demands, facts, pool = asked
    is_left = isinstance(comparison.left, Variable)
    value = comparison.right if is_left else comparison.left

    def changed(other: Value) -> Comparison:
        return replace(comparison, right=other) if is_left else replace(comparison, left=other)

    def matched(other: Value) -> Machines:
        swapped = replace(demand, conditions=tuple(_with(each, term, changed(other)) for each in demand.conditions))
        others = tuple(swapped if each is demand else each for each in demands)
        return machines_in(judge_pool(others, facts, pool), pool)

    def told(other: Value) -> str:
        sides = (str(reading), value_text(other, reading.unit))
        spelling = f" {SPELLINGS[comparison.kind, comparison.order]} "
        return f"`{term.text}` were `{spelling.join(sides if is_left else sides[::-1])}`"

    return _Knob(
        value=None if isinstance(value, Variable) else value,
        others=tuple(_bounds_at(reading, demand.scope, pool)),
        told=told,
        matched=matched,
    )


def _comparisons_in(condition: Condition) -> Iterator[Comparison]:
    assert condition.written is not None, "a policy without mistakes"
    for term in terms_of(condition.written):
        yield from comparisons_of(term.expression)


def _sides_of(comparison: Comparison, readings: dict[str, Reading]) -> Iterator[tuple[Reading, Reading | Value]]:
    """Give each variable of a comparison with what it is compared with."""
    sides = [
        readings[each.name] if isinstance(each, Variable) else each for each in (comparison.left, comparison.right)
    ]
    for one, other in (sides, sides[::-1]):
        if isinstance(one, Reading):
            yield one, other


def _bounds_at(other: Reading | Value, scope: str, pool: IndexedVector) -> Iterator[Value]:
    """Give the values at which a comparison with a literal, or with what the machines say, may turn."""
    if not isinstance(other, Reading):
        yield other
        if isinstance(other, int):
            yield from (each for each in (other - 1, other + 1) if INTEGER_LOWEST <= each <= INTEGER_HIGHEST)
        return
    if other.scope != scope:
        return
    (columns,) = pool.attribute_columns(other.name)
    if other.kind is Kind.STRING:
        yield from columns.strings.values
    for ends in columns.ends if other.kind is Kind.INTEGER else ():
        if ends is not None:
            least, greatest = ends
            # Where a class and the next one above it begin, and for `>` the value before.
            bounds = (least - 1, least, greatest + 1)
            yield from (each for each in bounds if INTEGER_LOWEST <= each <= INTEGER_HIGHEST)


def _with(condition: Condition, term: Term, comparison: Comparison) -> Condition:
    """Give a condition in which one term says something else."""
    assert condition.written is not None, "a policy without mistakes"
    expression = _expression(condition.written, term, comparison)
    return condition_of(expression, condition.readings, text=condition.text, written=condition.written)


def _expression(written: Written, term: Term, comparison: Comparison) -> Expression:
    if isinstance(written, Term):
        return comparison if written is term else written.expression
    parts = tuple([_expression(part, term, comparison) for part in written.parts])
    match written:
        case Compound(joint=Joint.LET):
            return parts[0]
        case Compound(joint=Joint.NOT):
            return Not(parts[0])
        case Compound(joint=joint):
            return Chain(Connective(joint.value), parts)
