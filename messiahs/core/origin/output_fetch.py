"""Fetching outputs: a task has its result only when the outputs of its attempt are home (MESSIAHS 5.3.3)."""

from dataclasses import replace

from messiahs.core.interface.actions import Action, EndFetch, FetchOutputs, SendControl, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import AttemptStatus, TaskState, TaskStatusAck
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.texts import printable
from messiahs.core.origin.placement import fill
from messiahs.core.origin.settlement import settle
from messiahs.core.origin.task_history import longer, note_way
from messiahs.core.relay.byte_route import give_up_straight, leg_of
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import FetchTrouble, HeldClaim

_FETCH_DELAYS_NS = (SECOND // 4, 1 * SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND)
_NO_SPACE, _REFUSED = "no_space", "outputs_refused"
_TEXT_LENGTH = 256
_FETCH_LIMIT = 100
"""Tries (at least a quarter of an hour) after which an executor that reports outputs is no longer believed."""


def on_outputs_home(state: ModuleState, event: OutputsHome, now: Instant) -> tuple[Action, ...]:
    """Settle an attempt whose outputs have arrived."""
    status = state.origin.fetching.pop(event.attempt, None)
    claim = _claim_of(state, event.attempt)
    if status is None or claim is None:
        return ()
    _forget(state, event.attempt)
    ack = TaskStatusAck(claim=claim.row.id, taken=(event.attempt,))
    ended = settle(state, claim, status, now)
    return (*ended, SendControl(to=claim.row.via, message=ack), *fill(state, claim, now))


def on_outputs_failed(state: ModuleState, event: OutputsFailed, now: Instant) -> tuple[Action, ...]:
    """Schedule another try; outputs that are gone, or that could not be fetched for long, make the attempt lost.

    After a failure on the straight leg, the next try is along the path, at once. It says nothing of the path, even if
    the straight leg was given up meanwhile; once the next try has begun, it is ignored.
    """
    status = state.origin.fetching.get(event.attempt)
    claim = _claim_of(state, event.attempt)
    if status is None or claim is None or event.leg != state.origin.fetch_legs.get(event.attempt):
        return ()
    waits_for_others = event.is_full or event.is_refused or not state.has_space
    if not waits_for_others and give_up_straight(
        state, claim.row.id, claim.row.route, text=event.text, is_final=False, now=now
    ):
        # A server that has nothing for this module may have it for the neighbor on the path.
        return (*note_way(state, claim, (event.attempt,), now=now), fetch_action(state, claim, status))
    if not waits_for_others and event.leg != leg_of(state, claim.row.id, claim.row.route):
        return (fetch_action(state, claim, status),)
    failures = state.origin.fetch_failures.get(event.attempt, 0)
    if event.is_gone or failures >= _FETCH_LIMIT:
        lost = replace(status, state=TaskState.REVOKED, cause=Cause.LOST, text=event.text, outputs=())
        state.origin.fetching[event.attempt] = lost
        return on_outputs_home(state, OutputsHome(attempt=event.attempt), now)
    # The failure is not the executor's.
    state.origin.fetch_failures[event.attempt] = failures + (not waits_for_others)
    is_slow = event.is_full or event.is_refused
    delay_ns = _FETCH_DELAYS_NS[-1 if is_slow else min(failures, len(_FETCH_DELAYS_NS) - 1)]
    state.timers.set(TimerKind.FETCH, event.attempt.task, after(now, delay_ns))
    return _note_trouble(state, event, now)


def end_fetch(state: ModuleState, attempt: AttemptId, now: Instant) -> tuple[Action, ...]:
    """End a cancelled task whose attempt has ended, without the outputs that have not arrived yet."""
    status, claim = state.origin.fetching[attempt], _claim_of(state, attempt)
    assert claim is not None, "only a bound attempt brings outputs home"
    abandoned = abandon_fetch(state, attempt)
    ended = settle(state, claim, replace(status, outputs=()), now)
    ack = TaskStatusAck(claim=claim.row.id, taken=(attempt,))
    return (*abandoned, *ended, SendControl(to=claim.row.via, message=ack), *fill(state, claim, now))


def on_fetch_timeout(state: ModuleState, task: TaskId, now: Instant) -> tuple[Action, ...]:
    """Try again to fetch outputs."""
    del now
    row = state.origin.tasks.get(task)
    claim = state.origin.claims.get(row.claim) if row is not None and row.claim is not None else None
    status = state.origin.fetching.get(AttemptId(task, row.attempt)) if row is not None else None
    return (fetch_action(state, claim, status),) if claim is not None and status is not None else ()


def abandon_fetch(state: ModuleState, attempt: AttemptId) -> tuple[Action, ...]:
    """Stop fetching the outputs of an attempt, if they are being fetched."""
    state.timers.cancel(TimerKind.FETCH, attempt.task)
    _forget(state, attempt)
    if state.origin.fetching.pop(attempt, None) is None:
        return ()
    return (EndFetch(attempt=attempt),)


def fetch_action(state: ModuleState, claim: HeldClaim, status: AttemptStatus, /) -> FetchOutputs:
    """Ask the host to fetch the outputs of an ended attempt on the present leg of its claim."""
    leg = state.origin.fetch_legs[status.attempt] = leg_of(state, claim.row.id, claim.row.route)
    return FetchOutputs(attempt=status.attempt, claim=claim.row.id, leg=leg, outputs=status.outputs)


def _forget(state: ModuleState, attempt: AttemptId) -> None:
    state.origin.fetch_failures.pop(attempt, None)
    state.origin.fetch_legs.pop(attempt, None)
    state.origin.fetch_troubles.pop(attempt, None)


def _note_trouble(state: ModuleState, event: OutputsFailed, now: Instant) -> tuple[Action, ...]:
    """Remember why outputs are not home; the task's history says, once, if a disk or a bound stops them."""
    # The text may come from the peer.
    text, before = printable(event.text)[:_TEXT_LENGTH], state.origin.fetch_troubles.get(event.attempt)
    since = now if before is None else before.since
    state.origin.fetch_troubles[event.attempt] = FetchTrouble(since=since, text=text)
    row = state.origin.tasks[event.attempt.task]
    if not event.is_full and not event.is_refused:
        return ()
    what, module = (_NO_SPACE, state.system) if event.is_full else (_REFUSED, event.leg.system)
    if row.history and row.history[-1].event == what:
        return ()
    entry = HistoryEntry(at=now, event=what, attempt=row.attempt, module=module, text=text)
    row = replace(row, history=longer(row.history, entry))
    state.origin.tasks[row.id] = row
    return (Store(row=row),)


def _claim_of(state: ModuleState, attempt: AttemptId) -> HeldClaim | None:
    row = state.origin.tasks.get(attempt.task)
    if row is None or row.attempt != attempt.number or row.claim is None:
        return None
    return state.origin.claims.get(row.claim)
