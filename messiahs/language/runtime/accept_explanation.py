"""Why `accept` decided as it did: every rule of the block is judged, not only those up to the first that refuses."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.policies import Accepted, AcceptQuery
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.accept_rules import (
    AcceptBlock,
    Limit,
    Requirement,
    facts_of,
    is_true_for,
    slots_of,
)
from messiahs.language.runtime.class_explanation import ClassPart, explain_classes, machines_in
from messiahs.language.runtime.condition_explanation import Explanation, explain, why_false
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, Facts

_WHY_LIMIT: Final = 1000
"""In characters: it is logged and stored for every refusal, and a stranger chooses the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule as it was written, where in the file it begins (counted from 0), and whether it is true.

    A limit is true while it is not reached; `note` says what no comparison does. `classes` are judged in
    place of the own machine where there is none.
    """

    text: str
    start: int
    is_true: bool
    explanation: Explanation | None = None
    note: str = ""
    classes: ClassPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedBlock:
    """A block of a policy, what it came to, and its rules in the order in which they are judged."""

    head: str
    start: int
    verdict: str
    rules: tuple[ExplainedRule, ...]


def explain_accept(block: AcceptBlock, query: AcceptQuery, /) -> ExplainedBlock:
    """Judge every rule of an `accept` block for a request, whoever made it."""
    facts = facts_of(query)
    rules = [_requirement(each, query, facts) for each in (*block.requirements, *block.occasions)]
    rules += [_limit(each, query) for each in block.limits]
    verdict = "accepted" if isinstance(block.judge(query), Accepted) else "refused"
    return ExplainedBlock(head=block.head, start=block.start, verdict=verdict, rules=tuple(rules))


def explain_rule(condition: Condition, text: str, facts: Facts, /) -> ExplainedRule:
    """Judge the condition of a rule."""
    explanation = explain(condition, facts)
    return ExplainedRule(text=text, start=condition.start, is_true=explanation.holds, explanation=explanation)


def why_refused(block: AcceptBlock, query: AcceptQuery, /) -> str:
    """Say on one line, for the owner, every rule that is against a request and the values found; empty if none is."""
    facts = facts_of(query)
    # Whatever a stranger sends may end here, so only what is against it is looked at closely.
    against = [each for each in block.requirements if not is_true_for(each.condition, query, facts)]
    if not any(is_true_for(each.condition, query, facts) for each in block.occasions):
        against += block.occasions
    judged = [_requirement(each, query, facts) for each in against]
    judged += [rule for each in block.limits if not (rule := _limit(each, query)).is_true]
    told = "; ".join(f"{rule.text}: {why_not_true(rule)}" for rule in judged)
    return told if len(told) <= _WHY_LIMIT else f"{told[:_WHY_LIMIT]}..."


def why_not_true(rule: ExplainedRule) -> str:
    """Say on one line what is against a rule, with the values found."""
    return rule.note or (why_false(rule.explanation) if rule.explanation is not None else "")


def _requirement(requirement: Requirement, query: AcceptQuery, facts: Facts, /) -> ExplainedRule:
    condition = requirement.condition
    if query.here is not None or not condition.reads(HERE):
        return explain_rule(condition, requirement.rule, facts)
    return explain_below(condition, requirement.rule, facts, query.subtree)


def explain_below(
    condition: Condition, text: str, facts: Facts, machines: IndexedVector, /, *, scope: str = HERE
) -> ExplainedRule:
    """Judge the condition of a rule by many machines, of which one is enough."""
    classes = explain_classes(condition, facts, scope, machines)
    is_true = classes.judged[1] != 0
    note = f"{machines_in(classes.judged, machines)} of {machines.vector.machines} machines could meet it"
    return ExplainedRule(text=text, start=condition.start, is_true=is_true, note=note, classes=classes)


def _limit(limit: Limit, query: AcceptQuery) -> ExplainedRule:
    taken = slots_of(limit, query.tdv, query.placed)
    is_true = taken + query.wanted_slots <= limit.slots
    note = f"{taken} of {limit.slots} slots taken, {query.wanted_slots} wanted"
    return ExplainedRule(text=limit.rule, start=limit.start, is_true=is_true, note=note)
