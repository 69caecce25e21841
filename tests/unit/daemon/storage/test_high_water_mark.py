"""The mark beside the database: an older copy is detected, and nothing else is mistaken for one."""

import shutil
from pathlib import Path

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.rows import CountersRow
from messiahs.core.model.ids import IdsGiven
from messiahs.core.model.instants import SECOND, Instant
from messiahs.daemon.storage.high_water_mark import Mark
from messiahs.daemon.storage.store import RowStore


def commit(store: RowStore, number: int) -> None:
    store.commit([Store(row=CountersRow(submissions=number, claims=2 * number))], Instant(number * SECOND))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a state with a copy of it beside, and commits after the copy."""
    path = tmp_path / "module.db"
    store = RowStore(path)
    commit(store, 1)
    store.close()
    shutil.copy(path, tmp_path / "copy")
    store = RowStore(path)
    commit(store, 116)
    store.close()
    return path


def forgotten(path: Path) -> IdsGiven | None:
    store = RowStore(path)
    try:
        return store.forgotten
    finally:
        store.close()


def test_a_state_that_was_left_alone_is_no_copy_however_it_was_left(path: Path) -> None:
    assert forgotten(path) is None
    # Never closed, as after kill -9.
    store = RowStore(path)
    commit(store, 117)
    assert forgotten(path) is None
    commit(store, 119)
    assert forgotten(path) is None
    store.close()


def test_a_copy_that_was_put_back_is_noticed_with_all_that_may_have_been_given_out(path: Path) -> None:
    shutil.copy(path.with_name("copy"), path)
    given = forgotten(path)
    assert given is not None
    assert (116 <= given.submissions <= 2_048, 232 <= given.claims <= 2_048) == (True, True)


def test_it_is_noticed_until_something_was_stored_on_top_of_it(path: Path) -> None:
    shutil.copy(path.with_name("copy"), path)
    assert forgotten(path) is not None
    store = RowStore(path)
    assert store.newest() >= 116 * SECOND
    commit(store, 2_049)
    store.close()
    assert forgotten(path) is None


def test_a_log_that_was_cut_short_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    store = RowStore(path)
    for number in range(1, 5):
        commit(store, number)
    whole, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    store.close()
    path.write_bytes(whole)
    Path(f"{path}-wal").write_bytes(log[:-10])
    assert forgotten(path) is not None


def test_a_state_lost_without_its_mark_continues_above_it(path: Path) -> None:
    path.unlink()
    given = forgotten(path)
    assert given is not None
    assert given.submissions >= 116


@pytest.mark.parametrize("content", [None, b"", b"9 9 9 00000000\n"])
def test_a_database_without_the_mark_that_it_had_is_taken_for_a_copy(path: Path, content: bytes | None) -> None:
    mark = path.with_suffix(".mark")
    mark.unlink()
    if content is not None:
        mark.write_bytes(content)
    given = forgotten(path)
    assert given is not None
    assert given.submissions > 116 + 1_024


def test_no_number_is_given_out_that_the_mark_does_not_cover(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    store = RowStore(path)
    for number in (1, 1_024, 1_025, 5_000):
        commit(store, number)
        reached = Mark(path.with_suffix(".mark")).reached
        assert reached is not None
        assert reached.given.submissions >= number
        assert reached.given.claims >= 2 * number
    store.close()


def test_the_mark_follows_a_lone_commit_when_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "module.db"
    store = RowStore(path)
    for nanosecond in (1, 2):
        store.commit([], Instant(10 * SECOND + nanosecond))
    store.follow_with_mark(at_once=True)
    reached = Mark(path.with_suffix(".mark")).reached
    assert reached is not None
    assert reached.newest == 10 * SECOND + 2
    store.close()
