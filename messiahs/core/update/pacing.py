"""How often many neighbors are told something new, so that summing up stays a small part of all time (MESSIAHS 7.2).

The core reads no clock. It counts what a sum is made of, what it is divided into, and who is sent it. From that follows
how long it takes on an ordinary core, roughly and always the same, and how long a rest is due. A little may be done
without any: modules with a few dozen neighbors never rest.
"""

from typing import Final

from messiahs.core.model.instants import MICROSECOND, MILLISECOND, Instant, after

UP_SHARE: Final = 5
DOWN_SHARE: Final = 25
OWN_SHARE: Final = 50
"""One part in so many of all time may be taken by U for parents and siblings, by D, and by U for the policy alone."""
SENDING_NS: Final = 50 * MICROSECOND
"""What it takes to send a vector that was sent to others, too; roughly."""
TURN_NS: Final = 20 * MILLISECOND
"""After so much work, the rest is done in another turn, and what has happened meanwhile comes first."""
_CLASSES_IN_A_TURN: Final = 250
_FREE_NS: Final = 50 * MILLISECOND


def fits_a_turn(classes: int) -> bool:
    """Say whether so many classes can be summed up in one turn."""
    return classes <= _CLASSES_IN_A_TURN


def is_resting(until: Instant | None, now: Instant) -> bool:
    """Say whether a rest goes on for longer than `_FREE_NS`; shorter ones are ignored."""
    return until is not None and until > after(now, _FREE_NS)


def rested_at(until: Instant | None, now: Instant) -> Instant:
    """Give when a rest is over, at the earliest now."""
    return max(now, Instant(until - _FREE_NS)) if until is not None else now


def after_work(until: Instant | None, now: Instant, *, work_ns: int, share: int) -> Instant:
    """Give until when to rest after more work."""
    return after(max(now, until) if until is not None else now, share * work_ns)
