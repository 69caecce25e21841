"""Users of one module take turns: a claim gives way to a user without a place (not in the papers).

Tasks of one shape follow each other in a claim without a search, so that ten thousand tasks of one user would keep
everybody else waiting. A claim that has held its places for a moment and has room for its next task therefore gives
way: it takes no more tasks, and the shape that it gives way to searches again. That happens for

- a user without a running task whose decayed usage (core/ledger) is not the greater one, unless `rank tasks` puts the
  tasks of the claim first;
- a user without a running task who has waited for `PATIENCE_NS`;
- tasks of the same user that have a higher priority.

Each round that was denied for lack of places lets one claim give way, so that a task which fits nowhere costs little.
"""

from typing import Final, TypeGuard

from messiahs.core.interface.messages import DenyCode, Reason
from messiahs.core.interface.timers import TimerKind
from messiahs.core.ledger.accounts import consumer_usage
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.state.executor import QUANTUM_NS
from messiahs.core.state.lives import ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim, Shape
from messiahs.core.task_filter.task_order import in_order

TURN_NS: Final = 1 * SECOND
"""How long a claim takes tasks before it gives way: short tasks of many users would else search more than they run."""
PATIENCE_NS: Final = 30 * SECOND
"""How long a user without a running task waits at most for users who used less."""
FREED_NS: Final = 2_250 * MILLISECOND
"""After this time an executor has freed a place that no task was bound to (executor/claims.py)."""
_YIELD_NS: Final = 200 * MILLISECOND
"""Time for other origins to learn of free places over a few hops, and to ask for them."""
_CHOSEN_FOR_NS: Final = 100 * MILLISECOND
_SCARCE: Final = (DenyCode.NO_CAPACITY, DenyCode.LIMIT_REACHED)


def usage_of(state: ModuleState, user: str, now: Instant) -> int:
    """Return the decayed processor nanoseconds of a local user, here and elsewhere."""
    return consumer_usage(state, state.system, origin=state.system, user=user, now=now)


def in_turn(state: ModuleState, shapes: tuple[Shape, ...], now: Instant) -> tuple[Shape, ...]:
    """Return shapes of waiting tasks in the order in which they get places.

    That is the order of `rank tasks`; shapes of equal rank are ordered by the usage of their users, the least first,
    and those of one user by priority, then by arrival.
    """
    if len(shapes) < 2:  # noqa: PLR2004 - one alone is in order
        return shapes
    used = {user: usage_of(state, user, now) for user in dict.fromkeys(shape.user for shape in shapes)}
    by_usage = sorted(shapes, key=lambda shape: (used[shape.user], -shape.priority))
    return in_order(state, tuple(by_usage), now)


def note_denied(state: ModuleState, shape: Shape, reasons: tuple[Reason, ...], /, *, now: Instant) -> None:
    """Remember a shape without a claim that was denied because places are taken; forget others."""
    if shape.claims or not shape.count or all(reason.code not in _SCARCE for reason in reasons):
        forget(state, shape)
        return
    shape.denied_since = shape.denied_since if shape.denied_since is not None else now
    state.origin.unserved[shape.number] = None
    state.origin.next_in_turn = None


def note_granted(state: ModuleState, shape: Shape) -> None:
    """Forget that a shape was denied for lack of places."""
    shape.denied_since = None
    forget(state, shape)


def forget(state: ModuleState, shape: Shape) -> None:
    """Let no claim give way to a shape until it is denied again."""
    if state.origin.unserved.pop(shape.number, 0) is None:
        state.origin.next_in_turn = None


def first_before(state: ModuleState, claim: HeldClaim, now: Instant) -> Shape | None:
    """Return the shape to which a claim that has room gives way, so that it takes no more tasks; None if it takes some.

    Only what was chosen last is kept in the state of the origin.
    """
    assert claim.began_at is not None, "a claim is held from `hold` on"
    if not state.origin.unserved or now - claim.began_at < TURN_NS:
        return None
    chosen = _next_in_turn(state, now)
    used_ns = usage_of(state, claim.shape.user, now)
    waiting = ((state.origin.shapes_by_number.get(number), usage_ns <= used_ns) for number, usage_ns in chosen)
    unserved = ((shape, is_less) for shape, is_less in waiting if _is_unserved(shape))
    first = (shape for shape, is_less in unserved if _is_before(state, shape, claim, is_less=is_less, now=now))
    return next(first, None)


def gives_way(state: ModuleState, claim: HeldClaim, now: Instant) -> bool:
    """Return whether a claim that has room takes no more tasks; the shape that it gives way to searches again."""
    before = first_before(state, claim, now)
    if before is None:
        return False
    forget(state, before)
    # The executor learns at once that an empty claim has ended.
    state.timers.set(TimerKind.ROUND, before.number, after(now, FREED_NS) if claim.bound else now)
    return True


def yield_quantum(state: ModuleState, shape: Shape, now: Instant) -> None:
    """Delay the rounds of a shape whose claim was ended by its executor or gave way, so that others can ask first."""
    shape.quantum_ended_at = now
    if shape.phase is ShapePhase.SETTLED:
        shape.enter(ShapePhase.WAITING)
        state.timers.set(TimerKind.ROUND, shape.number, after(now, _YIELD_NS))


def pause_ns(shape: Shape, now: Instant) -> int:
    """Return the pause of a shape when places become free; it shrinks with the time since its last quantum ended."""
    return 0 if shape.quantum_ended_at is None else _YIELD_NS >> min(63, (now - shape.quantum_ended_at) // QUANTUM_NS)


def _next_in_turn(state: ModuleState, now: Instant) -> tuple[tuple[int, int], ...]:
    """Return an unserved shape of each user, of the highest priority, with their usage; chosen every 100 ms at most."""
    origin = state.origin
    if origin.next_in_turn is None or origin.chosen_at is None or now - origin.chosen_at >= _CHOSEN_FOR_NS:
        first: dict[str, Shape] = {}
        for shape in map(origin.shapes_by_number.get, origin.unserved):
            # One pass, and no sorting: a user may have thousands.
            if _is_unserved(shape) and (shape.user not in first or shape.priority > first[shape.user].priority):
                first[shape.user] = shape
        ordered = in_turn(state, tuple(first.values()), now)
        origin.next_in_turn = tuple((shape.number, usage_of(state, shape.user, now)) for shape in ordered)
        origin.running_users = dict.fromkeys(claim.shape.user for claim in origin.claims.values() if claim.bound)
        origin.chosen_at = now
    return origin.next_in_turn


def _is_unserved(shape: Shape | None) -> TypeGuard[Shape]:
    return shape is not None and bool(shape.count) and not shape.claims and shape.phase is ShapePhase.WAITING


def _is_before(state: ModuleState, shape: Shape, claim: HeldClaim, /, *, is_less: bool, now: Instant) -> bool:
    """Return whether an unserved shape precedes that of a claim, and one of its tasks takes no more slots.

    With `is_less` its user has used no more than the one of the claim.
    """
    holder = claim.shape
    if shape.need.slots > holder.need.slots or shape.denied_since is None:
        return False
    if shape.user == holder.user:
        return shape.priority > holder.priority
    if shape.user in state.origin.running_users:
        return False
    if now - shape.denied_since >= PATIENCE_NS:
        return True
    return is_less and in_order(state, (shape, holder), now)[0] is shape
