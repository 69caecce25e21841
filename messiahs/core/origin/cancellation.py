"""Cancelling bound tasks at their origin; `task_kill` makes sure that they end."""

from collections.abc import Iterable
from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, Store
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.output_fetch import end_fetch
from messiahs.core.origin.task_kill import kill
from messiahs.core.state.module import ModuleState


def cancel_bound(state: ModuleState, rows: Iterable[TaskRow], now: Instant) -> tuple[Action, ...]:
    """Cancel the bound tasks among `rows`; a task whose outputs are being fetched ends without them."""
    actions: list[Action] = []
    killed: dict[ClaimId, list[AttemptId]] = {}
    for row in rows:
        if row.claim is None:
            continue
        cancelled = replace(row, is_cancelled=True, is_wanted_again=False, is_revoked=False)
        state.origin.tasks[row.id] = cancelled
        actions.extend((Store(row=cancelled), Decision(what="task_kill", task=str(row.id))))
        attempt = AttemptId(row.id, row.attempt)
        if attempt in state.origin.fetching:
            actions.extend(end_fetch(state, attempt, now))
        else:
            killed.setdefault(row.claim, []).append(attempt)
    for claim_id, attempts in killed.items():
        actions.extend(kill(state, state.origin.claims[claim_id], attempts, now))
    return tuple(actions)


def want_again(state: ModuleState, row: TaskRow) -> tuple[Action, ...]:
    """Mark a cancelled or overdue task for a retry, which starts once the task certainly no longer runs."""
    wanted = replace(row, is_wanted_again=True, result=None)
    state.origin.tasks[row.id] = wanted
    return (Store(row=wanted),)
