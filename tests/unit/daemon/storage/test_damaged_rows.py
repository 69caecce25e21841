"""Flipped bits inside rows and facts, which SQLite does not detect."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.clock import BootOffset
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import UnusableStateError
from messiahs.trace.format.rows import encode_row

TASK = TaskRow(id=TaskId(SystemId("left"), Epoch(7), 1), executed_on="right")
FACTS = ("epoch", "newest", "boot_offset")
CHECK_BYTES = 5
"""A format number and a checksum stand before every row and note."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "module.db"
    store = RowStore(path)
    store.write_with_next(BootOffset(boot="b007", offset_ns=-12))
    store.commit([Store(row=TASK)], Instant(1))
    store.close()
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def flipped(content: bytes) -> Iterator[bytes]:
    for place in range(8 * len(content)):
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << place % 8
        yield bytes(spoiled)


def test_a_row_with_a_flipped_bit_is_noticed_when_the_state_is_opened(path: Path) -> None:
    _, _, body = encode_row(TASK)
    # The first byte is the release that wrote it.
    for spoiled in [*flipped(body)][8::50]:
        change(path, "UPDATE rows SET body = ?", spoiled)
        with pytest.raises(UnusableStateError, match=r"module\.db: .* restore the state directory from a backup"):
            RowStore(path)


def test_a_row_that_became_a_number_is_noticed(path: Path) -> None:
    change(path, "UPDATE rows SET body = 7")
    with pytest.raises(UnusableStateError, match="bytes"):
        RowStore(path)


@pytest.mark.parametrize("name", FACTS)
def test_every_flipped_bit_of_a_note_is_noticed(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        ((stored,),) = connection.execute("SELECT value FROM facts WHERE name = ?", (name,))
    for spoiled in flipped(stored):
        change(path, "UPDATE facts SET value = ? WHERE name = ?", spoiled, name)
        with pytest.raises(UnusableStateError, match="damaged"):
            RowStore(path)


def test_a_state_of_the_release_before_has_no_checksums_and_is_read_and_gets_them(path: Path) -> None:
    store = RowStore(path)
    epoch, newest, offset = store.epoch(), store.newest(), store.boot_offset()
    store.close()
    change(path, "DELETE FROM facts WHERE name = 'marked'")
    path.with_suffix(".mark").unlink()
    change(path, "UPDATE facts SET value = substr(value, ?)", CHECK_BYTES + 1)
    change(path, "UPDATE rows SET body = X'01' || substr(body, ?)", CHECK_BYTES + 1)
    store = RowStore(path)
    assert (store.epoch(), store.newest(), store.boot_offset()) == (epoch, newest, offset)
    assert store.task(TASK.id) == TASK
    assert store.forgotten is None
    store.commit([Store(row=TASK)], Instant(2))
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        ((body,),) = connection.execute("SELECT body FROM rows")
    assert body == encode_row(TASK)[2]
