"""What a daemon finds of its predecessor at its start."""

from collections.abc import Iterable

from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.daemon.storage.store import RowStore
from messiahs.executor.contract import AttemptState, KnownAttempt


def remains_in(store: RowStore, known: Iterable[KnownAttempt], *, has_rebooted: bool) -> Remains:
    """Return the stored rows, and the attempts that the executor back end knows."""
    return Remains(
        rows=tuple(store.live_rows()),
        running=tuple(map(_running, known)),
        has_rebooted=has_rebooted,
        forgotten=store.forgotten,
        stored_at=store.newest(),
    )


def _running(known: KnownAttempt) -> RunningAttempt:
    is_suspended = known.state is AttemptState.SUSPENDED
    return RunningAttempt(
        attempt=known.attempt,
        is_running=is_suspended or known.state is AttemptState.RUNNING,
        ran_ns=known.ran_ns,
        suspended_ns=known.suspended_ns if is_suspended else None,
        ended=known.ended,
    )
