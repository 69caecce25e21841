"""What a starter knows, as attempts of the interface."""

from collections.abc import Iterator

from messiahs.executor.attempt_values import Known, event_of
from messiahs.executor.contract import AttemptState, KnownAttempt


def known_attempts(known: Known) -> Iterator[KnownAttempt]:
    """Yield every attempt that a starter knows."""
    for attempt in known.queued:
        yield KnownAttempt(attempt=attempt, state=AttemptState.QUEUED)
    for one in known.running:
        state = AttemptState.RUNNING if one.suspended_ns is None else AttemptState.SUSPENDED
        yield KnownAttempt(attempt=one.attempt, state=state, ran_ns=one.ran_ns, suspended_ns=one.suspended_ns or 0)
    for end in known.ended:
        yield KnownAttempt(attempt=end.attempt, state=AttemptState.ENDED, ended=event_of(end))
