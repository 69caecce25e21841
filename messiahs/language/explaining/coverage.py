"""Rules of a policy that no trial has seen both true and false, so that a mistake in them would go unnoticed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Final

from messiahs.core.vectors.columns import ClassSet
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.candidate_ranking import Most, keys_of
from messiahs.language.runtime.class_explanation import ClassPart
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.condition_explanation import JudgedCompound, JudgedPart
from messiahs.language.runtime.conditions import Condition, Conditional
from messiahs.language.runtime.rule_explanation import ExplainedBlock, ExplainedRule
from messiahs.language.syntax.written import Compound, Joint

Sighting = tuple[int, bool]
"""Offset in the file where a rule begins, and the truth value that was seen."""

_BOTH: Final = (True, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A part of a policy that is true or false; `start` is its offset in the file, in characters from 0."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A rule, and the truth values that were never seen."""

    rule: Rule
    never: tuple[bool, ...]


def rules_of(policy: CompiledPolicy, /) -> tuple[Rule, ...]:
    """Return every rule of a policy, in the order of the file; each `let` counts as a rule."""
    rules = [Rule(text=text, start=condition.start) for text, condition in conditions_in(policy)]
    for block in policy.acceptance.blocks:
        rules += [Rule(text=limit.rule, start=limit.start) for limit in block.limits]
        rules += [Rule(text=limit.rule, start=limit.start) for limit in block.usage_limits]
    rules += [Rule(text=f"let {name}", start=start) for name, start in policy.lets]
    return tuple(sorted({rule.start: rule for rule in rules}.values(), key=lambda rule: rule.start))


def unseen_rules(policy: CompiledPolicy, seen: Iterable[Sighting], /) -> tuple[Unseen, ...]:
    """Return the rules that were not seen both true and false."""
    known = frozenset(seen)
    missing = ((rule, tuple(each for each in _BOTH if (rule.start, each) not in known)) for rule in rules_of(policy))
    return tuple(Unseen(rule=rule, never=never) for rule, never in missing if never)


def sightings_in(blocks: Iterable[ExplainedBlock], /) -> Iterator[Sighting]:
    """Yield the truth values of the rules, and of the `let`s in them, in some explanations."""
    for block in blocks:
        for rule in block.rules:
            yield rule.start, rule.is_true
            yield from _lets_in(rule)


def _lets_in(rule: ExplainedRule) -> Iterator[Sighting]:
    if rule.explanation is not None:
        yield from _judged_lets(rule.explanation.whole)
    if rule.classes is not None:
        yield from _class_lets(rule.classes)


def _judged_lets(part: JudgedPart) -> Iterator[Sighting]:
    if not isinstance(part, JudgedCompound):
        return
    if part.compound.joint is Joint.LET and part.is_true is not None:
        yield part.compound.start, part.is_true
    for each in part.parts:
        yield from _judged_lets(each)


def _class_lets(part: ClassPart) -> Iterator[Sighting]:
    if isinstance(part.written, Compound) and part.written.joint is Joint.LET:
        could: ClassSet = part.judged[1]
        yield part.written.start, could != 0
    for each in part.parts:
        yield from _class_lets(each)


def amounts_in(policy: CompiledPolicy, /) -> Iterator[Amount]:
    """Yield every amount of a policy: the amounts that attributes are set to, and the keys of orders."""
    for setting in policy.disclosure.advertising.settings:
        yield from (amount for amount, _ in setting.choices)
        yield setting.otherwise
    for key in (*keys_of(policy.location), *keys_of(policy.selection)):
        if isinstance(key, Most):
            yield key.amount


def conditions_in(policy: CompiledPolicy, /) -> Iterator[tuple[str, Condition]]:
    """Yield every condition with its rule; if a rule has several conditions, with the part of the rule around it."""
    for value in (getattr(policy, each.name) for each in fields(policy)):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Conditional):
                yield from part.conditions()
