"""Moving bound attempts, at their origin: when their executors are asked to end them, and for which places.

An attempt that its executor's owner wants to remove may move to any place, and the search continues until there is one.
An attempt that was offered for a task_request moves only to a place that the one search for it has found; without one
it stays.
"""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.messages import TaskKill
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.places import Machine
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import WINDOW_LIMIT, HeldClaim, Shape


def room_in(state: ModuleState, claim: HeldClaim) -> int:
    """Return how many more tasks may be bound to a claim; one made for a task_request leaves `keep` tasks here."""
    is_closed = claim.is_ending or _is_left(claim)
    room = 0 if is_closed else max(0, _window_of(claim) - len(claim.bound))
    if not claim.row.is_answer:
        return room
    return min(room, max(0, state.origin.waiting - state.policy.transfer.keep_at_least))


def move_on(state: ModuleState, shape: Shape) -> tuple[Action, ...]:
    """Ask executors to end moving attempts, as many as there are places for at other executors.

    Waiting tasks of the shape take precedence: while there are any, no attempt is moved.
    """
    if not shape.moving or shape.count:
        return ()
    left = {machine_of_attempt(state, attempt) for attempt in shape.moving}
    claims = [state.origin.claims[claim] for claim in shape.claims]
    rooms = [(claim, room_in(state, claim)) for claim in claims if claim.row.machine not in left]
    ending = sum(shape.moving.values())
    spare = sum(room for _, room in rooms) - ending
    spare_for_offered = sum(room for claim, room in rooms if claim.is_for_offered) - ending
    actions: list[Action] = []
    staying = [attempt for attempt, is_ending in shape.moving.items() if not is_ending]
    for attempt in sorted(staying, key=lambda each: each in shape.offered):
        if (spare_for_offered if attempt in shape.offered else spare) <= 0:
            continue
        spare, spare_for_offered = spare - 1, spare_for_offered - 1
        shape.moving[attempt] = True
        claim_id = state.origin.tasks[attempt.task].claim
        assert claim_id is not None, "a moving attempt is bound"
        kill = TaskKill(claim=claim_id, attempts=(attempt,), is_move=True)
        actions.append(SendControl(to=state.origin.claims[claim_id].row.via, message=kill))
    return tuple(actions)


def drop_offers(shape: Shape) -> None:
    """Keep offered attempts where they are once the search for them has ended."""
    if shape.offered and shape.phase is not ShapePhase.SEARCHING and shape.answers is None:
        for attempt in [attempt for attempt in shape.offered if not shape.moving[attempt]]:
            stay(shape, attempt)


def stay(shape: Shape, attempt: AttemptId) -> bool:
    """Stop moving an attempt; False if it was not moving."""
    shape.offered.pop(attempt, None)
    return shape.moving.pop(attempt, None) is not None


def machine_of_attempt(state: ModuleState, attempt: AttemptId) -> Machine:
    """Return the machine on which a bound attempt runs."""
    claim = state.origin.tasks[attempt.task].claim
    assert claim is not None, "the attempt is bound"
    return state.origin.claims[claim].row.machine


def _window_of(claim: HeldClaim) -> int:
    """Return how many tasks may be bound at once: the executor's window, as far as its results justify it.

    An executor without results gets as many tasks as places. Each result allows one more, so the window of a working
    executor doubles with each round trip. The machine may have no more than it has earned (relay/deliveries.py).
    """
    return min(claim.window, claim.row.places + claim.results, claim.most, WINDOW_LIMIT)


def _is_left(claim: HeldClaim) -> bool:
    """Return whether attempts of a claim have to leave, so that no others of its shape are bound to it."""
    shape = claim.shape
    return any(
        attempt in claim.bound and (is_ending or attempt not in shape.offered)
        for attempt, is_ending in shape.moving.items()
    )
