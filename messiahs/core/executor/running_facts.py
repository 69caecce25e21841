"""The facts about running attempts on which the rules of the machine's owner are evaluated (MESSIAHS 2)."""

from messiahs.core.interface.policies import RunningQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import Description
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.executor import GrantedClaim, Guard
from messiahs.core.state.lives import GrantedPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.task_filter.task_order import sender_facts, waiting_above

_KNOWN_HERE = ("from", "relation", "waited", "ran", "suspended", "attempt", "mem_used", "mem_reserved")
"""Facts that a task's own TDV cannot state."""


def running_attempts(state: ModuleState) -> list[tuple[GrantedClaim, AttemptId]]:
    """Return the running attempts with their claims: suspended ones first, the longest suspended at the front."""
    guards = state.executor.guards

    def suspended_at(place: tuple[GrantedClaim, AttemptId]) -> tuple[bool, int]:
        guard = guards.get(place[1])
        at = guard.suspended_at if guard is not None else None
        return at is None, at or 0

    claims = [claim for claim in state.executor.claims.values() if claim.phase is not GrantedPhase.EXPIRED]
    running = [(claim, attempt) for claim in claims for attempt in claim.started]
    return sorted(running, key=suspended_at)


def running_queries(
    state: ModuleState,
    running: list[tuple[GrantedClaim, AttemptId]],
    /,
    *,
    here: Description,
    counts_waiting: bool,
    now: Instant,
) -> list[RunningQuery]:
    """Return the query for each attempt on which the owner's rules are evaluated; `here` has the local facts.

    Without `counts_waiting`, `waiting_above` is 0: no rule reads how many waiting tasks rank above the attempt.
    """
    tasks = [_facts(state, claim, attempt, now) for claim, attempt in running]
    above = waiting_above(state, tuple(tasks), now) if counts_waiting else (0,) * len(tasks)
    return [
        RunningQuery(task=task, here={**here, "waiting_above": count}, now=state.calendar(now))
        for task, count in zip(tasks, above, strict=True)
    ]


def _facts(state: ModuleState, claim: GrantedClaim, attempt: AttemptId, now: Instant, /) -> Description:
    """Return the facts about a running task: its TDV, and the facts that only this module knows."""
    guard = state.executor.guards.get(attempt) or Guard(slots=claim.need.slots)
    started_at = claim.started[attempt]
    tdv = claim.row.tdv.description()
    suspended_ns = 0 if guard.suspended_at is None else now - guard.suspended_at
    facts: dict[str, Value] = {name: value for name, value in tdv.items() if name not in _KNOWN_HERE}
    facts |= {
        **sender_facts(state, claim.row.via),
        "waited": max(0, started_at - claim.attempts[attempt]) // SECOND,
        "ran": max(0, now - started_at - guard.paused_ns - suspended_ns) // SECOND,
        "suspended": suspended_ns // SECOND,
        "attempt": attempt.number,
    }
    if guard.mem_used is not None:
        facts["mem_used"] = guard.mem_used
    if "mem" in tdv:
        facts["mem_reserved"] = tdv["mem"]
    return facts
