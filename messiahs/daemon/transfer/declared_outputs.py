"""The outputs that a task declared and left, as its user may read them (MESSIAHS 5.3.3)."""

import asyncio
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from messiahs.core.interface.messages import AttemptStatus
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import TaskId
from messiahs.core.model.output_names import DECLARED_PREFIX, Declared
from messiahs.core.model.task_files import Output
from messiahs.core.origin.array_members import outputs_of

_KEPT: Final = 64
"""Maximum number of tasks whose outputs are remembered."""
_AT_ONCE_CHARACTERS: Final = 1024
"""Names that are compared at once, while everything else waits; a thread compares more."""


class DeclaredOutputs:
    """Outputs of ended tasks (mutable). Those of a result are compared with the declaration once, as far as remembered.

    Outputs that an older release stored without comparing them are omitted.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[TaskId, tuple[AttemptStatus, tuple[Output, ...]]] = OrderedDict()

    async def of(self, row: TaskRow, submission: SubmissionRow) -> tuple[Output, ...]:
        """List the outputs of a task by their paths in its working directory."""
        if row.result is None:
            return ()
        known = self._known.get(row.id)
        if known is not None and known[0] is row.result:
            self._known.move_to_end(row.id)
            return known[1]
        left = [output for output in row.result.outputs if output.name.startswith(DECLARED_PREFIX)]
        declared = outputs_of(submission, row.id)
        if sum(len(output.name) for output in left) <= _AT_ONCE_CHARACTERS:
            return _compared(left, declared)
        outputs = await asyncio.to_thread(_compared, left, declared)
        self._known[row.id] = row.result, outputs
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return outputs


def _compared(left: list[Output], declared: tuple[str, ...]) -> tuple[Output, ...]:
    names = Declared(declared)
    paths = (replace(output, name=output.name.removeprefix(DECLARED_PREFIX)) for output in left)
    return tuple(output for output in paths if names.covers(output.name))
