"""Which inputs of local users' tasks are not needed any more, by the rows of the tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.origin.awaited import is_good_ending
from messiahs.core.origin.completion import has_ended_well
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.files import PRESSURE_SECONDS
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.input_room import Spent

LATEST_ENDS: Final = 4_096
"""How many of the submissions that ended last are looked at; the inputs of others stay for `PRESSURE_SECONDS`."""


@dataclass(frozen=True, slots=True)
class SpentInputs:
    """Looks at the submissions that ended lately; files that were unused for longer may go anyway."""

    ended_since: Callable[[Instant], Sequence[TaskId]]
    """Returns submissions of local users that have ended since an instant, the latest first."""
    store: RowStore
    clock: Clock

    def finding(self) -> Callable[[], Spent]:
        """Return a function that finds those of now, and belongs into a thread."""
        since = Instant(max(0, self.clock.now() - int(PRESSURE_SECONDS) * SECOND))
        return partial(self._inputs_of, self.ended_since(since))

    def _inputs_of(self, submissions: Sequence[TaskId]) -> Spent:
        """Return the inputs of those whose tasks all ended well, with the times at which they were submitted."""
        ahead_ns = self.clock.wall_offset_ns()
        spent, retried = dict[bytes, float](), set[bytes]()
        for row in filter(None, map(self.store.submission, submissions)):
            hashes = {one.sha256 for files in (row.command.inputs, *row.member_inputs) for one in files if one.is_file}
            if hashes and self._ended_well(row):
                at = (row.submitted_at + ahead_ns) / SECOND
                spent |= {sha256: max(at, spent.get(sha256, at)) for sha256 in hashes}
            else:
                retried |= hashes
        return {sha256: at for sha256, at in spent.items() if sha256 not in retried}

    def _ended_well(self, row: SubmissionRow) -> bool:
        if row.members:
            return all(is_good_ending(each.state, each.exit_code) for each in row.endings)
        task = self.store.task(row.id)
        return task is not None and has_ended_well(task)
