"""Asking the policy (MESSIAHS 5.2: the task filter compares the vectors subject to the local policy)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from messiahs.core.interface.messages import Reason
from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Asker,
    Candidate,
    Need,
    Placed,
    RankQuery,
    Refused,
    Used,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import DAY, Instant
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState
from messiahs.core.state.parts import decide
from messiahs.core.task_filter.local_facts import module_facts
from messiahs.core.task_filter.local_resources import reserved_places, reserving_claims, seen_by_owner
from messiahs.core.task_filter.matching import evaluate


def judge(state: ModuleState, tdv: TDV, asker: Asker, /, *, slots: int, now: Instant) -> Accepted | Refused:
    """Judge a task that takes `slots` slots; those of live claims in this module's subtree count against limits."""
    return _judged(state, _query(state, tdv, asker, slots=slots, now=now))


def judging_for(state: ModuleState, asker: Asker, now: Instant) -> Callable[[TDV, int], Accepted | Refused]:
    """Return a judge for many tasks of one asker at one moment: a function of TDV and slots that shares one query."""
    query = _query(state, TDV(()), asker, slots=0, now=now)
    return lambda tdv, slots: _judged(state, replace(query, tdv=tdv, wanted_slots=slots))


def refusal_of(state: ModuleState, tdv: TDV, asker: Asker, verdict: Refused, /, *, slots: int, now: Instant) -> Reason:
    """Return a refusal with the text for the asker, and the rules and values found for the local log."""
    why = state.policy.acceptance.why_refused(_query(state, tdv, asker, slots=slots, now=now))
    return Reason(module=state.system, code=verdict.code, rule=verdict.rule, text=verdict.text, why=why)


def summary_of(reason: Reason) -> str:
    """Format a reason for the local log."""
    return f"{reason.code} ({reason.why or reason.rule})" if reason.why or reason.rule else reason.code.value


def rank(
    state: ModuleState, candidates: tuple[Candidate, ...], need: Need, /, *, tdv: TDV, now: Instant
) -> tuple[SystemId, ...]:
    """Return the candidates in the order of the policy."""
    evaluate(need, {each.system: each.view for each in candidates}, state.updates.overview)
    query = _rank_query(state, candidates, need, tdv=tdv, now=now)
    return decide(state, PartKind.LOCATION, state.policy.location, query)


def why_ranked(
    state: ModuleState, candidates: tuple[Candidate, ...], need: Need, /, *, tdv: TDV, now: Instant
) -> Mapping[SystemId, str]:
    """Return the values by which the policy orders candidates, for local users alone, as far as it can say."""
    return state.policy.location.why_ranked(_rank_query(state, candidates, need, tdv=tdv, now=now))


def _rank_query(
    state: ModuleState, candidates: tuple[Candidate, ...], need: Need, /, *, tdv: TDV, now: Instant
) -> RankQuery:
    return RankQuery(
        candidates=candidates,
        need=need,
        tdv=tdv,
        here=seen_by_owner(state),
        now=state.calendar(now),
        module=module_facts(state, now),
        at=now,
    )


def _judged(state: ModuleState, query: AcceptQuery) -> Accepted | Refused:
    return decide(state, PartKind.ACCEPTANCE, state.policy.acceptance, query)


def _query(state: ModuleState, tdv: TDV, asker: Asker, /, *, slots: int, now: Instant) -> AcceptQuery:
    return AcceptQuery(
        tdv=tdv,
        asker=asker,
        here=seen_by_owner(state),
        subtree=state.updates.indexed_up,
        now=state.calendar(now),
        placed=_placed(state),
        used=tuple(_used_today(state, now)) if state.policy.acceptance.reads_usage else (),
        wanted_slots=slots,
        module=module_facts(state, now),
    )


def _placed(state: ModuleState) -> tuple[Placed, ...]:
    granted = (
        Placed(tdv=claim.row.tdv, slots=reserved_places(claim) * claim.need.slots) for claim in reserving_claims(state)
    )
    passed = (
        Placed(tdv=row.tdv, slots=row.slots)
        for row in state.hop.passed.values()
        if is_child(state, row.toward_executor)
    )
    return (*granted, *passed)


def _used_today(state: ModuleState, now: Instant) -> Iterator[Used]:
    """Yield what the ledger has of today; the latest days are last, unless the clock was set back."""
    today = now // DAY
    for (day, parties), row in reversed(state.ledger.usage.items()):
        if day < today:
            return
        if day == today and (parties.source == state.system or is_child(state, parties.source)):
            yield Used(
                sink=parties.sink,
                origin=parties.origin,
                user=parties.user,
                account=parties.account,
                used_ns=row.processor_ns,
            )


def is_child(state: ModuleState, system: SystemId) -> bool:
    """Return whether a system is a child."""
    return system in state.neighbors and state.neighbors[system].relation is Relation.CHILD
