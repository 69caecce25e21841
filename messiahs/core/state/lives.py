"""The lives of claims and shapes: their phases, and which phase may follow which (MESSIAHS 6.2).

`docs/lives.md` shows them as diagrams.
"""

from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar


class GrantedPhase(Enum):
    """The life of a claim at its executor."""

    OPEN = "open"
    """Takes tasks, up to its window."""
    SHRINKING = "shrinking"
    """Takes tasks; places that its origin leaves unused will be freed, and the origin has been informed."""
    YIELDING = "yielding"
    """Its quantum has ended, and its window is 0; tasks already in transit are still taken."""
    ENDING = "ending"
    """Takes no more tasks; those in it continue."""
    EXPIRED = "expired"
    """Its lease has expired: only results that the origin has not acknowledged are left."""
    RELEASED = "released"
    """Forgotten, except for attempts that were asked to end and still use their places."""


class HeldPhase(Enum):
    """The life of a claim at its origin."""

    OPEN = "open"
    """Tasks are bound to it, up to its window."""
    ENDING = "ending"
    """No further task is bound to it; those in it continue."""
    UNREACHABLE = "unreachable"
    """As `ending`, but no task stream reaches its executor, which is queried by name for the tasks that it may lack."""


class ShapePhase(Enum):
    """The search for places for the tasks of a shape, at their origin."""

    SETTLED = "settled"
    """No search: every task has a place, or will get one in a claim that is held."""
    SEARCHING = "searching"
    """A `sched_request` is in flight."""
    WAITING = "waiting"
    """The next round begins when its timer fires, or when a view changes."""


Phase = TypeVar("Phase", bound=Enum)


class Step(NamedTuple, Generic[Phase]):
    """One phase that may follow another, and when it does."""

    phase: Phase
    following: Phase
    when: str


_RELEASE = "the origin ends it, or its lease expires and no result is left"
_EXPIRE = "the lease expires while results are not acknowledged"
GRANTED_LIFE: Final = (
    Step(GrantedPhase.OPEN, GrantedPhase.SHRINKING, "places stay unused"),
    Step(GrantedPhase.SHRINKING, GrantedPhase.OPEN, "tasks arrive, the places are freed, or the path is cut"),
    Step(GrantedPhase.OPEN, GrantedPhase.YIELDING, "the quantum ends while the machine is full"),
    Step(GrantedPhase.SHRINKING, GrantedPhase.YIELDING, "the quantum ends while the machine is full"),
    Step(GrantedPhase.OPEN, GrantedPhase.ENDING, "no task arrives for long"),
    Step(GrantedPhase.SHRINKING, GrantedPhase.ENDING, "no task arrives for long"),
    Step(GrantedPhase.YIELDING, GrantedPhase.ENDING, "tasks in transit have had time to arrive"),
    Step(GrantedPhase.OPEN, GrantedPhase.EXPIRED, _EXPIRE),
    Step(GrantedPhase.SHRINKING, GrantedPhase.EXPIRED, _EXPIRE),
    Step(GrantedPhase.YIELDING, GrantedPhase.EXPIRED, _EXPIRE),
    Step(GrantedPhase.ENDING, GrantedPhase.EXPIRED, _EXPIRE),
    Step(GrantedPhase.OPEN, GrantedPhase.RELEASED, _RELEASE),
    Step(GrantedPhase.SHRINKING, GrantedPhase.RELEASED, _RELEASE),
    Step(GrantedPhase.YIELDING, GrantedPhase.RELEASED, _RELEASE),
    Step(GrantedPhase.ENDING, GrantedPhase.RELEASED, _RELEASE),
    Step(GrantedPhase.EXPIRED, GrantedPhase.RELEASED, _RELEASE),
)
HELD_LIFE: Final = (
    Step(
        HeldPhase.OPEN,
        HeldPhase.ENDING,
        "its executor ends it, does not know it, or loses or refuses a task; or it gives way",
    ),
    Step(HeldPhase.OPEN, HeldPhase.UNREACHABLE, "control messages arrive, but no task stream reaches its executor"),
    Step(HeldPhase.ENDING, HeldPhase.UNREACHABLE, "control messages arrive, but no task stream reaches its executor"),
)
SHAPE_LIFE: Final = (
    Step(ShapePhase.SETTLED, ShapePhase.SEARCHING, "tasks have no place"),
    Step(ShapePhase.SETTLED, ShapePhase.WAITING, "others ask first: a claim ended or gave way, or many begin at once"),
    Step(ShapePhase.SEARCHING, ShapePhase.WAITING, "the search was answered"),
    Step(ShapePhase.WAITING, ShapePhase.SETTLED, "a round begins, and binds the tasks for which there are places"),
)


def followed(phase: Phase, following: Phase, life: tuple[Step[Phase], ...], /) -> Phase:
    """Return the next phase, which may be the same. A step that is not in the table is a bug of this program."""
    is_known = following is phase or any((each.phase, each.following) == (phase, following) for each in life)
    assert is_known, f"{phase.value} is never followed by {following.value}"
    return following
