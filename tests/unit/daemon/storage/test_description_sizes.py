"""How much memory the submissions of each user take, counted as they are stored and forgotten."""

from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import RowKind, SubmissionRow
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.api.submit_room import why_no_room
from messiahs.daemon.storage.description_sizes import LIMIT_BYTES, DescriptionSizes
from messiahs.daemon.storage.store import RowStore

ITEM = "x" * 100
INPUT = InputFile(name="calls", sha256=b"\1" * 32, size_bytes=1)


def array(number: int, *, user: str = "ann", members: int = 1_000) -> SubmissionRow:
    return SubmissionRow(
        id=TaskId(SystemId("left"), Epoch(7), number),
        key=ClientKey(str(number)),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": "left", "user": user})),
        requirement="",
        command=Command(argv=("true", "{}")),
        members=members,
        submitted_at=Instant(1),
        items=(ITEM,) * members,
    )


def test_arrays_count_for_their_user_until_they_are_forgotten_also_after_they_have_ended(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    store.commit([Store(row=array(1)), Store(row=array(2, user="eve"))], Instant(1))
    one = store.sizes.of("ann")
    assert one == -(-one // 1_024) * 1_024
    assert 0 < one - 1_000 * (len(ITEM) + 66) < 2_048
    assert store.sizes.of("eve") == one == store.sizes.of_submission(array(1).id)
    store.commit([Store(row=array(3)), Store(row=replace(array(1), ended_at=Instant(2)))], Instant(2))
    assert 2 * one <= store.sizes.of("ann") <= 2 * one + 1_024
    store.commit([Forget(key=(RowKind.SUBMISSION, array(each).id)) for each in (1, 3)], Instant(3))
    assert (store.sizes.of("ann"), store.sizes.of("eve")) == (0, one)
    store.close()


def test_a_start_counts_what_is_stored(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    store.commit([Store(row=array(1)), Store(row=replace(array(2), ended_at=Instant(2)))], Instant(1))
    before = store.sizes.of("ann")
    store.close()
    again = RowStore(tmp_path / "module.db")
    for _ in again.live_rows():
        pass
    assert again.sizes.of("ann") == before > 0
    again.close()


def test_short_items_and_inputs_of_members_count_as_what_they_take_in_memory() -> None:
    sizes = DescriptionSizes()
    sizes.store(replace(array(1), items=("",) * 1_000), stored_bytes=1_000)
    assert sizes.of("ann") == 64 << 10
    sizes.store(replace(array(1), items=(), member_inputs=((INPUT, INPUT),) * 1_000), stored_bytes=1_000)
    assert sizes.of("ann") == 189 << 10


def test_submissions_count_in_whole_kibibytes() -> None:
    sizes = DescriptionSizes()
    for number, stored_bytes in enumerate((1, 200, 1_024, 1_025, 10_000)):
        sizes.store(array(number, members=0), stored_bytes=stored_bytes)
    assert sizes.of("ann") == (1 + 1 + 1 + 2 + 10) << 10
    sizes.forget(array(number).id for number in range(4))
    assert sizes.of("ann") == 10 << 10


def test_a_user_who_has_too_much_is_told_to_clean_and_others_are_not_refused(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    store.sizes.store(array(1, members=0), stored_bytes=LIMIT_BYTES - 1_024)
    assert why_no_room(store, "ann", is_known=False) == ""
    store.sizes.store(array(2, members=0), stored_bytes=1)
    assert "take 512 MiB of at most 512 MiB" in why_no_room(store, "ann", is_known=False)
    assert "`messiahs clean`" in why_no_room(store, "ann", is_known=False)
    assert why_no_room(store, "ann", is_known=True) == ""
    assert why_no_room(store, "eve", is_known=False) == ""
    store.sizes.forget((array(2).id,))
    assert why_no_room(store, "ann", is_known=False) == ""
    store.close()
