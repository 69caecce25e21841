"""Tasks that an origin denies instead of letting them wait for a place (MESSIAHS 6.2)."""

from functools import partial

from messiahs.core.interface.actions import Action
from messiahs.core.interface.messages import TaskState
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.completion import WhyDenied, end_waiting, tried_in
from messiahs.core.origin.member_runs import count_in, merged, run_of, runs_among, without
from messiahs.core.origin.resting import round_waits_until, why_it_rests, why_not_started
from messiahs.core.origin.shape_queue import take_out
from messiahs.core.origin.unmet import note_denied_at_once
from messiahs.core.relay.links_down import why_not_linked
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape


def deny_unwilling(state: ModuleState, shape: Shape, now: Instant) -> tuple[Action, ...]:
    """Deny the waiting tasks of submissions that do not wait."""
    unwilling = [submission for submission, _, _ in shape.waiting if not state.origin.submissions[submission].row.waits]
    denied = (deny_waiting(state, shape, submission, now) for submission in dict.fromkeys(unwilling))
    return tuple(action for actions in denied for action in actions)


def deny_in_pause(state: ModuleState, shape: Shape, now: Instant) -> tuple[Action, ...]:
    """Deny those tasks also while no round begins: one could not be started, or unknown ones may still run.

    If a round is in progress, it decides.
    """
    if now >= round_waits_until(state, shape) or shape.phase is ShapePhase.SEARCHING:
        return ()
    shape.reasons, shape.lacks = (why_it_rests(state, shape),), None
    return deny_unwilling(state, shape, now)


def deny_waiting(state: ModuleState, shape: Shape, submission: TaskId, /, now: Instant) -> tuple[Action, ...]:
    """End the waiting tasks of a submission as denied, with the reasons of the last round and the links that are down.

    A task whose last attempt could not be started has that as its first reason; it replaces the one of a pause.
    """
    links = why_not_linked(state, via=state.neighbors)
    round_reasons = () if now < shape.pauses_until else shape.reasons
    members = run_of(state.origin.submissions[submission].row, submission)
    runs = merged(take_out(state, shape, submission, members))
    note_denied_at_once(state, shape, count_in(runs), now)
    failed = {row.id.member: why_not_started(row) for row in tried_in(state, submission, runs)}
    denied = partial(end_waiting, state, submission, final=TaskState.DENIED, now=now)
    actions: list[Action] = []
    for member, reason in failed.items():
        if reason is not None:
            actions.extend(denied([(member, member)], why=WhyDenied((reason, *round_reasons, *links), shape.search)))
    apart = runs_among([member for member, reason in failed.items() if reason is not None])
    others = without(runs, apart)
    return (*actions, *denied(others, why=WhyDenied((*shape.reasons, *links), shape.search)))
