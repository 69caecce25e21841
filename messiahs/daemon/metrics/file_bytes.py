"""Bytes of files that other systems moved, by the labels of metrics: each neighbor by its name, all others together."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.budgets import Moved

OTHER: Final = "other"
"""The label of all systems that are no neighbors."""


class FileBytes:
    """Bytes by label and direction (mutable); none goes down while its label exists.

    Bytes stay under the label that their system had when they were read first: those of a system that becomes a
    neighbor later stay with the others, and those of a neighbor that left do not come to the others.
    """

    def __init__(self) -> None:
        self._moved: Mapping[tuple[SystemId, Moved], int] = {}
        self._labelled = Counter[tuple[str, Moved]]()

    def read(
        self, moved: Mapping[tuple[SystemId, Moved], int], neighbors: Collection[SystemId]
    ) -> dict[tuple[str, Moved], int]:
        """Add what systems have moved since the last call, and return the bytes of each label.

        `moved` has all that each system has moved since the start.
        """
        for (system, way), size_bytes in moved.items():
            label = system if system in neighbors else OTHER
            self._labelled[label, way] += size_bytes - self._moved.get((system, way), 0)
        self._moved = moved
        labels = dict.fromkeys((*sorted(neighbors), OTHER))
        for key in [key for key in self._labelled if key[0] not in labels]:
            del self._labelled[key]
        return {(label, way): self._labelled[label, way] for label in labels for way in Moved}
