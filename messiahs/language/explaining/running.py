"""Explain `running`: the rules about a task on this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from messiahs.core.interface.policies import RunningQuery
from messiahs.language.explaining.situation import Situation, block_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import running_facts
from messiahs.language.runtime.rule_explanation import ExplainedBlock, explain_rule
from messiahs.language.runtime.running_rules import CompiledRule


def running_in(policy: CompiledPolicy, situation: Situation, /) -> Iterator[ExplainedBlock]:
    """Yield the rules about the task on this machine, if there is one."""
    if situation.running is not None:
        yield explain_running(policy.running, situation.running)


def explain_running(rules: Sequence[CompiledRule], query: RunningQuery, /, *, verdict: str = "") -> ExplainedBlock:
    """Evaluate every rule about a running task, regardless of its `for`, and the heads of the blocks."""
    facts = running_facts(query)
    heads = {rule.head.start: rule.head for rule in rules if rule.head is not None}
    explained = [explain_rule(head, head.text, facts) for head in heads.values()]
    for rule in rules:
        note = "due" if rule.is_due(query) else "not due"
        explained.append(replace(explain_rule(rule.condition, rule.rule, facts), note=note))
    due = ", ".join(dict.fromkeys(rule.act for rule in rules if rule.is_due(query)))
    return block_of("running", verdict or f"due: {due or 'nothing'}", explained)
