"""When an origin can be certain that attempts have ended of which it hears nothing (MESSIAHS 6.2)."""

from typing import Final

from messiahs.core.interface.messages import DenyCode, Reason
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import SECOND, Instant, after, instant_text
from messiahs.core.relay.deliveries import GROWTH_NS, window_at
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import WINDOW_LIMIT, HeldClaim

_GRACE_NS: Final = 10 * SECOND
_TEXT: Final = (
    "the module continues from an older copy of its state: tasks wait until {}, when none of before can still run"
)


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


def why_it_rests(state: ModuleState) -> Reason:
    """Return why tasks wait before that instant, and until when, for their users."""
    text = _TEXT.format(instant_text(rests_until(state)))
    return Reason(module=state.system, code=DenyCode.LOST, text=text)


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
