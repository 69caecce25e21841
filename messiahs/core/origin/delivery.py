"""Bringing bound tasks to their executor at the origin: again when a stream broke, and no more when it never works.

Task streams go straight, control messages along the path of the claim. An executor that is heard while no stream to it
works is given up: its claim ends, and it is asked by name for the tasks that it may not have. It refuses
for ever those that it does not have, so they wait for their next attempts; those that it has run on.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferFailed
from messiahs.core.interface.messages import AttemptStatus, TaskState, TaskStatus, TaskStatusQuery
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.texts import printable
from messiahs.core.origin.placement import bound_task, send_tasks
from messiahs.core.relay.reachability import avoid
from messiahs.core.state.lives import HeldPhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

RESEND_NS = 1 * SECOND
ASK_AGAIN_NS = 5 * SECOND
CUT_NS = 10 * SECOND
"""An executor that is heard for so long while no task stream to it works is unreachable."""
_TEXT_LENGTH = 256


def on_transfer_failed(state: ModuleState, event: TransferFailed, now: Instant) -> tuple[Action, ...]:
    """Send again, a little later, what the executor has not reported: it may or may not have arrived.

    With `is_untrusted`, or when the stream has failed for long while the executor was heard, give it up instead. What
    the executor refuses twice in a row is asked for by name, which is its end.
    """
    claim = state.origin.claims.get(event.claim)
    if claim is None or not claim.unconfirmed:
        return ()
    was_refused = claim.refusal is not None
    # The text may be of the peer's making.
    claim.refusal = printable(event.text)[:_TEXT_LENGTH] if event.is_refused else None
    if claim.phase is HeldPhase.UNREACHABLE:
        return ()
    if event.is_refused:
        _note_works(claim)
    else:
        claim.stream_failure = printable(event.text)[:_TEXT_LENGTH] or "its task stream cannot be opened"
    is_cut = claim.heard_at is not None and now - claim.heard_at >= CUT_NS
    if event.is_untrusted or is_cut:
        return _give_up(state, claim, now)
    if was_refused and event.is_refused:
        return ask_for(state, claim, tuple(claim.unconfirmed), now)
    state.timers.set(TimerKind.RESEND, event.claim, after(now, RESEND_NS))
    return ()


def on_resend_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Send unconfirmed tasks again; an executor that has them only reports them."""
    claim = state.origin.claims.get(claim_id)
    if claim is None or not claim.unconfirmed:
        return ()
    if claim.phase is HeldPhase.UNREACHABLE:
        return ask_for(state, claim, tuple(claim.unconfirmed), now)
    return send_unconfirmed(state, claim)


def send_unconfirmed(state: ModuleState, claim: HeldClaim) -> tuple[Action, ...]:
    """Send what may not have arrived, but nothing that was cancelled."""
    wanted = [each for each in claim.unconfirmed if not state.origin.tasks[each.task].is_cancelled]
    return send_tasks(claim, [bound_task(state, attempt) for attempt in wanted])


def ask_for(
    state: ModuleState, claim: HeldClaim, attempts: tuple[AttemptId, ...], /, now: Instant
) -> tuple[Action, ...]:
    """Ask the executor by name for attempts, and again until it has answered: what it does not have it never starts."""
    state.timers.set(TimerKind.RESEND, claim.row.id, after(now, ASK_AGAIN_NS))
    return (SendControl(to=claim.row.via, message=TaskStatusQuery(claim=claim.row.id, attempts=attempts)),)


def note_heard(claim: HeldClaim, now: Instant) -> None:
    """Note that the executor of a claim was heard over the control channel."""
    if claim.stream_failure and claim.heard_at is None:
        claim.heard_at = now


def note_delivered(claim: HeldClaim, status: TaskStatus) -> None:
    """Note which tasks have reached the executor: its task stream works."""
    arrived = [
        each.attempt for each in status.attempts if each.attempt in claim.unconfirmed and not _never_arrived(each)
    ]
    for attempt in arrived:
        del claim.unconfirmed[attempt]
    if arrived and claim.phase is not HeldPhase.UNREACHABLE:
        _note_works(claim)


def explained(state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /) -> AttemptStatus:
    """Say why an attempt never arrived; an executor that no stream reaches is not tried again soon."""
    if not _never_arrived(status):
        return status
    if claim.refusal:
        return replace(status, cause=Cause.REFUSED, text=claim.refusal)
    if not claim.stream_failure:
        return status
    avoid(state, claim.row.id.executor, now)
    return replace(status, cause=Cause.UNREACHABLE, text=claim.stream_failure)


def _give_up(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    claim.enter(HeldPhase.UNREACHABLE)
    avoid(state, claim.row.id.executor, now)
    decision = Decision(what="unreachable", task=str(claim.row.id), text=claim.stream_failure)
    return (decision, *ask_for(state, claim, tuple(claim.unconfirmed), now))


def _never_arrived(status: AttemptStatus) -> bool:
    return status.state is TaskState.DENIED and status.cause == Cause.NEVER_ARRIVED


def _note_works(claim: HeldClaim) -> None:
    claim.stream_failure, claim.heard_at = "", None
