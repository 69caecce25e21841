"""Bound attempts that are to run elsewhere, at their origin: which of them are told to end, and where there is room.

What its executor's owner wants away may go to any place, and is looked for until there is one. What was offered to
whoever asked for tasks goes only to a place that the one search for it has found, and stays where it is without one.
"""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.messages import TaskKill
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim, Shape

_WINDOW_LIMIT = 1_280
"""No executor gets more tasks of one claim at once, whatever window it names."""


def room_in(state: ModuleState, claim: HeldClaim) -> int:
    """Give how many more tasks may be bound to a claim; one that others asked for takes none of those that are kept."""
    is_closed = claim.is_ending or _is_left(claim)
    room = 0 if is_closed else max(0, _window_of(claim) - len(claim.bound))
    if not claim.row.is_answer:
        return room
    return min(room, max(0, state.origin.waiting - state.policy.migrating.keep_at_least))


def move_on(state: ModuleState, shape: Shape) -> tuple[Action, ...]:
    """Tell executors to end as many of the attempts that are to run elsewhere as there are places for there.

    While tasks of the shape wait, the places are theirs.
    """
    if not shape.moving or shape.count:
        return ()
    left = {executor_of(state, attempt) for attempt in shape.moving}
    claims = [state.origin.claims[claim] for claim in shape.claims]
    rooms = [(claim, room_in(state, claim)) for claim in claims if claim.row.id.executor not in left]
    told = sum(shape.moving.values())
    spare = sum(room for _, room in rooms) - told
    spare_for_offered = sum(room for claim, room in rooms if claim.is_for_offered) - told
    actions: list[Action] = []
    still = [attempt for attempt, is_told in shape.moving.items() if not is_told]
    for attempt in sorted(still, key=lambda each: each in shape.offered):
        if (spare_for_offered if attempt in shape.offered else spare) <= 0:
            continue
        spare, spare_for_offered = spare - 1, spare_for_offered - 1
        shape.moving[attempt] = True
        claim_id = state.origin.tasks[attempt.task].claim
        assert claim_id is not None, "what moves is bound"
        kill = TaskKill(claim=claim_id, attempts=(attempt,), is_move=True)
        actions.append(SendControl(to=state.origin.claims[claim_id].row.via, message=kill))
    return tuple(actions)


def drop_offers(shape: Shape) -> None:
    """Let attempts stay that were offered, once the search for them is over."""
    if shape.offered and shape.phase is not ShapePhase.SEARCHING and shape.answers is None:
        for attempt in [attempt for attempt in shape.offered if not shape.moving[attempt]]:
            stay(shape, attempt)


def stay(shape: Shape, attempt: AttemptId) -> bool:
    """Look for no other place for an attempt any more; False if none was looked for."""
    shape.offered.pop(attempt, None)
    return shape.moving.pop(attempt, None) is not None


def executor_of(state: ModuleState, attempt: AttemptId) -> SystemId:
    """Name the system on whose machine a bound attempt runs."""
    claim = state.origin.tasks[attempt.task].claim
    assert claim is not None, "it is bound"
    return claim.executor


def _window_of(claim: HeldClaim) -> int:
    """Give how many tasks may be bound at once: the executor's window, as far as its results justify it.

    An executor that only promises gets as many tasks as places. Each result allows one more, so the window of one that
    delivers doubles with each round trip.
    """
    return min(claim.window, claim.row.places + claim.results, _WINDOW_LIMIT)


def _is_left(claim: HeldClaim) -> bool:
    """Say whether attempts of a claim have to leave: then others of its shape do not come."""
    shape = claim.shape
    return any(
        attempt in claim.bound and (is_told or attempt not in shape.offered)
        for attempt, is_told in shape.moving.items()
    )
