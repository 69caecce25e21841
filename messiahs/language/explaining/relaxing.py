"""The smallest change of a single value that makes more machines of a pool match: of a fact, or of a literal in a rule.

Tries the bounds of the pool's classes and the literals of the rules; values between two of them change nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, Kind, Value
from messiahs.core.vectors.columns import Judged
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
from messiahs.language.runtime.amounts import Amount, Operand
from messiahs.language.runtime.class_explanation import Machines, machines_in
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.conditions import Condition, condition_of
from messiahs.language.runtime.readings import Facts, Reading
from messiahs.language.syntax.written import Compound, Joint, Term, Written, terms_of

_TRIED_LIMIT: Final = 200
"""Maximum number of values tried on each side, the nearest first."""


@dataclass(slots=True)
class Effort:
    """How many comparisons may still be evaluated over the classes of a pool (mutable)."""

    left: int

    def spend(self, comparisons: int) -> bool:
        """Return whether so many may be evaluated, which then counts."""
        if comparisons > self.left:
            return False
        self.left -= comparisons
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Text of a change, and the machines that would match after it."""

    text: str
    machines: Machines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relaxation:
    """A value that could be changed: its present value, the other values, and the matches for each.

    For each match, so many `comparisons` are evaluated.
    """

    value: Value | None
    others: tuple[Value, ...]
    text_for: Callable[[Value], str]
    matched: Callable[[Value], Machines]
    comparisons: int


def changes_for(
    demands: tuple[Demand, ...],
    facts: Facts,
    pool: IndexedVector,
    /,
    *,
    effort: Effort | None = None,
    fixed: Collection[str] = (),
) -> tuple[Change, ...]:
    """Return for each fact and each literal the smallest change that helps; the most effective change comes first.

    What an `effort` does not suffice for is not tried, nor are other literals for the attributes `fixed`.
    """
    now = machines_in(judge_pool(demands, facts, pool), pool)
    knobs = [*_facts_in(demands, facts, pool), *_literals_in(demands, facts, pool, fixed)]
    changes = {change.text: change for knob in knobs for change in _nearest(knob, now, effort)}
    return tuple(sorted(changes.values(), key=lambda each: (-each.machines.could, -each.machines.surely, each.text)))


def _nearest(knob: _Relaxation, now: Machines, effort: Effort | None) -> Iterator[Change]:
    """Yield the nearest lower and higher number that helps; for a string or a missing value, the best value."""
    numbers = sorted({each for each in knob.others if isinstance(each, int)})
    value = knob.value
    if isinstance(value, int):
        lesser = [each for each in reversed(numbers) if each < value]
        greater = [each for each in numbers if each > value]
        for side in (lesser, greater):
            tried = _tried(knob, side, effort)
            found = next(((each, machines) for each, machines in tried if _is_more(machines, now)), None)
            if found is not None:
                yield Change(text=knob.text_for(found[0]), machines=found[1])
        return
    # Of equally good values, the first: literals precede their neighbors.
    tried = _tried(knob, knob.others, effort)
    helping = [(each, machines) for each, machines in tried if _is_more(machines, now)]
    if helping:
        best, machines = max(helping, key=lambda each: (each[1].could, each[1].surely))
        yield Change(text=knob.text_for(best), machines=machines)


def _tried(knob: _Relaxation, values: Iterable[Value], effort: Effort | None) -> Iterator[tuple[Value, Machines]]:
    """Yield the first values with their matches, as far as the effort suffices."""
    for value in islice(values, _TRIED_LIMIT):
        if effort is not None and not effort.spend(knob.comparisons):
            return
        yield value, knob.matched(value)


def _is_more(machines: Machines, now: Machines) -> bool:
    return machines.could > now.could or (machines.could == now.could and machines.surely > now.surely)


def _facts_in(demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector) -> Iterator[_Relaxation]:
    found: dict[Reading, dict[Value, None]] = {}
    for demand in demands:
        for condition in demand.conditions:
            operands = {operand.key: operand for operand in condition.operands}
            for comparison in _comparisons_in(condition):
                for reading, other in _sides_of(comparison, operands):
                    if reading.scope != demand.scope and not reading.is_presence and reading.pattern is None:
                        plain = replace(reading, default=None)
                        found.setdefault(plain, {}).update(dict.fromkeys(_bounds_at(other, demand.scope, pool)))
    for reading, bounds in found.items():
        yield _fact(reading, bounds, demands, facts, pool=pool)


