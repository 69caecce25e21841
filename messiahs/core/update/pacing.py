"""Rests between vectors for many neighbors, so that sums stay a small part of all time (MESSIAHS 7.2).

The core reads no clock. It counts the inputs of a sum, the classes of its division and the receivers. These give an
approximate time on an ordinary core, which is the same in every run, and the length of the rest that is due. Small
amounts of work need no rest: modules with a few dozen neighbors never rest.
"""

from typing import Final

from messiahs.core.model.instants import MICROSECOND, MILLISECOND, Instant, after

UP_SHARE: Final = 5
DOWN_SHARE: Final = 25
OWN_SHARE: Final = 50
"""Rest per unit of work after U for parents and siblings, after D, and after U for the policy alone."""
SENDING_NS: Final = 50 * MICROSECOND
"""Approximate cost of sending a vector that was sent to others as well."""
TURN_NS: Final = 20 * MILLISECOND
"""Work after which the rest is left to another turn; events that have arrived meanwhile come first."""
_CLASSES_IN_A_TURN: Final = 250
_FREE_NS: Final = 50 * MILLISECOND


def fits_a_turn(classes: int) -> bool:
    """Return whether this number of classes can be summed up in one turn."""
    return classes <= _CLASSES_IN_A_TURN


def is_resting(until: Instant | None, now: Instant) -> bool:
    """Return whether a rest lasts longer than `_FREE_NS`; shorter ones are ignored."""
    return until is not None and until > after(now, _FREE_NS)


def rested_at(until: Instant | None, now: Instant) -> Instant:
    """Return when a rest ends, at the earliest now."""
    return max(now, Instant(until - _FREE_NS)) if until is not None else now


def after_work(until: Instant | None, now: Instant, *, work_ns: int, share: int) -> Instant:
    """Return the end of the rest after more work."""
    return after(max(now, until) if until is not None else now, share * work_ns)
