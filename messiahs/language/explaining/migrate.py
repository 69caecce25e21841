"""Explain `migrate`: whether a task is offered to other systems, and whether they are asked for tasks."""

from collections.abc import Iterator

from messiahs.core.interface.parts import Transfer
from messiahs.core.interface.policies import HereQuery, RunningQuery
from messiahs.language.explaining.situation import Situation, block_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.migrate_rules import CompiledMigration
from messiahs.language.runtime.readings import HERE, NOW, calendar_facts, running_facts
from messiahs.language.runtime.rule_explanation import ExplainedBlock, explain_below, explain_rule


def migrate_in(policy: CompiledPolicy, situation: Situation, /) -> Iterator[ExplainedBlock]:
    """Yield the rules about offering the task on this machine, if there is one."""
    if situation.running is not None:
        yield explain_offer(policy.transfer, situation.running)


def explain_offer(migrating: Transfer, query: RunningQuery, /) -> ExplainedBlock:
    """Evaluate every rule that decides whether a task is offered to a system that asks for tasks."""
    conditions = migrating.offered if isinstance(migrating, CompiledMigration) else ()
    rules = [explain_rule(condition, condition.text, running_facts(query)) for condition in conditions]
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
