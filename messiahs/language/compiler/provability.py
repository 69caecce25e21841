"""Decide whether predicates are never true, always true, or true together, whatever the facts are (MESSIAHS 5.4).

All three reduce to one question: can an expression be true for the values that the catalogue and the declarations
allow? The readings of one attribute depend on each other, and these dependencies are added to the expression: where
`$x` must be set, `$x default 1` is `$x` and `has $x` is true, and `$x like "a*"` is a range of strings.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from messiahs.core.model.attributes import Attribute, Kind, Value
from messiahs.language.predicate.satisfiability import Effort, can_be_true
from messiahs.language.predicate.syntax import (
    ALWAYS,
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Order,
    Variable,
    comparisons_of,
    uses_of,
)
from messiahs.language.predicate.value_sets import ValueSet, everything, integers, only, union_of
from messiahs.language.runtime.amounts import Amount, Operand
from messiahs.language.runtime.readings import Group, Reading, matches
from messiahs.language.syntax.literals import range_of

AttributeOf = Callable[[Reading], Attribute | None]
"""Returns an attribute; None if it is unknown."""

_LAST_CHARACTER: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """Answers questions about predicates; once the effort is used up, every expression may be true or false."""

    attribute_of: AttributeOf
    effort: Effort

    def is_never_true(self, expression: Expression, operands: Sequence[Operand], /) -> bool:
        """Return whether no values make an expression over the keys of operands true.

        Amounts are taken as independent of each other and of their attributes; one that never has a value makes all of
        it false.
        """
        keys = {name for name, _ in uses_of(expression)}
        used = [operand for operand in operands if operand.key in keys]
        groups = _by_attribute(each for each in used if isinstance(each, Reading))
        amounts = [each for each in used if isinstance(each, Amount)]
        if not self.effort.spend(sum(map(len, groups)) + sum(each.operations for each in amounts)):
            return False
        sides = [side for own in groups for side in self._sides(expression, own)]
        domains = {reading.key: self._domain(reading) for own in groups for reading in own}
        domains |= {amount.key: self._amounts(amount) for amount in amounts}
        if not all(domains.values()):
            return True
        return not can_be_true(Chain(Connective.AND, (*sides, expression)), domains, self.effort)

    def is_always_true(self, expression: Expression, operands: Sequence[Operand], /) -> bool:
        """Return whether an expression is true for all values, provided that every operand has one."""
        return self.is_never_true(Not(expression), operands)

    def _amounts(self, amount: Amount) -> ValueSet:
        domains = [self._domain(reading) for reading in amount.readings]
        span = amount.calculate([(each.first[0], each.last[0] - 1, True) for each in domains])
        return integers(span[0], span[1]) if span is not None else integers(1, 0)

    def _domain(self, reading: Reading) -> ValueSet:
        if isinstance(reading.pattern, str) and not reading.pattern.strip("*"):
            return integers(int(bool(reading.pattern)), 1)
        if reading.is_presence or reading.pattern is not None:
            return integers(0, 1)
        values = _values_of(self.attribute_of(reading), reading.kind)
        return values if reading.default is None else values | only(reading.default)

    def _sides(self, expression: Expression, readings: list[Reading]) -> Iterable[Expression]:
        """Yield the dependencies between the readings of one attribute."""
        plain = [reading for reading in readings if _is_plain(reading)]
        must_be_set = any(reading.default is None and not reading.is_presence for reading in readings)
        if plain:
            yield from _likenesses(plain[0], readings, _literals_beside(plain[0], expression))
        if must_be_set:
            yield from (_is(reading, 1) for reading in readings if reading.is_presence)
        if plain:
            yield from (_same(plain[0], reading) for reading in readings if _is_filled(reading))
        elif not must_be_set and len(readings) > 1:
            yield _either(_all(_as_set(readings)), _all(_as_unset(readings)))


def _values_of(attribute: Attribute | None, kind: Kind) -> ValueSet:
    if attribute is None or attribute.kind is not kind:
        return everything(kind)
    if attribute.choices:
        return union_of(map(only, attribute.choices))
    return everything(kind) if kind is Kind.STRING else integers(*range_of(attribute))


def _by_attribute(readings: Iterable[Reading]) -> list[list[Reading]]:
    """Group readings by attribute; a group with a pattern also contains the plain reading of the attribute."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        own = groups.setdefault((reading.scope, reading.name), [])
        own.append(reading)
        if reading.pattern is not None and reading.default is None:
            own.append(Reading(scope=reading.scope, name=reading.name, kind=reading.kind))
    return [list({reading.key: reading for reading in own}.values()) for own in groups.values()]


