"""Large arrays in the store: each is read once, and few of them are in memory together."""

from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.actions import Store
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import RowKind, SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.known_submissions import LARGE_BYTES, KnownSubmissions
from messiahs.daemon.storage.store import RowStore

ARRAY = TaskId(SystemId("left"), Epoch(7), 1)
KEY = (RowKind.SUBMISSION, ARRAY)
ITEM = "x" * 1_000


def array(number: int, *, members: int, ended_at: Instant | None = None) -> SubmissionRow:
    return SubmissionRow(
        id=ARRAY._replace(number=number),
        key=ClientKey(str(number)),
        tdv=TDV(()),
        requirement="",
        command=Command(argv=("true", "{}")),
        members=members,
        submitted_at=Instant(1),
        items=(ITEM,) * members,
        ended_at=ended_at,
    )


def test_a_large_array_is_read_once_and_again_after_it_was_replaced(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    row = array(1, members=100)
    store.commit([Store(row=row)], Instant(1))
    assert store.unread_bytes(ARRAY._replace(member=3)) > LARGE_BYTES
    assert store.submission(ARRAY._replace(member=3)) == row
    assert store.unread_bytes(ARRAY) == 0
    assert store.submission(ARRAY) is store.submission(ARRAY)
    ended = replace(row, ended_at=Instant(2))
    store.commit([Store(row=ended)], Instant(2))
    assert store.unread_bytes(ARRAY) > LARGE_BYTES
    assert store.submission(ARRAY) == ended
    store.close()


def test_a_row_that_was_replaced_while_it_was_read_is_not_kept() -> None:
    known, row = KnownSubmissions(), array(1, members=1)
    with known.reading(KEY) as before:
        with known.writing({KEY}), known.reading(KEY) as meanwhile:
            known.add(KEY, row, size_bytes=LARGE_BYTES, reader=meanwhile)
        known.add(KEY, row, size_bytes=LARGE_BYTES, reader=before)
    assert known.get(KEY) is None
    with known.reading(KEY) as after:
        known.add(KEY, row, size_bytes=LARGE_BYTES, reader=after)
    assert known.get(KEY) is row


def test_what_is_kept_is_bounded_by_its_size_and_the_row_used_last_stays() -> None:
    known = KnownSubmissions()
    keys = [(RowKind.SUBMISSION, ARRAY._replace(number=number)) for number in range(1, 41)]
    for key in keys:
        known.get(keys[0])
        with known.reading(key) as reader:
            known.add(key, array(1, members=1), size_bytes=1 << 20, reader=reader)
    kept = [key for key in keys if known.get(key) is not None]
    assert len(kept) == 16
    assert kept[0] == keys[0]
    assert kept[-1] == keys[-1]


def test_a_page_of_large_arrays_ends_with_the_one_that_exceeds_its_size(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    sizes = [150, 150, 2_000, 2_000, 1, 1]
    rows = [array(number, members=members) for number, members in enumerate(sizes, start=1)]
    store.commit([Store(row=row) for row in rows], Instant(1))
    pages, last = [], None
    while page := store.submissions(after=last):
        pages.append([row.id.number for row, _ in page])
        last = page[-1][0].id
    assert pages == [[1, 2], [3], [4], [5, 6]]
    assert list(store.rows_of(RowKind.SUBMISSION)) == rows
    store.close()


def test_a_start_reads_no_items_of_arrays_that_have_ended(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    ended, live = array(1, members=2_000, ended_at=Instant(2)), array(2, members=2_000)
    store.commit([Store(row=ended), Store(row=live)], Instant(1))
    assert list(store.live_rows()) == [replace(ended, items=()), live]
    assert store.submission(ended.id) == ended
    store.close()