def _fact(
    reading: Reading, bounds: Iterable[Value], demands: tuple[Demand, ...], facts: Facts, *, pool: IndexedVector
) -> _Relaxation:
    value = reading.value_in(facts)
    said = facts.get(reading.scope, {})
    concerned = [each for each in demands if _reads(each, reading)]
    others = judge_pool([each for each in demands if not _reads(each, reading)], facts, pool)

    def matched(other: Value) -> Machines:
        changed = {**facts, reading.scope: {**said, reading.name: other}}
        return machines_in(_both(others, judge_pool(concerned, changed, pool)), pool)

    def text_for(other: Value) -> str:
        written = value_text(other, reading.unit)
        if not isinstance(value, int) or not isinstance(other, int):
            return f"{reading} were {written}"
        return f"{reading} were at {'most' if other < value else 'least'} {written}"

    comparisons = sum(map(_size_of, concerned))
    return _Relaxation(value=value, others=tuple(bounds), text_for=text_for, matched=matched, comparisons=comparisons)


def _reads(demand: Demand, reading: Reading) -> bool:
    read = (each for condition in demand.conditions for each in condition.readings)
    return any((each.scope, each.name) == (reading.scope, reading.name) for each in read)


def _size_of(demand: Demand) -> int:
    return sum(1 for condition in demand.conditions for _ in _comparisons_in(condition))


def _both(one: Judged, other: Judged) -> Judged:
    return one[0] & other[0], one[1] & other[1]


def _literals_in(
    demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector, fixed: Collection[str], /
) -> Iterator[_Relaxation]:
    for demand in demands:
        for condition in demand.conditions:
            operands = {operand.key: operand for operand in condition.operands}
            assert condition.written is not None, "the policy is valid"
            for term in terms_of(condition.written):
                comparison = term.expression
                if not isinstance(comparison, Comparison):
                    continue
                for reading, other in _sides_of(comparison, operands):
                    is_literal = isinstance(other, int | str) and reading.pattern is None and not reading.is_presence
                    if is_literal and reading.scope == demand.scope and reading.name not in fixed:
                        yield _relaxed_literal(term, comparison, demand, (demands, facts, pool), reading=reading)


def _relaxed_literal(
    term: Term,
    comparison: Comparison,
    demand: Demand,
    asked: tuple[tuple[Demand, ...], Facts, IndexedVector],
    *,
    reading: Reading,
) -> _Relaxation:
    demands, facts, pool = asked
    is_left = isinstance(comparison.left, Variable)
    value = comparison.right if is_left else comparison.left
    rest = judge_pool([each for each in demands if each is not demand], facts, pool)

    def changed(other: Value) -> Comparison:
        return replace(comparison, right=other) if is_left else replace(comparison, left=other)

    def matched(other: Value) -> Machines:
        swapped = replace(demand, conditions=tuple(_with(each, term, changed(other)) for each in demand.conditions))
        return machines_in(_both(rest, judge_pool([swapped], facts, pool)), pool)

    def text_for(other: Value) -> str:
        sides = (str(reading), value_text(other, reading.unit))
        spelling = f" {SPELLINGS[comparison.kind, comparison.order]} "
        return f"`{term.text}` were `{spelling.join(sides if is_left else sides[::-1])}`"

    return _Relaxation(
        value=None if isinstance(value, Variable) else value,
        others=tuple(_bounds_at(reading, demand.scope, pool)),
        text_for=text_for,
        matched=matched,
        comparisons=_size_of(demand),
    )


def _comparisons_in(condition: Condition) -> Iterator[Comparison]:
    assert condition.written is not None, "the policy is valid"
    for term in terms_of(condition.written):
        yield from comparisons_of(term.expression)


def _sides_of(comparison: Comparison, operands: dict[str, Operand]) -> Iterator[tuple[Reading, Operand | Value]]:
    """Yield each attribute that is a side of a comparison with the other side."""
    sides = [
        operands[each.name] if isinstance(each, Variable) else each for each in (comparison.left, comparison.right)
    ]
    for one, other in (sides, sides[::-1]):
        if isinstance(one, Reading):
            yield one, other


def _bounds_at(other: Operand | Value, scope: str, pool: IndexedVector) -> Iterator[Value]:
    """Yield the values at which a comparison with a literal, or an attribute of machines, may change its result.

    There are none for a sum or a product: which values of its attributes would help is not tried.
    """
    if isinstance(other, Amount):
        return
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
            # The lower bounds of a class and of the next class above it, and for `>` the value before.
            bounds = (least - 1, least, greatest + 1)
            yield from (each for each in bounds if INTEGER_LOWEST <= each <= INTEGER_HIGHEST)


def _with(condition: Condition, term: Term, comparison: Comparison) -> Condition:
    """Return a condition with one term replaced."""
    assert condition.written is not None, "the policy is valid"
    expression = _expression(condition.written, term, comparison)
    return condition_of(expression, condition.operands, text=condition.text, written=condition.written)


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
