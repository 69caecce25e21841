"""Write-ahead: the rows of a batch of actions are stored in one transaction before its other actions are performed.

One batch is stored at a time. Actions that arrive meanwhile form the next one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from messiahs.core.interface.actions import Action, Effect, Forget, Store
from messiahs.core.interface.events import StoreChanged

HostWrite = TypeVar("HostWrite")
"""A write of the host itself, stored in its transactions together with the rows of the core."""


_ROW_ACTIONS: Final = (Store, Forget)


class Batch(NamedTuple, Generic[HostWrite]):
    """Both parts are in order of arrival."""

    writes: tuple[Store | Forget | HostWrite, ...]
    effects: tuple[Effect, ...]


@dataclass(slots=True)
class Batches(Generic[HostWrite]):
    """The actions of one module that have not been performed yet (mutable)."""

    storing: Batch[HostWrite] | None = None
    """The latest batch, until it is stored."""
    has_failed: bool = False
    """Whether the last attempt to store it failed."""
    _writes: list[Store | Forget | HostWrite] = field(default_factory=list)
    _effects: list[Effect] = field(default_factory=list)

    @property
    def waiting_writes(self) -> int:
        """The number of writes in the next batch."""
        return len(self._writes)

    @property
    def waiting(self) -> int:
        """The number of actions and writes in the next batch."""
        return len(self._writes) + len(self._effects)

    @property
    def is_idle(self) -> bool:
        """Whether no actions wait and no batch is being stored."""
        return not (self.storing or self._writes or self._effects)

    def add(self, actions: Iterable[Action]) -> None:
        """Add actions to the next batch."""
        for action in actions:
            if isinstance(action, _ROW_ACTIONS):
                self._writes.append(action)
            else:
                self._effects.append(action)

    def add_write(self, write: HostWrite) -> None:
        """Add a write of the host itself to the next batch."""
        self._writes.append(write)

    def begin(self) -> Batch[HostWrite] | None:
        """Return all waiting actions, to be stored; None if there are none, or the last batch is still being stored."""
        if self.storing is not None or not (self._writes or self._effects):
            return None
        self.storing = Batch(writes=tuple(self._writes), effects=tuple(self._effects))
        self._writes, self._effects = [], []
        return self.storing

    def on_stored(self) -> StoreChanged | None:
        """Complete the current batch: its effects are performed next, and the returned event is handled after them."""
        had_failed, self.storing, self.has_failed = self.has_failed, None, False
        return StoreChanged(has_space=True) if had_failed else None

    def on_failed(self) -> StoreChanged | None:
        """Keep the current batch: it is to be stored again, and none of it is performed before."""
        had_failed, self.has_failed = self.has_failed, True
        return None if had_failed else StoreChanged(has_space=False)
