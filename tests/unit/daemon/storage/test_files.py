"""The store of files: which are complete, refused, kept and deleted."""

import asyncio
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.daemon.storage.drafts import WrongContentError
from messiahs.daemon.storage.files import FileStore
from messiahs.errors import NoRoomError, StoreError
from tests.descriptors import no_free_descriptor
from tests.sparse_files import resident_pages
from tests.waiting import eventually

CONTENT = b"what a task reads" * 10_000
SHA256 = hashlib.sha256(CONTENT).digest()
NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


async def pieces(content: bytes, step: int = 10_000) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(content), step):
        yield content[start : start + step]


def put(store: FileStore, content: bytes, *, sha256: bytes = SHA256, limit_bytes: int = 1 << 30) -> int:
    return asyncio.run(store.put(sha256, pieces(content), limit_bytes=limit_bytes))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != "suppliers")


def age(path: Path, seconds: int) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_a_file_is_named_by_its_content_and_can_only_be_read(store: FileStore, tmp_path: Path) -> None:
    assert store.missing([SHA256]) == (SHA256,)
    assert put(store, CONTENT) == len(CONTENT)
    assert store.missing([SHA256]) == ()
    assert left_in(tmp_path) == [SHA256.hex()]
    assert store.path(SHA256).read_bytes() == CONTENT
    assert store.path(SHA256).stat().st_mode & 0o777 == 0o444
    assert store.size(SHA256) == len(CONTENT)


def test_a_file_that_is_here_is_put_again_without_harm(store: FileStore, tmp_path: Path) -> None:
    assert [put(store, CONTENT), put(store, b"whatever")] == [len(CONTENT)] * 2
    assert store.keep(CONTENT) == SHA256
    assert left_in(tmp_path) == [SHA256.hex()]


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", b"", b"x" * len(CONTENT)])
def test_another_content_is_refused_and_nothing_is_left_of_it(store: FileStore, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WrongContentError):
        put(store, content)
    assert left_in(tmp_path) == []


def test_more_than_the_limit_is_refused_and_nothing_is_left_of_it(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(WrongContentError, match="larger"):
        put(store, CONTENT, limit_bytes=len(CONTENT) - 1)
    assert left_in(tmp_path) == []


def test_a_sender_that_breaks_off_leaves_nothing(store: FileStore, tmp_path: Path) -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield CONTENT[:1_000]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        asyncio.run(store.put(SHA256, broken(), limit_bytes=1 << 30))
    assert left_in(tmp_path) == []


def test_a_full_disk_says_so_and_nothing_is_left(store: FileStore, tmp_path: Path) -> None:
    with files_of_at_most(50_000):
        with pytest.raises(NoRoomError, match="check that the disk is not full"):
            put(store, CONTENT)
        with pytest.raises(NoRoomError):
            store.keep(CONTENT)
    assert left_in(tmp_path) == []


def test_a_full_disk_also_says_so_if_files_need_not_be_durable(store: FileStore, tmp_path: Path) -> None:
    with files_of_at_most(10):
        with pytest.raises(NoRoomError, match="check that the disk is not full"):
            store.keep_all([b"small"], is_durable=False)
        with pytest.raises(NoRoomError):
            store.draft(SHA256, size_bytes=5, of="cs", is_durable=False)
    assert left_in(tmp_path) == []


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


USES_OF_THE_DISK: tuple[Callable[[FileStore], object], ...] = (
    lambda store: store.keep(CONTENT),
    lambda store: store.keep_all([b"small"], is_durable=False),
    lambda store: store.draft(SHA256, size_bytes=5, of="cs", is_durable=False),
    lambda store: store.drafts(of="sender"),
    lambda store: store.cached_bytes(()),
)


@pytest.mark.parametrize("use", USES_OF_THE_DISK)
def test_too_many_open_files_are_not_called_a_full_disk(
    store: FileStore, tmp_path: Path, use: Callable[[FileStore], object]
) -> None:
    with no_free_descriptor(), pytest.raises(StoreError, match=r"Too many open files$") as caught:
        use(store)
    assert not isinstance(caught.value, NoRoomError)
    assert left_in(tmp_path) == []


def test_the_same_file_may_come_from_several_at_once(store: FileStore, tmp_path: Path) -> None:
    async def all_at_once() -> list[int]:
        return await asyncio.gather(
            *(store.put(SHA256, pieces(CONTENT, 1_000 + step), limit_bytes=1 << 30) for step in range(10))
        )

    assert asyncio.run(all_at_once()) == [len(CONTENT)] * 10
    assert left_in(tmp_path) == [SHA256.hex()]
    assert store.path(SHA256).read_bytes() == CONTENT


def test_a_draft_continues_where_its_sender_left_it(store: FileStore) -> None:
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
    draft.add(CONTENT[:1_000])
    draft.close()
    assert (store.offset(SHA256, of="cs"), store.offset(SHA256, of="xinu")) == (1_000, 0)
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
    assert draft.offset_bytes == 1_000
    draft.add(CONTENT[1_000:])
    draft.finish()
    assert (store.offset(SHA256, of="cs"), store.offset(SHA256, of="xinu")) == (len(CONTENT), 0)


def test_a_draft_that_was_let_go_takes_nothing_more(store: FileStore) -> None:
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
    draft.close()
    with pytest.raises(StoreError):
        draft.add(b"x")


def test_a_draft_damaged_on_disk_is_detected_and_starts_again(store: FileStore, tmp_path: Path) -> None:
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
    draft.add(CONTENT[:1_000])
    draft.close()
    (path,) = (tmp_path / "drafts").glob("*.*")
    path.write_bytes(bytes(1_000))
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="cs")
    draft.add(CONTENT[1_000:])
    with pytest.raises(WrongContentError):
        draft.finish()
    assert store.offset(SHA256, of="cs") == 0


