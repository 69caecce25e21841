"""What a transaction writes: the final state of each row, and as few statements as deleting takes."""

from pathlib import Path

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import RowKind, TaskRow
from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput, Write, encoded_writes

ARRAY = TaskId(SystemId("left"), Epoch(7), 1)


def member(number: int, *, array: int = 1) -> TaskId:
    return ARRAY._replace(number=array, member=number)


def forgetting(*tasks: TaskId) -> list[Write]:
    return [Forget(key=(RowKind.TASK, task)) for task in tasks]


def test_members_that_follow_each_other_are_deleted_as_one_range() -> None:
    assert len(encoded_writes(forgetting(*map(member, range(1, 257)))).forgotten) == 1
    assert len(encoded_writes(forgetting(member(1), member(2), member(4), member(5))).forgotten) == 2
    assert len(encoded_writes(forgetting(member(1), member(2, array=2))).forgotten) == 2
    submissions: list[Write] = [Forget(key=(RowKind.SUBMISSION, ARRAY._replace(number=each))) for each in (1, 2)]
    assert len(encoded_writes(submissions).forgotten) == 2


def test_a_range_has_no_row_that_is_stored_in_the_same_transaction() -> None:
    writes = [*forgetting(member(1), member(2), member(3)), Store(row=TaskRow(id=member(2)))]
    encoded = encoded_writes(writes)
    assert len(encoded.forgotten) == 2
    assert [key for _, key, _ in encoded.stored] == [encoded_writes(forgetting(member(2))).forgotten[0][1]]


def test_what_is_beside_a_range_stays_with_its_outputs(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    kept = [member(1), member(300), member(5, array=2), member(0, array=2)]
    gone = [member(each) for each in (2, 3, 299)]
    writes: list[Write] = []
    for task in (*kept, *gone):
        writes += [Store(row=TaskRow(id=task)), KeepOutput(task=task, name="stdout", body=b"text")]
    store.commit(writes, Instant(1))
    store.commit(forgetting(*map(member, range(2, 300))), Instant(2))
    assert [store.task(task) is not None for task in kept] == [True] * 4
    assert [store.task(task) for task in gone] == [None] * 3
    # Two of the array have an output of four bytes left.
    assert store.outputs_bytes(ARRAY) == 2 * 4
    assert store.outputs_bytes(ARRAY._replace(number=2)) == 2 * 4
    store.close()
