"""The counts of an array add up, and reading members page by page omits none."""

from collections import Counter
from pathlib import Path

from messiahs.core.interface.actions import Store
from messiahs.core.interface.ended_members import UntriedEnd
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import rows_of
from messiahs.daemon.storage.documents import array_document
from messiahs.daemon.storage.store import RowStore

Ending = tuple[TaskState, int | None]
ARRAY = TaskId(SystemId("left"), Epoch(1), 7)


def submission(members: int, *untried: UntriedEnd) -> SubmissionRow:
    return SubmissionRow(
        id=ARRAY,
        key=ClientKey("k"),
        tdv=TDV(()),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
        submitted_at=Instant(1),
        untried=untried,
    )


def run(first: int, last: int, *, state: TaskState = TaskState.KILLED) -> UntriedEnd:
    return UntriedEnd(first=first, last=last, state=state, ended_at=Instant(2))


def test_a_killed_member_that_exited_with_0_is_not_among_the_exit_codes_of_those_that_finished() -> None:
    ended: Counter[Ending] = Counter({(TaskState.FINISHED, 0): 5, (TaskState.FINISHED, 3): 1, (TaskState.KILLED, 0): 2})
    document = array_document(submission(9), ended, ())
    assert document["counts"] == {"finished": 6, "killed": 2, "queued": 1}
    assert document["exit_codes"] == {"0": 5, "3": 1}


def test_members_without_rows_are_made_up_from_the_runs_that_ended_untried() -> None:
    row = submission(9, run(6, 7, state=TaskState.DENIED), run(2, 3))
    made_up = rows_of(row, [ARRAY._replace(member=member) for member in range(1, 10)])
    states = {each.id.member: each.state for each in made_up if each.state is not TaskState.EXECUTING}
    assert states == {2: TaskState.KILLED, 3: TaskState.KILLED, 6: TaskState.DENIED, 7: TaskState.DENIED}


def test_a_page_of_members_begins_where_it_was_asked_for(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    store.commit([Store(row=TaskRow(id=ARRAY._replace(member=member))) for member in (2, 4, 6)], Instant(1))
    assert [row.id.member for row in store.members_page(ARRAY._replace(member=4))] == [4, 6]
    assert store.members_page(ARRAY._replace(member=7)) == []
    store.close()