def _is_plain(reading: Reading) -> bool:
    return reading.default is None and reading.pattern is None and not reading.is_presence


def _is_filled(reading: Reading) -> bool:
    return reading.default is not None and reading.pattern is None


def _as_set(readings: list[Reading]) -> Iterable[Expression]:
    """Yield what holds where an attribute is set, even if it is only read with a default."""
    filled = [reading for reading in readings if _is_filled(reading)]
    yield from (_is(reading, 1) for reading in readings if reading.is_presence)
    yield from (_same(filled[0], other) for other in filled[1:] if other.kind is filled[0].kind)


def _as_unset(readings: list[Reading]) -> Iterable[Expression]:
    for reading in readings:
        if reading.is_presence:
            yield _is(reading, 0)
        elif reading.default is not None and reading.pattern is not None:
            yield _is(reading, int(matches(reading.pattern, str(reading.default))))
        elif reading.default is not None:
            yield _is(reading, reading.default)


def _literals_beside(reading: Reading, expression: Expression) -> tuple[str, ...]:
    """Return the texts that a reading is compared with."""
    pairs = [(each.left, each.right) for each in comparisons_of(expression)]
    sides = [side for pair in pairs if Variable(reading.key) in pair for side in pair]
    return tuple(dict.fromkeys(side for side in sides if isinstance(side, str)))


def _likenesses(plain: Reading, readings: list[Reading], texts: tuple[str, ...]) -> Iterable[Expression]:
    """Yield what patterns mean for the attribute: the range of its strings, and which of the given texts match."""
    for reading in readings:
        if reading.pattern is None or plain.kind is not Kind.STRING:
            continue
        # Of a group nothing is known but which of the given texts are in it.
        pattern = "*" if isinstance(reading.pattern, Group) else reading.pattern
        start = pattern.split("*")[0]
        for order, end in ((Order.GREATER_OR_EQUAL, start), (Order.LESS, _behind(start))):
            if end:
                yield _either(_is(reading, 0), _compared(plain, order, end))
        if "*" not in pattern:
            texts = (*texts, pattern)
        for text in texts:
            is_like = _is(reading, int(matches(reading.pattern, text)))
            yield _either(_compared(plain, Order.NOT_EQUAL, text), is_like)
        if "*" not in pattern:
            yield _either(_is(reading, 0), _compared(plain, Order.EQUAL, pattern))


def _behind(start: str) -> str:
    """Return the lowest text after all texts with this prefix; empty if there is none."""
    stem = start.rstrip(_LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else ""


def _is(reading: Reading, value: Value) -> Expression:
    return _compared(reading, Order.EQUAL, value)


def _compared(reading: Reading, order: Order, value: Value) -> Expression:
    kind = Kind.STRING if isinstance(value, str) else Kind.INTEGER
    return Comparison(kind=kind, left=Variable(reading.key), order=order, right=value)


def _same(one: Reading, other: Reading) -> Expression:
    if one.kind is not other.kind:
        return ALWAYS
    return Comparison(kind=one.kind, left=Variable(one.key), order=Order.EQUAL, right=Variable(other.key))


def _either(*terms: Expression) -> Expression:
    return Chain(Connective.OR, terms)


def _all(terms: Iterable[Expression]) -> Expression:
    return Chain(Connective.AND, tuple(terms))
