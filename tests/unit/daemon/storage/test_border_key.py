"""The key of a border: it is made once, belongs to its owner alone and to its database, and is never replaced."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.core.border.pseudonyms import epoch_of_key
from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.rows import HiddenSubmissionRow, RowKind
from messiahs.core.model.ids import ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.daemon.storage.border_key import KEY_BYTES, border_key
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import StoreError, UnusableStateError

HIDDEN = TaskId(SystemId("home"), Epoch(1), 5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RowStore]:
    """Make a new state."""
    made = RowStore(tmp_path / "module.db")
    yield made
    made.close()


def show(store: RowStore, key: bytes) -> None:
    """Store an id that was shown with a key."""
    shown = TaskId(SystemId("gate"), epoch_of_key(key), 77)
    row = HiddenSubmissionRow(id=HIDDEN, shown=shown, claims=(ClaimId(SystemId("abroad"), Epoch(2), 1),))
    store.commit([Store(row=row)], Instant(SECOND))


def test_the_first_start_makes_a_key_for_its_owner_alone_and_later_ones_keep_it(
    store: RowStore, tmp_path: Path
) -> None:
    key = border_key(store)
    file = tmp_path / "border.key"
    assert (len(key), file.read_bytes(), file.stat().st_mode & 0o777) == (KEY_BYTES, key, 0o600)
    show(store, key)
    assert border_key(store) == key


def test_another_module_has_another_key(store: RowStore, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = RowStore(tmp_path / "other" / "module.db")
    assert border_key(store) != border_key(other)
    other.close()


def test_a_key_that_others_may_read_is_refused(store: RowStore, tmp_path: Path) -> None:
    border_key(store)
    (tmp_path / "border.key").chmod(0o640)
    with pytest.raises(UnusableStateError, match=r"border\.key has the mode 0640, .*: set it to 0600$"):
        border_key(store)


@pytest.mark.parametrize("content", [b"", b"short", bytes(KEY_BYTES + 1)])
def test_a_key_of_another_length_is_refused_and_stays(store: RowStore, tmp_path: Path, content: bytes) -> None:
    border_key(store)
    file = tmp_path / "border.key"
    file.write_bytes(content)
    with pytest.raises(UnusableStateError, match="does not have exactly 32 bytes: restore it from the backup"):
        border_key(store)
    assert file.read_bytes() == content


def open_files() -> set[str]:
    """Return the paths of what this process has open."""
    paths = set[str]()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            paths.add(str(link.readlink()))
    return paths


def test_what_is_not_a_file_is_refused(store: RowStore, tmp_path: Path) -> None:
    (tmp_path / "border.key").mkdir(mode=0o700)
    with pytest.raises(UnusableStateError, match="cannot be read: Is a directory"):
        border_key(store)
    assert f"{tmp_path}/border.key" not in open_files()
    (tmp_path / "border.key").rmdir()
    (tmp_path / "elsewhere").write_bytes(bytes(KEY_BYTES))
    (tmp_path / "border.key").symlink_to("elsewhere")
    with pytest.raises(UnusableStateError, match="cannot be read: Too many levels"):
        border_key(store)


def test_a_missing_key_is_not_replaced_while_the_database_has_ids_made_with_it(store: RowStore, tmp_path: Path) -> None:
    show(store, border_key(store))
    file = tmp_path / "border.key"
    file.rename(tmp_path / "backup")
    with pytest.raises(UnusableStateError, match=r"border\.key is missing, .*: restore it from the backup"):
        border_key(store)
    assert not file.exists()
    store.commit([Forget(key=(RowKind.HIDDEN_SUBMISSION, HIDDEN))], Instant(2 * SECOND))
    assert border_key(store) != (tmp_path / "backup").read_bytes()


def test_the_key_of_another_database_is_refused(store: RowStore, tmp_path: Path) -> None:
    show(store, b"k" * KEY_BYTES)
    (tmp_path / "border.key").write_bytes(b"x" * KEY_BYTES)
    (tmp_path / "border.key").chmod(0o600)
    with pytest.raises(UnusableStateError, match="is not the key with which ids in the database were made"):
        border_key(store)


def test_a_key_that_cannot_be_written_is_an_error_that_may_pass(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "module.db")
    shutil.rmtree(tmp_path)
    with pytest.raises(
        StoreError, match=r"border\.key cannot be written: .*; check that the disk is not full"
    ) as error:
        border_key(store)
    assert not isinstance(error.value, UnusableStateError)
    store.close()
