"""Explain the rules about tasks on this machine, and about systems that want to join."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import Transfer
from messiahs.core.interface.policies import Accepted, HereQuery, JoinQuery, RunningQuery
from messiahs.language.runtime.accept_explanation import ExplainedBlock, ExplainedRule, explain_below, explain_rule
from messiahs.language.runtime.accept_rules import calendar_facts
from messiahs.language.runtime.join_rules import Entry, JoinRules, entry_facts
from messiahs.language.runtime.migrate_rules import CompiledMigration
from messiahs.language.runtime.readings import HERE, NOW, TASK, Facts
from messiahs.language.runtime.running_rules import CompiledRule


def explain_running(rules: Sequence[CompiledRule], query: RunningQuery, /, *, verdict: str = "") -> ExplainedBlock:
    """Evaluate every rule about a running task, regardless of its `for`, and the heads of the blocks."""
    facts = _facts_of(query)
    heads = {rule.head.start: rule.head for rule in rules if rule.head is not None}
    explained = [explain_rule(head, head.text, facts) for head in heads.values()]
    for rule in rules:
        note = "due" if rule.is_due(query) else "not due"
        explained.append(replace(explain_rule(rule.condition, rule.rule, facts), note=note))
    due = ", ".join(dict.fromkeys(rule.act for rule in rules if rule.is_due(query)))
    return block_of("running", verdict or f"due: {due or 'nothing'}", explained)


def explain_offer(migrating: Transfer, query: RunningQuery, /) -> ExplainedBlock:
    """Evaluate every rule that decides whether a task is offered to a system that asks for tasks."""
    conditions = migrating.offered if isinstance(migrating, CompiledMigration) else ()
    rules = [explain_rule(condition, condition.text, _facts_of(query)) for condition in conditions]
    return block_of("migrate", "it is offered" if migrating.offers(query) else "it is kept", rules)


def explain_ask(migrating: Transfer, query: HereQuery, /) -> ExplainedBlock:
    """Evaluate every rule that decides whether other systems are asked for tasks."""
    facts = {HERE: query.here, NOW: calendar_facts(query.now)}
    asks = migrating.asks if isinstance(migrating, CompiledMigration) else ()
    rules = [
        explain_rule(ask.condition, ask.condition.text, facts)
        if query.has_machine or not ask.condition.reads(HERE)
        else explain_below(ask.condition, ask.condition.text, facts, query.subtree)
        for ask in asks
    ]
    is_asking = any(ask.is_wanted(query) for ask in asks)
    return block_of("migrate", "others are asked" if is_asking else "nobody is asked", rules)


def explain_entry(joining: JoinRules, query: JoinQuery, /) -> ExplainedBlock:
    """Evaluate every rule that admits a system in the role that it wants."""
    rules = [_entry(entry, query) for entry in joining.entries if entry.role is query.role]
    answer = joining.judge(query)
    verdict = "it may join"
    if not isinstance(answer, Accepted):
        is_full = answer.code is DenyCode.LIMIT_REACHED
        verdict = f"it may not join: {answer.text if is_full else f'no rule lets it in as {query.role.value}'}"
    return block_of("join", verdict, rules)


def _entry(entry: Entry, query: JoinQuery) -> ExplainedRule:
    note = "" if entry.limit is None else f"there are {query.members} of at most {entry.limit}"
    return replace(explain_rule(entry.condition, entry.rule, entry_facts(query)), note=note)


def block_of(head: str, verdict: str, rules: Iterable[ExplainedRule], /) -> ExplainedBlock:
    """Return an explanation whose position is that of its first rule."""
    judged = tuple(rules)
    return ExplainedBlock(
        head=head, start=min((rule.start for rule in judged), default=0), verdict=verdict, rules=judged
    )


def _facts_of(query: RunningQuery) -> Facts:
    return {TASK: query.task, HERE: query.here, NOW: calendar_facts(query.now)}