def test_a_draft_may_be_given_up_while_a_thread_writes_it(store: FileStore, tmp_path: Path) -> None:
    draft = store.draft(SHA256, size_bytes=1 << 42, of="cs")
    piece = bytes(1 << 20)
    refused: list[Exception] = []

    def write() -> None:
        try:
            while True:
                draft.add(piece)
        except StoreError as error:
            refused.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    eventually(lambda: draft.offset_bytes >= len(piece), "the first piece")
    draft.discard()
    writer.join()
    assert len(refused) == 1
    assert left_in(tmp_path) == []


def test_what_nobody_names_goes_after_its_time_and_what_is_in_use_stays(store: FileStore, tmp_path: Path) -> None:
    used, old, young = (store.keep(content) for content in (b"used", b"old", b"young"))
    for sha256 in (used, old):
        age(store.path(sha256), 3_700)
    draft = store.draft(SHA256, size_bytes=9, of="cs")
    draft.close()
    (path,) = (tmp_path / "drafts").glob("*.*")
    age(path, 3_700)
    assert store.collect({used}, unused_seconds=3_600) == 2
    assert left_in(tmp_path) == sorted([used.hex(), young.hex()])


def test_a_file_that_was_asked_for_is_kept_for_another_while(store: FileStore) -> None:
    sha256 = store.keep(b"old")
    age(store.path(sha256), 3_700)
    assert store.missing([sha256]) == ()
    assert store.collect(set(), unused_seconds=3_600) == 0


def test_a_file_is_a_hit_only_for_those_who_brought_it(store: FileStore) -> None:
    store.keep(CONTENT, of="cs")
    assert store.missing([SHA256], of="cs") == ()
    assert store.missing([SHA256], of="user:ada") == (SHA256,)
    assert (store.size_for("cs", SHA256), store.size_for("user:ada", SHA256)) == (len(CONTENT), None)
    assert asyncio.run(store.put(SHA256, pieces(CONTENT), limit_bytes=1 << 30, of="user:ada")) == len(CONTENT)
    assert store.missing([SHA256], of="user:ada") == ()


def test_a_supplier_that_only_knows_the_hash_of_a_stored_file_proves_nothing(store: FileStore) -> None:
    store.keep(CONTENT, of="cs")
    with pytest.raises(WrongContentError):
        asyncio.run(store.put(SHA256, pieces(b"x" * len(CONTENT)), limit_bytes=1 << 30, of="user:eve"))
    draft = store.draft(SHA256, size_bytes=len(CONTENT), of="xinu")
    draft.add(b"x" * len(CONTENT))
    with pytest.raises(WrongContentError):
        draft.finish()
    assert store.missing([SHA256], of="user:eve") == store.missing([SHA256], of="xinu") == (SHA256,)
    assert store.path(SHA256).read_bytes() == CONTENT


def test_suppliers_are_known_after_a_restart_and_forgotten_with_their_file(store: FileStore, tmp_path: Path) -> None:
    other = store.keep(b"other", of="cs")
    store.keep(CONTENT, of="user:a name")
    store.keep(CONTENT, of="cs")
    with (tmp_path / "drafts" / "suppliers").open("a") as file:
        file.write("half a li")
    again = FileStore(tmp_path)
    assert again.missing([SHA256, other], of="cs") == again.missing([SHA256], of="user:a name") == ()
    assert again.missing([SHA256], of="user:a") == (SHA256,)
    age(store.path(SHA256), 3_700)
    assert again.collect(set(), unused_seconds=3_600) == 1
    FileStore(tmp_path).keep(CONTENT, of="xinu")
    last = FileStore(tmp_path)
    assert last.missing([SHA256, other], of="cs") == (SHA256,)
    assert last.missing([SHA256], of="xinu") == ()


