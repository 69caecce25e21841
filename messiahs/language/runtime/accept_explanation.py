"""Explain a decision of `accept`: every rule of the block is evaluated, not only those up to the first refusal."""

from typing import Final

from messiahs.core.interface.policies import Accepted, AcceptQuery
from messiahs.core.model.instants import SECOND
from messiahs.language.runtime.accept_rules import (
    AcceptBlock,
    Limit,
    Requirement,
    UsageLimit,
    is_true_for,
    slots_under_limit,
)
from messiahs.language.runtime.readings import HERE, Facts, request_facts
from messiahs.language.runtime.rule_explanation import (
    ExplainedBlock,
    ExplainedRule,
    explain_below,
    explain_rule,
    why_not_true,
)

_WHY_LIMIT: Final = 1000
"""Maximum length in characters: it is logged and stored for every refusal, and strangers choose the values."""


def explain_accept(block: AcceptBlock, query: AcceptQuery, /) -> ExplainedBlock:
    """Evaluate every rule of an `accept` block for a request, regardless of its sender."""
    facts = request_facts(query)
    rules = [_requirement(each, query, facts) for each in (*block.requirements, *block.occasions)]
    rules += _limits(block, query)
    if block.mapping is not None:
        note = "the account of these tasks on the own machine"
        rules.append(ExplainedRule(text=block.mapping.rule, start=block.mapping.start, is_true=True, note=note))
    if block.network is not None:
        note = "what these tasks reach at most of the network, on the own machine"
        rules.append(ExplainedRule(text=block.network.rule, start=block.network.start, is_true=True, note=note))
    verdict = "accepted" if isinstance(block.judge(query), Accepted) else "refused"
    return ExplainedBlock(head=block.head, start=block.start, verdict=verdict, rules=tuple(rules))


def why_refused(block: AcceptBlock, query: AcceptQuery, /) -> str:
    """Return on one line, for the local log, every rule that refuses a request, with the values found; else empty."""
    facts = request_facts(query)
    # Strangers can cause this call often, so only rules that refuse are explained.
    against = [each for each in block.requirements if not is_true_for(each.condition, query, facts)]
    if not any(is_true_for(each.condition, query, facts) for each in block.occasions):
        against += block.occasions
    judged = [_requirement(each, query, facts) for each in against]
    judged += [rule for rule in _limits(block, query) if not rule.is_true]
    text = "; ".join(f"{rule.text}: {why_not_true(rule)}" for rule in judged)
    return text if len(text) <= _WHY_LIMIT else f"{text[:_WHY_LIMIT]}..."


def _requirement(requirement: Requirement, query: AcceptQuery, facts: Facts, /) -> ExplainedRule:
    condition = requirement.condition
    if query.here is not None or not condition.reads(HERE):
        return explain_rule(condition, requirement.rule, facts)
    return explain_below(condition, requirement.rule, facts, query.subtree)


def _limits(block: AcceptBlock, query: AcceptQuery) -> list[ExplainedRule]:
    return [*(_limit(each, query) for each in block.limits), *(_usage(each, query) for each in block.usage_limits)]


def _usage(limit: UsageLimit, query: AcceptQuery) -> ExplainedRule:
    used, most = limit.used_ns(query) // SECOND, limit.most_ns // SECOND
    note = f"{used} of {most} processor seconds used today"
    return ExplainedRule(text=limit.rule, start=limit.start, is_true=not limit.is_reached(query), note=note)


def _limit(limit: Limit, query: AcceptQuery) -> ExplainedRule:
    taken = slots_under_limit(limit, query.tdv, query.placed)
    is_true = taken + query.wanted_slots <= limit.slots
    note = f"{taken} of {limit.slots} slots taken, {query.wanted_slots} wanted"
    return ExplainedRule(text=limit.rule, start=limit.start, is_true=is_true, note=note)
