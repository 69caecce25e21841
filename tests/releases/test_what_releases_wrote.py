"""Rows and messages of earlier releases are read by this tree."""

import shutil
from pathlib import Path

import pytest

from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import RowKind, TaskRow, key_of
from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.store import RowStore
from messiahs.trace.format.rows import encode_key
from messiahs.wire import codec
from tests.releases.contents import content, entries, lost
from tests.releases.released import VERSIONS, folder_of

pytestmark = pytest.mark.parametrize("version", VERSIONS)


def opened(version: str, folder: Path) -> RowStore:
    """Open a copy of the database that a release left."""
    return RowStore(Path(shutil.copy(folder_of(version) / "module.db", folder)))


def test_every_row_of_a_release_is_read_with_all_that_it_held(version: str, tmp_path: Path) -> None:
    store = opened(version, tmp_path)
    found = {encode_key(key_of(row)): row for kind in RowKind for row in store.rows_of(kind)}
    written = entries(version, "rows.json")
    assert len(found) == len(written)
    for entry in written:
        row = found[entry["kind"], content(entry, "key")]
        assert type(row).__name__ == entry["row"]
        assert not lost(entry["holds"], row), entry
    store.close()


def test_the_database_of_a_release_has_every_kind_of_row_it_knew_and_tasks_in_every_state(
    version: str, tmp_path: Path
) -> None:
    store = opened(version, tmp_path)
    assert {entry["kind"] for entry in entries(version, "rows.json")} >= set(range(1, 13))
    tasks = [row for row in store.rows_of(RowKind.TASK) if isinstance(row, TaskRow)]
    assert {row.state for row in tasks} == set(TaskState)
    store.close()


def test_facts_and_outputs_of_a_release_are_read(version: str, tmp_path: Path) -> None:
    store = opened(version, tmp_path)
    assert store.newest() == Instant(1_000)
    assert store.output(TaskId(SystemId("name0"), Epoch(1), 1, 1), "stdout") == b"a line\n"
    store.close()


def test_every_message_of_a_release_is_read_with_all_that_it_said(version: str) -> None:
    written = entries(version, "wire.json")
    for entry in written:
        message = getattr(codec, f"{entry['message']}_from_bytes")(content(entry, "bytes"))
        assert not lost(entry["holds"], message), entry
    kinds = {kind for entry in written for kind in entry["kinds"]}
    assert {"Hello", "SchedRequest", "SchedAccept", "TaskStatus", "StatusVector", "TaskTransfer"} <= kinds


def test_what_is_missing_or_another_is_named(version: str) -> None:
    (entry, *_) = (each for each in entries(version, "wire.json") if each["kinds"] == ["Hello"])
    (hello,) = codec.control_from_bytes(content(entry, "bytes"))
    (held,) = entry["holds"]
    assert lost({**held, "colour": "blue"}, hello) == ["it.colour is missing"]
    assert lost({**held, "system": "another"}, hello) == [f"it.system was 'another' and is {held['system']!r}"]
