"""Sending bound tasks to their executor: repeated when a stream breaks, given up when no way ever works.

Tasks go straight to the server of their claim, or along the path of the claim, as control messages do. A straight leg
that fails is given up for the path (relay/byte_route.py). An executor whose control messages arrive while no task
stream works is given up: its claim ends, and the origin queries it by name for the tasks that may not have arrived. The
executor permanently refuses tasks that it does not have, which then wait for their next attempts; it finishes the
others.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferFailed
from messiahs.core.interface.messages import AttemptStatus, DenyCode, Reason, TaskState, TaskStatus, TaskStatusQuery
from messiahs.core.interface.timers import TimerKind
from messiahs.core.interface.transfer_answers import FINAL, StraightFailed, TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.instants import SECOND, Instant, after
from messiahs.core.model.texts import printable
from messiahs.core.origin.giving_way import in_turn
from messiahs.core.origin.placement import bound_task, send_tasks
from messiahs.core.origin.rounds import search_each
from messiahs.core.origin.task_history import note_way
from messiahs.core.relay.byte_route import failure_text, give_up_straight, leg_of
from messiahs.core.relay.reachability import ask_again, avoid, watch_avoided
from messiahs.core.state.lives import HeldPhase, ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim

RESEND_NS = 1 * SECOND
ASK_AGAIN_NS = 5 * SECOND
CUT_NS = 30 * SECOND
"""An executor whose messages have arrived for this long while no task stream to it works is unreachable.

A hop that restarts takes seconds, and its neighbors do not connect at the same instant.
"""
_TEXT_LENGTH = 256


def on_transfer_failed(state: ModuleState, event: TransferFailed, now: Instant) -> tuple[Action, ...]:
    """Schedule a resend of the tasks that the executor has not reported: they may or may not have arrived.

    A failing straight leg is given up, and the tasks are sent along the path at once. Without another way, the executor
    is given up if the next system is not trusted or accepts nothing from here, or after the stream has failed for long
    while control messages arrived. After two refusals in a row the unconfirmed tasks are queried by name, which ends
    them.
    """
    claim = state.origin.claims.get(event.claim)
    if claim is None or not claim.unconfirmed:
        return ()
    route, is_refused = claim.row.route, event.kind is TransferFailure.REFUSED
    leg = leg_of(state, event.claim, route)
    if event.to is not None and event.to != leg.system:
        # Sent before the way changed, and again since.
        return ()
    was_refused = claim.refusal is not None
    # The text may come from the peer.
    claim.refusal = printable(event.text)[:_TEXT_LENGTH] if is_refused else None
    if claim.phase is HeldPhase.UNREACHABLE:
        return ()
    if is_refused:
        _note_works(claim)
    elif _is_of_no_use(claim, event) and give_up_straight(
        state, event.claim, route, text=event.text, is_final=event.kind in FINAL, now=now
    ):
        return _take_path(state, claim, now)
    else:
        text = failure_text(state, event, leg) if leg.system != event.claim.executor else event.text
        claim.stream_failure = printable(text)[:_TEXT_LENGTH] or "its task stream cannot be opened"
    is_cut = claim.heard_at is not None and now - claim.heard_at >= CUT_NS
    if event.kind in FINAL or is_cut:
        return _give_up(state, claim, is_final=event.kind in FINAL, now=now)
    if was_refused and is_refused:
        return ask_for(state, claim, tuple(claim.unconfirmed), now)
    state.timers.set(TimerKind.RESEND, event.claim, after(now, RESEND_NS))
    return ()


def on_straight_failed(state: ModuleState, event: StraightFailed, now: Instant) -> tuple[Action, ...]:
    """Take the path for the bytes of a claim from now on; without another way nothing changes."""
    claim = state.origin.claims.get(event.claim)
    if claim is None or not give_up_straight(
        state, event.claim, claim.row.route, text=event.text, is_final=False, now=now
    ):
        return ()
    return _take_path(state, claim, now)


def on_resend_timeout(state: ModuleState, claim_id: ClaimId, now: Instant) -> tuple[Action, ...]:
    """Send unconfirmed tasks again; an executor that already has them only reports them."""
    claim = state.origin.claims.get(claim_id)
    if claim is None or not claim.unconfirmed:
        return ()
    if claim.phase is HeldPhase.UNREACHABLE:
        return ask_for(state, claim, tuple(claim.unconfirmed), now)
    return send_unconfirmed(state, claim)


def on_avoided_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Search for the shapes that wait for lack of a reachable executor: one is no longer avoided."""
    watch_avoided(state, now)
    waiting = tuple(
        shape
        for shape in state.origin.shapes.values()
        # Without reasons, a place was found and its executor not reached.
        if shape.count and shape.phase is not ShapePhase.SEARCHING and (not shape.reasons or _lacks_way(shape.reasons))
    )
    return search_each(state, in_turn(state, waiting, now), now)


