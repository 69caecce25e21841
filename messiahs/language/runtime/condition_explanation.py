"""Explain why a condition is true or false over some facts: every comparison with its values (MESSIAHS 5.4).

The result is the compiled condition's own; the parts explain it. A single attribute without a value makes the whole
condition false, so a part that reads it has no truth value, and the other parts are explained nevertheless.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from messiahs.core.model.attributes import Kind, Unit, Value
from messiahs.language.predicate.formatting import format_string
from messiahs.language.predicate.source_places import showable
from messiahs.language.predicate.syntax import uses_of
from messiahs.language.predicate.truth import truth_of
from messiahs.language.runtime.amounts import Amount, Operand, attributes_of
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import Facts, Reading
from messiahs.language.syntax.quantities import shown
from messiahs.language.syntax.written import Compound, Joint, Term, Written

PAPERS_RULE: Final = "one such makes all of it false, also under `not` and `or`"
"""Explanation of attributes without a value (MESSIAHS 5.4)."""


class Finding(StrEnum):
    """Result of a comparison."""

    TRUE = "true"
    FALSE = "false"
    MISSING = "missing"
    MISTYPED = "mistyped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The value of an attribute in the facts; with `is_default` there is none, and the default applies."""

    reading: Reading
    value: Value | None
    is_default: bool = False

    @property
    def is_lacking(self) -> bool:
        """Whether there is no value of the type that is read."""
        if self.reading.is_presence:
            return False
        return not isinstance(self.value, str if self.reading.kind is Kind.STRING else int)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.reading} has no value"
        text = f"{self.reading} is {value_text(self.value, self.reading.unit)}"
        return f"{text} by default" if self.is_default else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """The value of an amount in the facts; None if it has none."""

    amount: Amount
    value: int | None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.amount} is {shown(self.value, self.amount.unit or Unit.NONE)}"
        return f"{self.amount} has no value: it divides by 0, or exceeds 64 bits"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTerm:
    """A comparison, its result, and every attribute that it reads; `let` is the name of the `let` that contains it.

    `computed` are its amounts, those without a value only if all their attributes have one.
    """

    term: Term
    let: str
    finding: Finding
    said: tuple[Said, ...]
    computed: tuple[Computed, ...] = ()

    @property
    def lacking(self) -> tuple[str, ...]:
        """The attributes and amounts without a value of the right type."""
        attributes = [str(said.reading) for said in self.said if said.is_lacking]
        return (*attributes, *(str(each.amount) for each in self.computed if each.value is None))

    @property
    def is_true(self) -> bool | None:
        """Its truth value; None if something in it has no value of the right type."""
        return {Finding.TRUE: True, Finding.FALSE: False}.get(self.finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCompound:
    """Evaluated parts; `is_true` is None if that of a part is."""

    compound: Compound
    is_true: bool | None
    parts: "tuple[JudgedPart, ...]"


JudgedPart = JudgedTerm | JudgedCompound


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A condition over some facts: whether it holds, and the result of each part."""

    condition: Condition
    holds: bool
    whole: JudgedPart

    @property
    def terms(self) -> tuple[JudgedTerm, ...]:
        """Every comparison, in the order of the text."""
        return tuple(_terms(self.whole))

    @property
    def undefined(self) -> tuple[JudgedTerm, ...]:
        """The comparisons of attributes without a value of the right type."""
        return tuple(term for term in self.terms if term.is_true is None)

    @property
    def against(self) -> tuple[JudgedTerm, ...]:
        """Every comparison that makes the condition false, in the order of the text; none if it is true."""
        return () if self.holds else tuple(_against(self.whole, wanted=True))


def explain(condition: Condition, facts: Facts) -> Explanation:
    """Evaluate every part of a condition of a valid policy."""
    assert condition.written is not None, "conditions of invalid files are never evaluated"
    operands = {operand.key: operand for operand in condition.operands}
    whole = _judged(condition.written, operands, facts, let="")
    return Explanation(condition=condition, holds=condition.holds(facts), whole=whole)


def why_false(explanation: Explanation) -> str:
    """Return on one line the comparisons that make it false, with the values found; empty if it holds."""
    texts = [f"{each.term.text} is {_found(each)}" for each in explanation.against]
    return ", ".join(dict.fromkeys(texts))


def values_text(term: JudgedTerm) -> str:
    """Return the text for every attribute and every amount of a comparison."""
    return ", ".join(map(str, (*term.said, *term.computed)))


def value_text(value: Value, unit: Unit) -> str:
    """Format a value as in a policy file."""
    # A stranger chooses the value: characters that end a line or imitate others are escaped.
    return showable(format_string(value)) if isinstance(value, str) else shown(value, unit)


def joined_truth(joint: Joint, truths: Iterable[bool | None]) -> bool | None:
    """Combine the truth values of parts; None if one of them is None."""
    known: list[bool] = []
    for truth in truths:
        if truth is None:
            return None
        known.append(truth)
    match joint:
        case Joint.AND:
            return all(known)
        case Joint.OR:
            return any(known)
        case Joint.XOR:
            return sum(known) % 2 == 1
        case Joint.NOT:
            return not known[0]
        case Joint.LET:
            return known[0]


def _judged(written: Written, operands: Mapping[str, Operand], facts: Facts, *, let: str) -> JudgedPart:
    if isinstance(written, Term):
        return _judged_term(written, operands, facts, let=let)
    parts = tuple([_judged(part, operands, facts, let=let or written.name) for part in written.parts])
    truth = joined_truth(written.joint, (part.is_true for part in parts))
    return JudgedCompound(compound=written, is_true=truth, parts=parts)


def _judged_term(term: Term, operands: Mapping[str, Operand], facts: Facts, *, let: str) -> JudgedTerm:
    used = [operands[key] for key, _ in uses_of(term.expression)]
    said = tuple(_said(reading, facts) for reading in attributes_of(used))
    values = [operand.value_in(facts) for operand in used]
    lacking = [each.value for each in said if each.is_lacking]
    computed = [Computed(amount=each, value=each.value_in(facts)) for each in used if isinstance(each, Amount)]
    if None in lacking:
        finding = Finding.MISSING
    elif lacking:
        finding = Finding.MISTYPED
    elif None in values:
        finding = Finding.MISSING
    else:
        row = tuple(value for value in values if value is not None)
        places = {operand.key: place for place, operand in enumerate(used)}
        finding = Finding.TRUE if truth_of(term.expression, places)(row) else Finding.FALSE
    return JudgedTerm(term=term, let=let, finding=finding, said=said, computed=() if lacking else tuple(computed))


def _said(reading: Reading, facts: Facts) -> Said:
    """Look up an attribute, of either type, or its default."""
    value = facts.get(reading.scope, {}).get(reading.name)
    found = Said(reading=reading, value=value)
    if found.is_lacking and reading.default is not None:
        return Said(reading=reading, value=reading.default, is_default=True)
    return found


def _terms(part: JudgedPart) -> Iterator[JudgedTerm]:
    if isinstance(part, JudgedTerm):
        yield part
        return
    for each in part.parts:
        yield from _terms(each)


def _against(part: JudgedPart, *, wanted: bool) -> Iterator[JudgedTerm]:
    """Yield the comparisons that keep a part from being `wanted`; those without a value always do."""
    if isinstance(part, JudgedTerm):
        if part.is_true is not wanted:
            yield part
        return
    if part.is_true is wanted:
        return
    joint = part.compound.joint
    wanted_below = not wanted if joint is Joint.NOT else wanted
    # With `or` and a true part, only undefined parts count against it; likewise with `not (... and ...)`.
    one_is_enough = joint is (Joint.OR if wanted else Joint.AND)
    is_enough = one_is_enough and any(each.is_true is wanted for each in part.parts)
    for each in part.parts:
        if joint is Joint.XOR:
            yield from _terms(each)
        elif is_enough:
            yield from (term for term in _terms(each) if term.is_true is None)
        else:
            yield from _against(each, wanted=wanted_below)


def _found(judged: JudgedTerm) -> str:
    if judged.finding is Finding.MISTYPED:
        return f"mistyped ({values_text(judged)})"
    values = values_text(judged)
    return f"{judged.finding} ({values})" if values else judged.finding.value
