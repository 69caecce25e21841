"""Rows and messages of this tree are read by earlier releases, so that a module can return to one of them."""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NewType, get_args, get_origin, get_type_hints

import pytest

from messiahs.core.interface.actions import Store
from messiahs.core.interface.rows import Row, RowKind
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.tables import is_later
from messiahs.wire import codec
from tests.releases.contents import content, entries, lost
from tests.releases.released import VERSIONS, folder_of, installed

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.mark.processes
def test_a_release_reads_what_this_tree_writes_again(version: str, tmp_path: Path) -> None:
    written = entries(version, "wire.json")
    store = RowStore(Path(shutil.copy(folder_of(version) / "module.db", tmp_path)))
    rows = [row for kind in RowKind for row in store.rows_of(kind)]
    store.commit([Store(row=row) for row in rows], Instant(2_000))
    store.close()
    again = []
    for entry in written:
        message = getattr(codec, f"{entry['message']}_from_bytes")(content(entry, "bytes"))
        sent = getattr(codec, f"{entry['message']}_to_bytes")(message)
        again.append((entry["message"], base64.b64encode(sent).decode()))
    (tmp_path / "again.json").write_text(json.dumps(again))
    release = installed(version, tmp_path / "venv")
    command = [str(release.python), "-P", str(Path(__file__).parent / "reread.py"), str(tmp_path)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, cwd="/").stdout)
    for entry in entries(version, "rows.json"):
        assert not lost(entry["holds"], found["rows"][f"{entry['kind']} {entry['key']}"])
    for entry, message in zip(written, found["messages"], strict=True):
        assert not lost(entry["holds"], message)


def test_rows_of_kinds_that_a_release_knows_hold_no_word_that_it_does_not_know(version: str) -> None:
    """An unknown word in a row would end the release at its start: store it in a row of a later kind."""
    written = entries(version, "rows.json")
    known = {text for entry in written for text in _texts(entry["holds"])}
    rows = {entry["row"] for entry in written}
    found = {each for row in get_args(Row) if row.__name__ in rows for each in _enumerations(row, set())}
    assert {"TaskState", "DenyCode", "Crossed"} <= {each.__name__ for each in found}
    assert not [member for each in found for member in each if member.value not in known]


def test_kinds_of_rows_that_a_release_does_not_know_are_where_it_does_not_look(version: str) -> None:
    known = {entry["kind"] for entry in entries(version, "rows.json")}
    assert all(is_later(kind) for kind in RowKind if kind not in known)


def _texts(held: object) -> Iterator[str]:
    match held:
        case str():
            yield held
        case list():
            yield from (text for each in held for text in _texts(each))
        case dict():
            yield from (text for each in held.values() for text in _texts(each))


def _enumerations(hint: Any, seen: set[object]) -> Iterator[type[Enum]]:  # noqa: ANN401 - any annotation
    """Yield the enumerations in a type."""
    if isinstance(hint, NewType) or hint in seen:
        return
    seen.add(hint)
    if get_origin(hint) is not None:
        yield from (found for each in get_args(hint) for found in _enumerations(each, seen))
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield hint
    elif hasattr(hint, "__annotations__"):
        yield from (found for each in get_type_hints(hint).values() for found in _enumerations(each, seen))
