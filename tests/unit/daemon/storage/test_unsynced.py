"""Small files that are stored without a sync, and what becomes of them after a restart of daemon or machine."""

import hashlib
from pathlib import Path

from messiahs.daemon.storage.files import FileStore

CONTENTS = tuple(bytes([number]) * 1_000 for number in range(10))
HASHES = tuple(hashlib.sha256(content).digest() for content in CONTENTS)


def kept_without_sync(folder: Path) -> FileStore:
    store = FileStore(folder)
    assert store.keep_all(CONTENTS, of="cs", is_durable=False) == HASHES
    return store


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_files_outlive_the_daemon(tmp_path: Path) -> None:
    kept_without_sync(tmp_path)
    again = FileStore(tmp_path)
    assert again.missing(HASHES, of="cs") == ()
    assert not (tmp_path / "drafts" / "unsynced").exists()


def test_after_a_failure_of_the_machine_damaged_files_are_brought_again(tmp_path: Path) -> None:
    store = kept_without_sync(tmp_path)
    large = store.keep(b"x" * 70_000, of="cs")
    damage(store.path(HASHES[0]), b"")
    damage(store.path(HASHES[1]), CONTENTS[2])
    (tmp_path / "drafts" / "unsynced").write_text("another boot")
    again = FileStore(tmp_path)
    assert again.missing((*HASHES, large)) == HASHES[:2]
    assert again.missing((*HASHES, large), of="cs") == HASHES[:2]
    assert again.keep_all(CONTENTS[:2], of="cs") == HASHES[:2]
    assert FileStore(tmp_path).missing(HASHES, of="cs") == ()


def test_a_file_that_must_be_durable_is_written_again_once(tmp_path: Path) -> None:
    store = kept_without_sync(tmp_path)

    def places() -> list[int]:
        return [store.path(sha256).stat().st_ino for sha256 in HASHES]

    before = places()
    store.keep_all(CONTENTS[:5], of="user:ada")
    durable = places()
    assert [one != other for one, other in zip(before, durable, strict=True)] == [True] * 5 + [False] * 5
    store.keep_all(CONTENTS[:5], of="user:bob")
    store.keep_all(CONTENTS, of="xinu", is_durable=False)
    assert places() == durable


def test_the_mark_stays_while_files_are_stored_without_a_sync(tmp_path: Path) -> None:
    store = kept_without_sync(tmp_path)
    assert (tmp_path / "drafts" / "unsynced").exists()
    store.collect(HASHES, unused_seconds=-1)
    assert (tmp_path / "drafts" / "unsynced").exists()
    assert store.missing(HASHES) == ()
