"""Explain `join`: whether a system may become a neighbor."""

from collections.abc import Iterator
from dataclasses import replace

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, JoinQuery
from messiahs.core.model.neighbors import Relation
from messiahs.language.explaining.situation import Situation, block_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.join_rules import Entry, JoinRules, entry_facts
from messiahs.language.runtime.rule_explanation import ExplainedBlock, ExplainedRule, explain_rule
from messiahs.policy.admission import Admission


def join_in(policy: CompiledPolicy, situation: Situation, /) -> Iterator[ExplainedBlock]:
    """Yield the rules for the sender of the request, if it is stated, as the first member of its role."""
    asker = situation.query.asker
    if situation.asks and asker.relation is not Relation.SELF:
        query = JoinQuery(name=asker.system, role=asker.relation, members=0, now=situation.query.now)
        yield explain_entry(policy.admission, query)


def explain_entry(joining: Admission, query: JoinQuery, /) -> ExplainedBlock:
    """Evaluate every rule that admits a system in the role that it wants."""
    entries = joining.entries if isinstance(joining, JoinRules) else ()
    rules = [_entry(entry, query) for entry in entries if entry.role is query.role]
    answer = joining.judge(query)
    verdict = "it may join"
    if not isinstance(answer, Accepted):
        is_full = answer.code is DenyCode.LIMIT_REACHED
        verdict = f"it may not join: {answer.text if is_full else f'no rule lets it in as {query.role.value}'}"
    return block_of("join", verdict, rules)


def _entry(entry: Entry, query: JoinQuery) -> ExplainedRule:
    note = "" if entry.limit is None else f"there are {query.members} of at most {entry.limit}"
    return replace(explain_rule(entry.condition, entry.rule, entry_facts(query)), note=note)
