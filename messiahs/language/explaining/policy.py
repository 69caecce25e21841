"""Evaluate every block of a policy over given facts (`policy explain`)."""

from collections.abc import Iterator

from messiahs.core.interface.policies import AcceptQuery, CalendarTime, JoinQuery, Refused, RunningQuery
from messiahs.core.model.descriptions import SDV, Description
from messiahs.core.model.neighbors import Relation
from messiahs.language.explaining.blocks import block_of, explain_entry, explain_offer, explain_running
from messiahs.language.runtime.accept_explanation import ExplainedBlock, ExplainedRule, explain_accept, explain_rule
from messiahs.language.runtime.accept_rules import AcceptBlock, facts_of
from messiahs.language.runtime.acceptance import AcceptRules
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.disclosing import Setting
from messiahs.language.runtime.readings import TASK, Facts


def explain_policy(
    policy: CompiledPolicy, query: AcceptQuery, /, *, asks: bool, present: Description
) -> tuple[ExplainedBlock, ...]:
    """Evaluate every block that has rules to evaluate, in the order of the file.

    With `asks`, only the `accept` block for the sender of the query counts, and `join` is evaluated for it as the first
    member of its role. `present` holds attributes of a task on this machine, such as its run time; if there is one, the
    rules about running tasks are evaluated too.
    """
    explained = [] if asks else [explain_accept(block, query) for block in accept_blocks(policy.acceptance)]
    here = query.here or SDV(())
    explained += [
        explain_setting(policy, setting, here, query.now) for setting in policy.disclosure.advertising.settings
    ]
    if present:
        task = {**facts_of(query)[TASK], **present}
        about = RunningQuery(task=task, here=here.description(), now=query.now)
        explained += [explain_running(policy.running, about), explain_offer(policy.transfer, about)]
    if asks and query.asker.relation is not Relation.SELF:
        entry = JoinQuery(name=query.asker.system, role=query.asker.relation, members=0, now=query.now)
        explained.append(explain_entry(policy.admission, entry))
    explained = [block for block in explained if block.rules]
    # A sender gets an answer even if no rule is about it.
    explained += [_answer(policy, query)] if asks else []
    return tuple(sorted(explained, key=lambda block: block.start))


def _answer(policy: CompiledPolicy, query: AcceptQuery) -> ExplainedBlock:
    block = policy.acceptance.block_for(query.asker)
    if block is not None:
        return explain_accept(block, query)
    answer = policy.acceptance.judge(query)
    if isinstance(answer, Refused):
        return block_of(answer.rule, f"refused: {answer.text}", ())
    return block_of("accept from users", "accepted: no block is about users", ())


def accept_blocks(rules: AcceptRules, /) -> tuple[AcceptBlock, ...]:
    """Return every `accept` block once, even if it names several senders."""
    found = [block for _, block in (*rules.by_name, *rules.by_relation)]
    found += [rules.for_any] if rules.for_any is not None else []
    return tuple({block.start: block for block in found}.values())


def explain_setting(policy: CompiledPolicy, setting: Setting, measured: SDV, now: CalendarTime, /) -> ExplainedBlock:
    """Evaluate every condition under which an attribute of this machine is set."""
    told = policy.disclosure.describe_here(measured, now).description()
    value = value_text(told[setting.name], setting.unit) if setting.name in told else "not said"
    rules = tuple(_choices(setting, policy.disclosure.facts_here(measured, now)))
    return ExplainedBlock(head=f"set ${setting.name}", start=setting.start, verdict=value, rules=rules)


def _choices(setting: Setting, facts: Facts) -> Iterator[ExplainedRule]:
    for _, condition in setting.choices:
        yield explain_rule(condition, f"when {condition.predicate}", facts)