def test_the_most_recently_used_files_stay_up_to_the_size_of_the_cache(store: FileStore) -> None:
    size = 100_000
    used, oldest, old, recent = (store.keep(bytes([number]) * size) for number in range(4))
    for sha256, seconds in ((used, 9_000), (oldest, 8_000), (old, 6_000), (recent, 5_000)):
        age(store.path(sha256), seconds)
    assert store.cached_bytes({used}) == 3 * size
    assert store.missing([oldest]) == ()
    assert store.collect({used}, unused_seconds=3_600, cache_bytes=2 * size + size // 2) == 1
    assert store.missing([used, oldest, old, recent]) == (old,)
    assert store.collect({used}, unused_seconds=0, cache_bytes=2 * size) == 0


def test_a_cache_does_not_hold_any_number_of_tiny_files(store: FileStore) -> None:
    store.keep_all([bytes([number]) for number in range(20)])
    assert store.cached_bytes(()) == 20 * (64 << 10)
    assert store.collect((), unused_seconds=-1, cache_bytes=5 * (64 << 10)) == 15


@pytest.mark.processes
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    script = """
import asyncio, hashlib, resource, sys
from pathlib import Path
from messiahs.daemon.storage.files import FileStore

async def pieces():
    for _ in range(200):
        yield bytes(1 << 20)

expected = hashlib.sha256()
for _ in range(200):
    expected.update(bytes(1 << 20))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = FileStore(Path(sys.argv[1]))
asyncio.run(store.put(expected.digest(), pieces(), limit_bytes=1 << 30))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000


def test_room_is_made_by_what_was_used_least_lately_of_what_is_old_or_spent(store: FileStore) -> None:
    size = 100_000
    used, asked, spent, old, young = (store.keep(bytes([number]) * size) for number in range(5))
    for sha256, seconds in ((used, 900), (old, 800), (spent, 100), (asked, 90), (young, 10)):
        age(store.path(sha256), seconds)
    ended = {spent: time.time(), asked: time.time() - 95}

    def lacks_after(wanted_bytes: int) -> set[bytes]:
        wanted_bytes += store.free_bytes()
        store.make_room(wanted_bytes, {used}, unused_seconds=300, spent=ended)
        return {sha256 for sha256 in (used, asked, spent, old, young) if store.size(sha256) is None}

    assert lacks_after(0) == set()
    assert lacks_after(1) == {old}
    assert lacks_after(2) == {old, spent}
    assert lacks_after(10 * size) == {old, spent}


def test_files_of_release_0_1_0_are_found_with_their_suppliers(store: FileStore, tmp_path: Path) -> None:
    store.keep(CONTENT, of="cs")
    store.path(SHA256).rename(tmp_path / SHA256.hex())
    store.contents.rmdir()
    for is_left in (True, False):
        again = FileStore(tmp_path)
        assert again.missing([SHA256], of="cs") == ()
        assert again.path(SHA256).read_bytes() == CONTENT
        # A starter of that release may still copy it.
        assert (tmp_path / SHA256.hex()).exists() == is_left


@pytest.mark.processes
def test_who_cannot_list_the_folder_reaches_no_file_of_which_the_hash_is_known(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another account")
    # Whoever may not enter the folder of the tests could not come here.
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o711)
        store = FileStore(folder)
        path = store.path(store.keep(CONTENT, of="cs"))
        for tried, is_open in ((folder / path.name, False), (path, True)):
            read = subprocess.run(
                ["cat", tried], user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, check=False
            )
            assert (read.stdout == CONTENT) == is_open
        listed = subprocess.run(
            ["ls", folder], user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, check=False
        )
        assert listed.returncode != 0
        assert FileStore(folder).path(SHA256) == path
    finally:
        shutil.rmtree(folder)


def test_the_holes_of_a_file_are_read_as_zeros_without_the_kernels_memory(store: FileStore) -> None:
    content = bytes(4 << 20)
    sha256 = hashlib.sha256(content).digest()
    put(store, content, sha256=sha256)
    source, buffer, read = store.open(sha256, 1), memoryview(bytearray(1 << 20)), b""
    while size := source.read_into(buffer):
        read += buffer[:size]
    source.close()
    assert read == content[1:]
    assert resident_pages(store.path(sha256), 3 << 20) == 0
