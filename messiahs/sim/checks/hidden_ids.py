"""Claims and tasks by their own ids, whatever ids borders show for them, and executors have for them."""

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import AttemptRow, HiddenSubmissionRow, PassedClaimRow
from messiahs.core.model.ids import AttemptId, ClaimId, TaskId


class HiddenIds:
    """The ids that borders and executors have given so far (mutable); none ever means anything else."""

    def __init__(self) -> None:
        self._submissions: dict[TaskId, TaskId] = {}
        self._claims: dict[ClaimId, ClaimId] = {}
        self._attempts: dict[AttemptId, AttemptId] = {}

    def note(self, write: Store | Forget) -> None:
        """Record the shown ids in a stored row."""
        match write:
            case Store(row=HiddenSubmissionRow() as hidden):
                self._submissions[hidden.shown] = hidden.id
            case Store(row=PassedClaimRow(shown=ClaimId() as shown) as passed):
                self._claims[shown] = passed.id
            case Store(row=AttemptRow(id=here) as row) if here != row.named:
                self._attempts[here] = row.named
            case _:
                return

    def attempt(self, shown: AttemptId) -> AttemptId:
        """Return the id that the origin gave to an attempt."""
        shown = self._attempts.get(shown, shown)
        task = shown.task
        while (hidden := self._submissions.get(task.submission)) is not None:
            task = hidden._replace(member=task.member)
        return AttemptId(task, shown.number)

    def claim(self, shown: ClaimId) -> ClaimId:
        """Return the id that the executor gave to a claim."""
        while (hidden := self._claims.get(shown)) is not None:
            shown = hidden
        return shown
