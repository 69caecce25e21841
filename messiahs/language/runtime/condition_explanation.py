"""Why a condition is true or false over some facts: every comparison with the values that it found (MESSIAHS 5.4).

The value of the whole is the compiled condition's own; what is said of its parts explains it. One attribute without a
value makes the whole false, so a part that needs it has no truth, and the others are told all the same.
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
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import Facts, Reading
from messiahs.language.syntax.quantities import shown
from messiahs.language.syntax.written import Compound, Joint, Term, Written

PAPERS_RULE: Final = "one such makes all of it false, also under `not` and `or`"
"""What to say of attributes without a value (MESSIAHS 5.4)."""


class Finding(StrEnum):
    """What came of a comparison."""

    TRUE = "true"
    FALSE = "false"
    MISSING = "missing"
    MISTYPED = "mistyped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the facts say of an attribute; with `is_default` nothing, so that the default counts."""

    reading: Reading
    value: Value | None
    is_default: bool = False

    @property
    def is_lacking(self) -> bool:
        """Say whether nothing is there of the type that is read."""
        if self.reading.is_presence:
            return False
        return not isinstance(self.value, str if self.reading.kind is Kind.STRING else int)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.reading} has no value"
        told = f"{self.reading} is {value_text(self.value, self.reading.unit)}"
        return f"{told} by default" if self.is_default else told


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTerm:
    """A comparison and what came of it, with every attribute that it reads; `let` is the name that it stands behind."""

    term: Term
    let: str
    finding: Finding
    said: tuple[Said, ...]

    @property
    def is_true(self) -> bool | None:
        """Its value; None if an attribute has no value of the right type."""
        return {Finding.TRUE: True, Finding.FALSE: False}.get(self.finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCompound:
    """Judged parts; `is_true` is None if one of them is."""

    compound: Compound
    is_true: bool | None
    parts: "tuple[JudgedPart, ...]"


JudgedPart = JudgedTerm | JudgedCompound


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A condition over some facts: whether it holds, and how each part of it was judged."""

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
        """Every comparison because of which the condition is false, in the order of the text; none if it is true."""
        return () if self.holds else tuple(_against(self.whole, wanted=True))


def explain(condition: Condition, facts: Facts) -> Explanation:
    """Judge every part of a condition of a policy without mistakes."""
    assert condition.written is not None, "a condition of a file with mistakes decides nothing"
    readings = {reading.key: reading for reading in condition.readings}
    whole = _judged(condition.written, readings, facts, let="")
    return Explanation(condition=condition, holds=condition.holds(facts), whole=whole)


def why_false(explanation: Explanation) -> str:
    """Say on one line which comparisons are against it, with the values found; empty if it holds."""
    told = [f"{each.term.text} is {_found(each)}" for each in explanation.against]
    return ", ".join(dict.fromkeys(told))


def values_text(term: JudgedTerm) -> str:
    """Say what every attribute of a comparison is."""
    return ", ".join(map(str, term.said))


def value_text(value: Value, unit: Unit) -> str:
    """Write a value as one would in a policy file."""
    # A stranger chooses it: what could end a line or look like something else is written as what it is.
    return showable(format_string(value)) if isinstance(value, str) else shown(value, unit)


def joined_truth(joint: Joint, truths: Iterable[bool | None]) -> bool | None:
    """Give what parts make together; None if one of them has no truth."""
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


def _judged(written: Written, readings: Mapping[str, Reading], facts: Facts, *, let: str) -> JudgedPart:
    if isinstance(written, Term):
        return _judged_term(written, readings, facts, let=let)
    parts = tuple([_judged(part, readings, facts, let=let or written.name) for part in written.parts])
    truth = joined_truth(written.joint, (part.is_true for part in parts))
    return JudgedCompound(compound=written, is_true=truth, parts=parts)


def _judged_term(term: Term, readings: Mapping[str, Reading], facts: Facts, *, let: str) -> JudgedTerm:
    used = [readings[key] for key, _ in uses_of(term.expression)]
    said = tuple(_said(reading, facts) for reading in used)
    values = [reading.value_in(facts) for reading in used]
    if any(each.value is None for each in said if each.is_lacking):
        finding = Finding.MISSING
    elif None in values:
        finding = Finding.MISTYPED
    else:
        row = tuple(value for value in values if value is not None)
        places = {reading.key: place for place, reading in enumerate(used)}
        finding = Finding.TRUE if truth_of(term.expression, places)(row) else Finding.FALSE
    return JudgedTerm(term=term, let=let, finding=finding, said=said)


def _said(reading: Reading, facts: Facts) -> Said:
    """Say what is there, in whatever type, or the default."""
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
    """Give the comparisons that keep a part from being what it should be; those without a value always do."""
    if isinstance(part, JudgedTerm):
        if part.is_true is not wanted:
            yield part
        return
    if part.is_true is wanted:
        return
    joint = part.compound.joint
    wanted_below = not wanted if joint is Joint.NOT else wanted
    # Of an `or` in which one part is true, only what has no value is against it; so with `not (... and ...)`.
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
