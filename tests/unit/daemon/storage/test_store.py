"""Rows on disk: torn, damaged and foreign database files are detected and not overwritten."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import Row, RowKind, SubmissionRow, TaskRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.errors import StoreError, UnusableStateError

BATCHES = 4
MEMBERS = 30
SUBMISSION = TaskId(SystemId("left"), Epoch(7), 1)
PAGE_BYTES = 4_096


def batch(number: int) -> list[Store]:
    """Return one transaction: rows of several pages."""
    first = number * MEMBERS + 1
    members = range(first, first + MEMBERS)
    return [Store(row=TaskRow(id=SUBMISSION._replace(member=member), executed_on="x" * 200)) for member in members]


def submission(task: TaskId, *, members: int) -> SubmissionRow:
    return SubmissionRow(
        id=task,
        key=ClientKey(str(task)),
        tdv=TDV(()),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
        submitted_at=Instant(1),
    )


def written(path: Path, batches: int) -> RowStore:
    store = RowStore(path)
    for number in range(batches):
        store.commit(batch(number), Instant(number + 1))
    return store


def members(path: Path) -> list[int]:
    store = RowStore(path)
    try:
        return [row.id.member for row in store.members(SUBMISSION)]
    finally:
        store.close()


def test_a_log_that_is_cut_anywhere_loses_the_batches_that_it_lacks_and_nothing_else(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    log = Path(f"{tmp_path / 'module.db'}-wal")
    ends = []
    for number in range(BATCHES):
        store.commit(batch(number), Instant(number + 1))
        ends.append(log.stat().st_size)
    whole, whole_log = (tmp_path / "module.db").read_bytes(), log.read_bytes()
    store.close()
    copy = tmp_path / "copy.db"
    copy_log = Path(f"{copy}-wal")
    for cut in (0, 10, *(end + shift for end in ends for shift in (-PAGE_BYTES, -1, 0, 1, 24)), len(whole_log)):
        copy.write_bytes(whole)
        copy_log.write_bytes(whole_log[:cut])
        kept = sum(end <= cut for end in ends)
        assert members(copy) == list(range(1, kept * MEMBERS + 1)), cut


def test_every_page_that_is_spoiled_is_noticed_at_once_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    written(path, 40).close()
    sound = path.read_bytes()
    pages = len(sound) // PAGE_BYTES
    assert pages > 20
    for page in range(pages):
        spoiled = bytearray(sound)
        spoiled[page * PAGE_BYTES : page * PAGE_BYTES + 64] = bytes(64)
        path.write_bytes(spoiled)
        with pytest.raises(UnusableStateError, match=r"is damaged .* restore it from a backup"):
            RowStore(path)
        assert path.read_bytes() == spoiled


@pytest.mark.parametrize("content", [b"", b"\0" * 100_000, b"these are somebody's notes\n" * 1_000])
def test_a_file_that_is_not_a_database_of_a_module_is_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "module.db"
    path.write_bytes(content)
    with pytest.raises(UnusableStateError):
        RowStore(path)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()
    with pytest.raises(UnusableStateError, match="no state of a module"):
        RowStore(path)


def test_a_log_without_its_database_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    store = written(path, 1)
    log = Path(f"{path}-wal")
    kept = tmp_path / "kept"
    shutil.copy(log, kept)
    store.close()
    path.unlink()
    shutil.copy(kept, log)
    with pytest.raises(UnusableStateError, match="missing"):
        RowStore(path)
    assert log.read_bytes() == kept.read_bytes()


def test_a_state_whose_creation_was_interrupted_is_created_again(tmp_path: Path) -> None:
    before = written(tmp_path / "before.db", 1)
    shutil.copy(tmp_path / "before.db-wal", tmp_path / "module.new-wal")
    before.close()
    (tmp_path / "module.new").write_bytes(b"half")
    assert members(tmp_path / "module.db") == []
    store = RowStore(tmp_path / "module.db")
    epoch = store.epoch()
    store.close()
    again = RowStore(tmp_path / "module.db")
    assert again.epoch() == epoch
    again.close()


def test_a_missing_folder_is_a_transient_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        RowStore(tmp_path / "nowhere" / "module.db")
    assert not isinstance(caught.value, UnusableStateError)


def test_of_several_writes_of_a_row_in_one_transaction_the_last_one_counts(tmp_path: Path) -> None:
    one, other, third = (SUBMISSION._replace(member=member) for member in (1, 2, 3))
    store = RowStore(tmp_path / "module.db")
    store.commit([Store(row=TaskRow(id=third))], Instant(1))
    store.commit(
        [
            Store(row=TaskRow(id=one, attempt=1)),
            Forget(key=(RowKind.TASK, one)),
            Store(row=TaskRow(id=one, attempt=2)),
            Store(row=TaskRow(id=other)),
            Forget(key=(RowKind.TASK, other)),
            Store(row=TaskRow(id=third, attempt=3)),
            KeepOutput(task=one, name="stdout", body=b"first"),
            KeepOutput(task=one, name="stderr", body=b"kept"),
            KeepOutput(task=one, name="stdout", body=b"last"),
        ],
        Instant(2),
    )
    assert [(row.id, row.attempt) for row in store.members(SUBMISSION)] == [(one, 2), (third, 3)]
    assert (store.output(one, "stdout"), store.output(one, "stderr")) == (b"last", b"kept")
    store.close()


def test_all_members_are_given_in_order_however_many_pages_they_fill(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    numbers = range(1, 3_001)
    others = [SUBMISSION._replace(number=SUBMISSION.number + 1, member=member) for member in (1, 2)]
    rows = [*(SUBMISSION._replace(member=member) for member in numbers), *others]
    store.commit([Store(row=TaskRow(id=task)) for task in rows], Instant(1))
    store.close()
    assert members(tmp_path / "module.db") == list(numbers)


def test_submissions_come_in_pages_that_others_can_read_between_each_with_the_row_of_its_only_task(
    tmp_path: Path,
) -> None:
    store = RowStore(tmp_path / "module.db")
    tried, untried, array = range(1, 301), range(301, 311), range(311, 321)
    ids = [SUBMISSION._replace(number=number) for number in (*tried, *untried, *array)]
    rows: list[Row] = [submission(each, members=2 if each.number in array else 0) for each in ids]
    rows += [TaskRow(id=each) for each in ids if each.number in tried]
    rows += [TaskRow(id=each._replace(member=1)) for each in ids if each.number in array]
    store.commit([Store(row=row) for row in rows], Instant(1))
    pages, last = [], None
    while page := store.submissions(after=last):
        pages.append(page)
        last = page[-1][0].id
    store.close()
    found = [(row.id, None if task is None else task.id) for page in pages for row, task in page]
    assert found == [(each, each if each.number in tried else None) for each in ids]
    assert max(map(len, pages)) < len(ids) / 2


def test_small_outputs_are_forgotten_with_their_tasks(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    tasks = [SUBMISSION._replace(member=member) for member in (1, 2)]
    store.commit([KeepOutput(task=task, name="stdout", body=b"x") for task in tasks], Instant(1))
    store.commit([Forget(key=(RowKind.TASK, tasks[0]))], Instant(2))
    assert [store.output(task, "stdout") for task in tasks] == [None, b"x"]
    store.close()
