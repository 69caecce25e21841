"""Who looks on while a simulation runs."""

from collections.abc import Sequence
from typing import Protocol

from messiahs.core.interface.actions import Effect, Forget, StartAttempt, Store
from messiahs.core.interface.events import AttemptEnded, Event
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.state.module import ModuleState


class Watcher(Protocol):
    """Told of everything at the moment when it happens; it changes nothing, and raises to end the simulation."""

    def happened(self, system: SystemId, event: Event) -> None:
        """Hear of an event that is about to be handled."""

    def handled(self, state: ModuleState) -> None:
        """Look at a module that has handled an event or a timeout."""

    def committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        """Hear of rows that are on the disk now."""

    def acted(self, system: SystemId, effect: Effect) -> None:
        """Hear of an effect that a host performs."""

    def began(self, system: SystemId, attempt: AttemptId, /, start: StartAttempt) -> None:
        """Hear of an attempt that a machine has begun to run."""

    def stopped(self, system: SystemId, ended: AttemptEnded) -> None:
        """Hear of an attempt of which nothing runs any more; it may never have run."""

    def paused(self, system: SystemId, attempt: AttemptId, *, is_paused: bool) -> None:
        """Hear of an attempt that is suspended, or goes on."""

    def froze(self, system: SystemId, *, is_frozen: bool) -> None:
        """Hear of a machine that stands still with all that runs on it, or goes on."""


class Nobody:
    """Looks at nothing."""

    def happened(self, system: SystemId, event: Event) -> None:
        """Look away."""

    def handled(self, state: ModuleState) -> None:
        """Look away."""

    def committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        """Look away."""

    def acted(self, system: SystemId, effect: Effect) -> None:
        """Look away."""

    def began(self, system: SystemId, attempt: AttemptId, /, start: StartAttempt) -> None:
        """Look away."""

    def stopped(self, system: SystemId, ended: AttemptEnded) -> None:
        """Look away."""

    def paused(self, system: SystemId, attempt: AttemptId, *, is_paused: bool) -> None:
        """Look away."""

    def froze(self, system: SystemId, *, is_frozen: bool) -> None:
        """Look away."""
