"""Write-ahead: the rows of a batch of actions are stored in one transaction before the rest of it is performed.

One batch is stored at a time. What comes meanwhile makes up the next one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from messiahs.core.interface.actions import Action, Effect, Forget, Store
from messiahs.core.interface.events import StoreChanged

HostWrite = TypeVar("HostWrite")
"""What a host stores in its transactions beside the rows of the core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[HostWrite]):
    """Both parts are in the order in which they came."""

    writes: tuple[Store | Forget | HostWrite, ...]
    effects: tuple[Effect, ...]


@dataclass(slots=True)
class Batches(Generic[HostWrite]):
    """The actions of one module on their way to be performed (mutable)."""

    storing: Batch[HostWrite] | None = None
    """The batch that was begun last, until it is stored."""
    has_failed: bool = False
    """It could not be stored when that was tried last."""
    _writes: list[Store | Forget | HostWrite] = field(default_factory=list)
    _effects: list[Effect] = field(default_factory=list)

    @property
    def waiting_writes(self) -> int:
        """How many writes the next batch would hold."""
        return len(self._writes)

    @property
    def is_idle(self) -> bool:
        """Say whether nothing waits and nothing is being stored."""
        return not (self.storing or self._writes or self._effects)

    def add(self, actions: Iterable[Action]) -> None:
        """Put actions into the next batch."""
        for action in actions:
            if isinstance(action, Store | Forget):
                self._writes.append(action)
            else:
                self._effects.append(action)

    def add_write(self, write: HostWrite) -> None:
        """Have something of the host's own stored with the next batch."""
        self._writes.append(write)

    def begin(self) -> Batch[HostWrite] | None:
        """Give all that waits, to be stored; None if nothing waits, or the last batch is still being stored."""
        if self.storing is not None or self.is_idle:
            return None
        self.storing = Batch(writes=tuple(self._writes), effects=tuple(self._effects))
        self._writes, self._effects = [], []
        return self.storing

    def on_stored(self) -> StoreChanged | None:
        """End the batch that was begun: its effects are performed next, and the event is handled after them."""
        had_failed, self.storing, self.has_failed = self.has_failed, None, False
        return StoreChanged(has_space=True) if had_failed else None

    def on_failed(self) -> StoreChanged | None:
        """Keep the batch that was begun: it is to be stored again, and none of it is performed before."""
        had_failed, self.has_failed = self.has_failed, True
        return None if had_failed else StoreChanged(has_space=False)