def on_link_open(state: ModuleState, neighbor: SystemId) -> None:
    """Forget what failed because a neighbor was away: task streams through it have their full time again.

    Executors that they did not reach are not avoided any more, and new claims go straight to the neighbor again.
    """
    ask_again(state, neighbor)
    state.ways.detours.pop(neighbor, None)
    for claim in state.origin.claims.values():
        if claim.row.via == neighbor:
            claim.heard_at = None


def send_unconfirmed(state: ModuleState, claim: HeldClaim) -> tuple[Action, ...]:
    """Send the tasks that may not have arrived, except cancelled ones."""
    wanted = [each for each in claim.unconfirmed if not state.origin.tasks[each.task].is_cancelled]
    return send_tasks(state, claim, [bound_task(state, attempt) for attempt in wanted])


def ask_for(
    state: ModuleState, claim: HeldClaim, attempts: tuple[AttemptId, ...], /, now: Instant
) -> tuple[Action, ...]:
    """Query the executor for attempts by name, repeatedly until it answers; it never starts those that it lacks."""
    state.timers.set(TimerKind.RESEND, claim.row.id, after(now, ASK_AGAIN_NS))
    return (SendControl(to=claim.row.via, message=TaskStatusQuery(claim=claim.row.id, attempts=attempts)),)


def note_heard(claim: HeldClaim, now: Instant) -> None:
    """Record that a control message of the executor of a claim has arrived."""
    if claim.stream_failure and claim.heard_at is None:
        claim.heard_at = now


def note_delivered(claim: HeldClaim, status: TaskStatus) -> None:
    """Record which tasks have reached the executor; each one shows that its task stream works."""
    # A task that was sent twice may be reported twice.
    arrived = {
        each.attempt: None for each in status.attempts if each.attempt in claim.unconfirmed and not _never_arrived(each)
    }
    for attempt in arrived:
        del claim.unconfirmed[attempt]
    if arrived and claim.phase is not HeldPhase.UNREACHABLE:
        claim.has_delivered = True
        _note_works(claim)


def explained(state: ModuleState, claim: HeldClaim, status: AttemptStatus, now: Instant, /) -> AttemptStatus:
    """Add the reason why an attempt never arrived; an executor that no stream reaches is avoided for a while."""
    if not _never_arrived(status):
        return status
    if claim.refusal:
        return replace(status, cause=Cause.REFUSED, text=claim.refusal)
    if not claim.stream_failure:
        return status
    avoid(state, claim.row.machine, via=claim.row.via, is_final=False, now=now)
    return replace(status, cause=Cause.UNREACHABLE, text=claim.stream_failure)


def _is_of_no_use(claim: HeldClaim, event: TransferFailed) -> bool:
    """Return whether a failure ends the use of a straight leg; one that worked may have broken by chance."""
    if event.kind is TransferFailure.BEYOND:
        return False
    return event.kind in FINAL or bool(claim.stream_failure) or not claim.has_delivered


def _take_path(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Send the tasks that may not have arrived along the path; it has not failed yet."""
    claim.stream_failure, claim.heard_at, claim.has_delivered = "", None, False
    concerned = [each for each in claim.bound if each in claim.unconfirmed or each in state.origin.fetching]
    return (*note_way(state, claim, concerned, now=now), *send_unconfirmed(state, claim))


def _give_up(state: ModuleState, claim: HeldClaim, *, is_final: bool, now: Instant) -> tuple[Action, ...]:
    claim.enter(HeldPhase.UNREACHABLE)
    avoid(state, claim.row.machine, via=claim.row.via, is_final=is_final, now=now)
    decision = Decision(what="unreachable", task=str(claim.row.id), text=claim.stream_failure)
    return (decision, *ask_for(state, claim, tuple(claim.unconfirmed), now))


def _lacks_way(reasons: tuple[Reason, ...]) -> bool:
    return any(reason.code is DenyCode.UNREACHABLE or _lacks_way(reason.hops) for reason in reasons)


def _never_arrived(status: AttemptStatus) -> bool:
    return status.state is TaskState.DENIED and status.cause == Cause.NEVER_ARRIVED


def _note_works(claim: HeldClaim) -> None:
    claim.stream_failure, claim.heard_at = "", None
