"""When an origin can be certain that attempts have ended of which it hears nothing (MESSIAHS 6.2)."""

from typing import Final

from messiahs.core.interface.causes import START_CAUSES, UNFIT_CAUSES
from messiahs.core.interface.messages import AttemptStatus, DenyCode, Reason
from messiahs.core.interface.rows import TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after, instant_text
from messiahs.core.relay.deliveries import GROWTH_NS, window_at
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import FIRST_ROUND_DELAY_NS, WINDOW_LIMIT, HeldClaim, Shape

_GRACE_NS: Final = 10 * SECOND
NOT_STARTED: Final = (*START_CAUSES, *UNFIT_CAUSES)
"""Why an attempt was not started, although its machine had room for it."""
_PAUSE_NS: Final = 1 * SECOND
_LONGEST_PAUSE_NS: Final = 1 * MINUTE
_DOUBLINGS: Final = 6
"""The pause has its greatest length after so many."""
_TEXT: Final = (
    "the module continues from an older copy of its state: tasks wait until {}, when none of before can still run"
)
_PAUSE_TEXT: Final = "the last attempt could not be started on this machine: the next one is not made before {}"


def certain_ns(lease_ns: int) -> int:
    """Return the time after which a lease has surely ended at its executor, whose clock may be slower."""
    return lease_ns + lease_ns // 10 + _GRACE_NS


def rests_until(state: ModuleState) -> Instant:
    """Return the instant before which no task is placed.

    After an older copy of the state was found, attempts of its tasks may run that it does not know: they end with their
    leases. Other modules have leases of their own; that of the own policy stands for them.
    """
    renewed_at = state.counters.renewed_at
    return Instant(0) if renewed_at is None else after(renewed_at, certain_ns(state.policy.timeouts.lease_ns))


def round_waits_until(state: ModuleState, shape: Shape) -> Instant:
    """Return the instant before which no round of a shape begins."""
    return max(rests_until(state), shape.pauses_until)


def why_it_rests(state: ModuleState, shape: Shape) -> Reason:
    """Return why the tasks of a shape wait before that instant, and until when, for their users."""
    rest, pause = rests_until(state), shape.pauses_until
    text = _TEXT.format(instant_text(rest)) if rest >= pause else _PAUSE_TEXT.format(instant_text(pause))
    return Reason(module=state.system, code=DenyCode.LOST, text=text)


def why_not_started(row: TaskRow | None) -> Reason | None:
    """Return why the last attempt of a task could not be started; None if it was started, or if there was none."""
    last = row.history[-1] if row is not None and row.history else None
    if last is None or last.event not in NOT_STARTED:
        return None
    text = f"the last attempt could not be started: {last.text or last.event}"
    return Reason(module=SystemId(last.module), code=DenyCode.LOST, text=text)


def note_failed_start(state: ModuleState, claim: HeldClaim, status: AttemptStatus, /, now: Instant) -> None:
    """Let the shape of an attempt that the own machine could not start pause for 1 s, doubling to a minute.

    Its slot is free again at once, which would start the next round at once, and the own machine is asked first. Other
    machines that fail are avoided instead (deliveries.py). Attempts that fail during a pause began before it, mostly in
    the same round, and change nothing.
    """
    shape = claim.shape
    if claim.row.via != state.system or status.cause not in NOT_STARTED or now < shape.pauses_until:
        return
    pause_ns = min(_PAUSE_NS << min(shape.failed_starts, _DOUBLINGS), _LONGEST_PAUSE_NS)
    shape.failed_starts += 1
    shape.pauses_until = after(now, pause_ns)
    shape.reasons = (why_it_rests(state, shape),)


def end_delays(shape: Shape) -> None:
    """Let the delays and pauses of a shape begin anew: one task that ended by itself shows that its places work."""
    shape.delay_ns, shape.has_lost = FIRST_ROUND_DELAY_NS, False
    shape.failed_starts, shape.pauses_until = 0, Instant(0)


def await_status(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Restart the query timeout of a claim; it is short while the answers may raise the window of its machine."""
    delay_ns = state.policy.timeouts.status_ns
    if window_at(state, claim) < WINDOW_LIMIT:
        delay_ns = min(delay_ns, GROWTH_NS)
    state.timers.set(TimerKind.QUERY, claim.row.id, after(now, delay_ns))


def watch_lease(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Restart the lease of a claim: longer than at the executor, so that at expiry its attempts have surely ended."""
    claim.leased_at = now
    lease_ns = claim.row.lease_ns
    state.timers.set(TimerKind.HELD_LEASE, claim.row.id, after(now, certain_ns(lease_ns)))
