"""Watchers of a running simulation."""

from collections.abc import Sequence
from typing import Protocol

from messiahs.core.interface.actions import Effect, Forget, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.events import Event
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.state.module import ModuleState


class Watcher(Protocol):
    """Called for everything at the moment when it happens; it changes nothing, and raises to end the simulation."""

    def happened(self, system: SystemId, event: Event) -> None:
        """Observe an event that is about to be handled."""

    def handled(self, state: ModuleState) -> None:
        """Observe a module that has handled an event or a timeout."""

    def committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        """Observe rows that have been stored."""

    def acted(self, system: SystemId, effect: Effect) -> None:
        """Observe an effect that a host performs."""

    def began(self, system: SystemId, attempt: AttemptId, /, start: StartAttempt) -> None:
        """Observe an attempt that a machine has begun to run."""

    def stopped(self, system: SystemId, ended: AttemptEnded) -> None:
        """Observe an attempt whose processes have all ended; it may never have run."""

    def paused(self, system: SystemId, attempt: AttemptId, *, is_paused: bool) -> None:
        """Observe an attempt that is suspended or resumed."""

    def froze(self, system: SystemId, *, is_frozen: bool) -> None:
        """Observe a machine that freezes with all that runs on it, or thaws."""

    def carried(self, sender: SystemId, to: SystemId, body: bytes, /) -> None:
        """Observe a message that one system sends to another, as its bytes on the wire."""


class NoWatcher:
    """Ignores everything."""

    def happened(self, system: SystemId, event: Event) -> None:
        """Ignore it."""

    def handled(self, state: ModuleState) -> None:
        """Ignore it."""

    def committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        """Ignore it."""

    def acted(self, system: SystemId, effect: Effect) -> None:
        """Ignore it."""

    def began(self, system: SystemId, attempt: AttemptId, /, start: StartAttempt) -> None:
        """Ignore it."""

    def stopped(self, system: SystemId, ended: AttemptEnded) -> None:
        """Ignore it."""

    def paused(self, system: SystemId, attempt: AttemptId, *, is_paused: bool) -> None:
        """Ignore it."""

    def froze(self, system: SystemId, *, is_frozen: bool) -> None:
        """Ignore it."""

    def carried(self, sender: SystemId, to: SystemId, body: bytes, /) -> None:
        """Ignore it."""
