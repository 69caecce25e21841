"""All lines that concern one task: those that name it, its claims, and the searches for them."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from messiahs.core.interface.actions import Decision, FetchOutputs, SendControl, SendTasks, Store
from messiahs.core.interface.events import ControlReceived, TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest, TaskAccept, TaskDeny, TaskRequest
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClaimId, MessageId, SearchId, SystemId, TaskId
from messiahs.core.origin.array_members import tdv_of
from messiahs.trace.show.conversation import Line

_OF_ONE_CLAIM = (Store, SendTasks, TransferReceived, SendControl, ControlReceived, FetchOutputs)
"""Values that name a claim and a task because the task is bound to the claim."""


@dataclass(slots=True)
class Story:
    """The claims and searches of a task, by its id as shown to users (mutable: it has to `learn` all lines first).

    `blays.17` means every member of an array, `blays.17.3` one of them with everything that concerns all.
    """

    task: str
    since_ns: int | None = None
    until_ns: int = 0
    _claims: dict[ClaimId, None] = field(default_factory=dict)
    _searches: dict[SearchId, None] = field(default_factory=dict)
    _shapes: dict[tuple[SystemId, TDV, str], None] = field(default_factory=dict)
    _asks: dict[tuple[SystemId, SystemId | None, MessageId], SearchId] = field(default_factory=dict)
    """The search of each request, by asker, asked system and message id."""

    def learn(self, lines: Iterable[Line]) -> None:
        """Find the claims and searches of the task, and the time span in which it is named."""
        granted: dict[ClaimId, dict[SearchId, None]] = {}
        for line in lines:
            if self._names_it(line):
                self._learn_from(line)
            search = self._search_of(line)
            match line.message:
                case SchedRequest() as request:
                    self._asks[*line.ends, request.id] = request.search
                    if (request.origin, request.tdv, request.requirement) in self._shapes:
                        self._searches[request.search] = None
                        if request.answers is not None:
                            self._searches[request.answers] = None
                case TaskRequest() as wanting:
                    self._asks[*line.ends, wanting.id] = wanting.search
                case SchedAccept() as accept if search is not None:
                    granted.setdefault(accept.claim, {})[search] = None
        for claim in self._claims:
            self._searches.update(granted.get(claim, {}))

    def concerning(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines that concern the task."""
        return (line for line in lines if self._concerns(line))

    def _learn_from(self, line: Line) -> None:
        self.since_ns = line.at_ns if self.since_ns is None else self.since_ns
        self.until_ns = line.at_ns
        if isinstance(line.value, _OF_ONE_CLAIM):
            self._claims.update(dict.fromkeys(each for each in _ids_in(line.value) if isinstance(each, ClaimId)))
        if isinstance(line.value, Store) and isinstance(row := line.value.row, SubmissionRow):
            wanted = [member for member in range(row.members + 1) if self.task == str(row.id._replace(member=member))]
            for member in wanted:
                self._shapes[row.id.system, tdv_of(row, member), row.requirement] = None

    def _concerns(self, line: Line) -> bool:
        if self._names_it(line):
            return True
        ids = tuple(_ids_in(line.value))
        if self.since_ns is None or not self.since_ns <= line.at_ns <= self.until_ns:
            return False
        # A value that names only other tasks does not concern this one, even in the same claim.
        if any(isinstance(each, TaskId) for each in ids):
            return False
        if isinstance(line.value, Decision):
            return any(line.value.task == search.hex()[:8] for search in self._searches)
        return any(each in self._claims for each in ids) or self._search_of(line) in self._searches

    def _names_it(self, line: Line) -> bool:
        if isinstance(line.value, Decision):
            return self.task in line.value.task.split(", ")
        named = [each for each in (*_ids_in(line.value), line.submitted) if isinstance(each, TaskId)]
        return any(self._is_it(task) for task in named)

    def _is_it(self, task: TaskId) -> bool:
        if str(task) == self.task:
            return True
        return str(task.submission) == self.task if task.member else self.task.startswith(f"{task}.")

    def _search_of(self, line: Line) -> SearchId | None:
        sender, receiver = line.ends
        match line.message:
            case (SchedRequest() | TaskRequest()) as request:
                return request.search
            case (SchedAccept() | SchedDeny() | TaskAccept() | TaskDeny()) as answer if receiver is not None:
                return self._asks.get((receiver, sender, answer.request))
            case _:
                return None


def _ids_in(value: object) -> Iterator[TaskId | ClaimId]:
    """Yield the tasks (also of attempts) and claims named anywhere in a value."""
    if isinstance(value, TaskId | ClaimId):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _ids_in(part)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from _ids_in(getattr(value, each.name))
