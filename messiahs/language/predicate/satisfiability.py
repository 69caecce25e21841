"""Decide whether a predicate can be true, given the possible values of each variable (MESSIAHS 5.4).

Comparisons of one variable are one exact set of values. The rest are orders between two variables, and alternatives,
which are tried one after the other. The answer no is certain; the answer yes means that no contradiction was found:
sets with gaps may hide contradictions between orders, and the number of trials is bounded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from messiahs.core.model.attributes import Kind
from messiahs.language.predicate.syntax import (
    Chain,
    Comparison,
    Connective,
    Expression,
    Not,
    Order,
    Variable,
    comparisons_of,
)
from messiahs.language.predicate.truth import OPERATIONS
from messiahs.language.predicate.value_sets import ValueSet, from_on, those, union_of, up_to

Domains = Mapping[str, ValueSet]
"""The possible values of each variable."""

_TRIALS: Final = 500
_ROUNDS: Final = 16
_OPPOSITES: Final = {
    Order.LESS: Order.GREATER_OR_EQUAL,
    Order.LESS_OR_EQUAL: Order.GREATER,
    Order.EQUAL: Order.NOT_EQUAL,
    Order.NOT_EQUAL: Order.EQUAL,
    Order.GREATER_OR_EQUAL: Order.LESS,
    Order.GREATER: Order.LESS_OR_EQUAL,
}
_MIRRORED: Final = {
    Order.LESS: Order.GREATER,
    Order.LESS_OR_EQUAL: Order.GREATER_OR_EQUAL,
    Order.EQUAL: Order.EQUAL,
    Order.NOT_EQUAL: Order.NOT_EQUAL,
    Order.GREATER_OR_EQUAL: Order.LESS_OR_EQUAL,
    Order.GREATER: Order.LESS,
}


@dataclass(frozen=True, slots=True)
class _Within:
    """A variable has one of some values."""

    name: str
    values: ValueSet


@dataclass(frozen=True, slots=True)
class _Ordered:
    """One variable is less than another, or less than or equal to it."""

    left: str
    right: str
    kind: Kind
    is_strict: bool = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class _All:
    """All terms hold."""

    terms: "tuple[_Formula, ...]"


@dataclass(frozen=True, slots=True)
class _Either:
    """At least one term holds."""

    terms: "tuple[_Formula, ...]"


_Formula = _Within | _Ordered | _All | _Either
_TRUE: Final = _All(())
_FALSE: Final = _Either(())


@dataclass(slots=True)
class _Trial:
    """One combination of alternatives (mutable)."""

    sets: dict[str, ValueSet]
    orders: set[_Ordered] = field(default_factory=set)
    todo: list[_Formula] = field(default_factory=list)
    alternatives: list[_Either] = field(default_factory=list)


@dataclass(slots=True)
class Effort:
    """The remaining effort, in steps of some microseconds (mutable)."""

    left: int

    def spend(self, steps: int) -> bool:
        """Use up some effort; False if none is left."""
        self.left -= steps
        return self.left > 0


def can_be_true(expression: Expression, domains: Domains, effort: Effort, /) -> bool:
    """Return whether some values make an expression true; True also if it is too complex to decide."""
    forming = _Forming(domains)
    if not effort.spend(sum(1 for _ in comparisons_of(expression))):
        return True
    waiting = [_Trial(sets={}, todo=[forming.formula(expression, is_wanted=True)])]
    for _ in range(_TRIALS):
        if not waiting:
            return False
        trial = waiting.pop()
        is_possible = _narrowed(trial, domains)
        if not effort.spend(1 + len(trial.sets) + 4 * len(trial.orders) + len(trial.alternatives)):
            return True
        if not is_possible:
            continue
        if not trial.alternatives:
            return True
        alternative = min(trial.alternatives, key=lambda each: len(each.terms))
        others = [each for each in trial.alternatives if each is not alternative]
        waiting += [
            _Trial(sets=dict(trial.sets), orders=set(trial.orders), todo=[term, *others])
            for term in reversed(alternative.terms)
        ]
    return True


@dataclass(slots=True)
class _Forming:
    """Converts expressions to formulas, each part once per sign (mutable)."""

    domains: Domains
    known: dict[tuple[Expression, bool], _Formula] = field(default_factory=dict)

    def formula(self, expression: Expression, *, is_wanted: bool) -> _Formula:
        """Return the formula for an expression being true, or false if `is_wanted` is False."""
        key = (expression, is_wanted)
        if key not in self.known:
            self.known[key] = self._new(expression, is_wanted=is_wanted)
        return self.known[key]

    def _new(self, expression: Expression, *, is_wanted: bool) -> _Formula:
        match expression:
            case Comparison():
                order = expression.order if is_wanted else _OPPOSITES[expression.order]
                return self._comparison(expression, order)
            case Not(operand):
                return self.formula(operand, is_wanted=not is_wanted)
            case Chain(Connective.XOR, terms):
                return self._exclusion(terms, is_wanted=is_wanted)
            case Chain(connective, terms):
                parts = [self.formula(term, is_wanted=is_wanted) for term in terms]
                return self._joined(parts, is_all=(connective is Connective.AND) is is_wanted)

    def _comparison(self, comparison: Comparison, order: Order) -> _Formula:
        match comparison.left, comparison.right:
            case Variable(name), Variable(other):
                return self._order(name, other, order, kind=comparison.kind)
            case Variable(name), (int() | str()) as literal:
                return self._within(name, those(order, literal))
            case (int() | str()) as literal, Variable(name):
                return self._within(name, those(_MIRRORED[order], literal))
            case one, other:
                return _TRUE if OPERATIONS[order](one, other) else _FALSE

    def _order(self, left: str, right: str, order: Order, *, kind: Kind) -> _Formula:
        if left == right:
            return _FALSE if order in {Order.LESS, Order.GREATER, Order.NOT_EQUAL} else _TRUE
        up, strictly_up = [_Ordered(left, right, kind, is_strict=is_strict) for is_strict in (False, True)]
        down, strictly_down = [_Ordered(right, left, kind, is_strict=is_strict) for is_strict in (False, True)]
        formulas: dict[Order, _Formula] = {
            Order.LESS: strictly_up,
            Order.LESS_OR_EQUAL: up,
            Order.EQUAL: _All((up, down)),
            Order.NOT_EQUAL: _Either((strictly_up, strictly_down)),
            Order.GREATER_OR_EQUAL: down,
            Order.GREATER: strictly_down,
        }
        return formulas[order]

    def _within(self, name: str, values: ValueSet) -> _Formula:
        domain = self.domains[name]
        left = values & domain
        return _FALSE if not left else _TRUE if left == domain else _Within(name, left)

    def _exclusion(self, terms: tuple[Expression, ...], *, is_wanted: bool) -> _Formula:
        if len(terms) <= 1:
            return self.formula(terms[0], is_wanted=is_wanted) if terms else _FALSE if is_wanted else _TRUE
        middle = len(terms) // 2
        one, two = Chain(Connective.XOR, terms[:middle]), Chain(Connective.XOR, terms[middle:])
        ways = [
            self._joined(
                [self.formula(one, is_wanted=sign), self.formula(two, is_wanted=sign is not is_wanted)], is_all=True
            )
            for sign in (True, False)
        ]
        return self._joined(ways, is_all=False)

    def _joined(self, parts: list[_Formula], *, is_all: bool) -> _Formula:
        """Join formulas: constants are removed, and terms about one variable become one set."""
        neutral, deciding = (_TRUE, _FALSE) if is_all else (_FALSE, _TRUE)
        sets: dict[str, list[ValueSet]] = {}
        others: list[_Formula] = []
        for part in _flat(parts, is_all=is_all):
            if part == deciding:
                return deciding
            if isinstance(part, _Within):
                sets.setdefault(part.name, []).append(part.values)
            elif part != neutral and part not in others:
                others.append(part)
        for name, values in sets.items():
            joined = _shared_by(values) if is_all else union_of(values)
            if is_all and not joined:
                return _FALSE
            if not is_all and joined == self.domains[name]:
                return _TRUE
            others.append(_Within(name, joined))
        if len(others) == 1:
            return others[0]
        return _All(tuple(others)) if is_all else _Either(tuple(others))


def _flat(parts: Iterable[_Formula], *, is_all: bool) -> Iterable[_Formula]:
    for part in parts:
        if isinstance(part, _All if is_all else _Either) and part.terms:
            yield from part.terms
        else:
            yield part


def _shared_by(sets: list[ValueSet]) -> ValueSet:
    common = sets[0]
    for each in sets[1:]:
        common &= each
    return common


def _narrowed(trial: _Trial, domains: Domains) -> bool:
    """Apply all terms except alternatives; False if they contradict each other."""
    while trial.todo:
        match trial.todo.pop():
            case _Within(name, values):
                trial.sets[name] = trial.sets[name] & values if name in trial.sets else values
                if not trial.sets[name]:
                    return False
            case _Ordered() as order:
                trial.orders.add(order)
            case _All(terms):
                trial.todo.extend(terms)
            case _Either() as alternative:
                trial.alternatives.append(alternative)
    if trial.orders and (_is_circular(trial.orders) or not _orders_fit(trial, domains)):
        return False
    return _alternatives_fit(trial)


def _alternatives_fit(trial: _Trial) -> bool:
    """Remove alternatives that the sets exclude."""
    kept: list[_Either] = []
    for alternative in trial.alternatives:
        terms = tuple(term for term in alternative.terms if not _is_excluded(term, trial))
        if not terms:
            return False
        kept.append(_Either(terms))
    trial.alternatives = kept
    return True


def _is_excluded(formula: _Formula, trial: _Trial) -> bool:
    match formula:
        case _Within(name, values):
            return name in trial.sets and not trial.sets[name] & values
        case _All(terms):
            return any(_is_excluded(term, trial) for term in terms)
        case _:
            return False


def _is_circular(orders: set[_Ordered]) -> bool:
    """Return whether a variable would have to be less than itself."""
    above: dict[str, set[str]] = {}
    for order in orders:
        above.setdefault(order.left, set()).add(order.right)
    return any(order.is_strict and order.left in _reached(order.right, above) for order in orders)


def _reached(start: str, above: Mapping[str, set[str]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = above.get(waiting.pop(), set()) - reached
        reached |= new
        waiting.extend(new)
    return reached


def _orders_fit(trial: _Trial, domains: Domains) -> bool:
    """Narrow the sets of ordered variables, until the bounds no longer change or for a fixed number of rounds."""
    orders = sorted(trial.orders, key=lambda order: (order.left, order.right, order.is_strict))
    for order in orders:
        for name in (order.left, order.right):
            trial.sets.setdefault(name, domains[name])
    for _ in range(_ROUNDS):
        earlier = dict(trial.sets)
        for order in orders:
            one, two = trial.sets[order.left], trial.sets[order.right]
            one &= up_to(two.last, is_strict=order.is_strict, kind=order.kind)
            if not one:
                return False
            two &= from_on(one.first, is_strict=order.is_strict, kind=order.kind)
            if not two:
                return False
            if _Ordered(order.right, order.left, order.kind, is_strict=False) in trial.orders:
                one = two = one & two
                if not one:
                    return False
            trial.sets[order.left], trial.sets[order.right] = one, two
        if trial.sets == earlier:
            break
    return True
