"""The log of attempts that could not be started here: what keeps a machine from it, only its administrator can mend."""

import logging

from messiahs.core.interface.actions import Action
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import Event
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant

_LOG = logging.getLogger(__name__)


class FailedStarts:
    """A watcher that logs each attempt whose process could not be created, with the reason."""

    def on_step(self, event: Event | None, actions: tuple[Action, ...], now: Instant, /) -> None:  # noqa: ARG002 - as watchers have it
        """Log the attempt if it ended so; the log omits reasons that repeat too fast."""
        if isinstance(event, AttemptEnded) and event.cause is Cause.SPAWN_FAILED:
            _LOG.warning("a task could not be started: %s (attempt %s)", event.text, event.attempt)

    def on_commit(self, rows: int, duration_ns: int, /) -> None:
        """Nothing is to be logged."""

    def on_throttled(self, neighbor: SystemId, /) -> None:
        """Nothing is to be logged."""
