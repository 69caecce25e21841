"""Files by content: inputs of local users' tasks, of tasks that run here, and of those that pass (MESSIAHS 5.3.3).

A file is named by its SHA-256 and never changes. It arrives as a draft, which becomes a file when it is complete, has
the right hash, and is durable; small inputs of attempts need not be durable. Each supplier of a file brings all of its
bytes once, also if the file is stored already, so that no task gets a file of which its user knows only the hash.
"""

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import AsyncIterable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from messiahs.config.disk import can_sync_disks, free_files, spare_bytes, sync_disk
from messiahs.config.whole_files import sync_folder
from messiahs.core.model.ids import SystemId
from messiahs.daemon.storage.contents import DRAFTS, HEX_DIGITS, adopt_contents, contents_folder
from messiahs.daemon.storage.drafts import Draft, WrongContentError, problem
from messiahs.daemon.storage.sources import FileSource
from messiahs.daemon.storage.suppliers import Amount, Suppliers, neighbor_of
from messiahs.daemon.storage.unsynced import SMALL_BYTES, Unsynced
from messiahs.executor.protocol.layout import file_name

PIECE_BYTES: Final = 960 << 10
_SUPPLIERS: Final = "suppliers"
_UNSYNCED: Final = "unsynced"
_DIGEST_DIGITS: Final = 16
_ANY_SUFFIX: Final = "[0-9a-f]" * 2 * _DIGEST_DIGITS
_UNNAMED: Final = "tmp"
"""Suffix of what is written at once, and never continued."""
_LEAST_COUNTED_BYTES: Final = 64 << 10
"""A cache counts small files as this large, because it would otherwise hold any number of them."""
PRESSURE_SECONDS: Final = 300.0
"""When room is short, files that were unused for this long are deleted."""
_GROUP_FILES: Final = 8
"""From this number on, files are synced together with their disk; fewer are synced one by one."""


class FileStore:
    """A folder of files, which tasks read and only this module writes: drafts and contents are in folders below it.

    Methods need no event loop, and slow ones belong into a thread. Disk errors are `StoreError`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._drafts = root / DRAFTS
        try:
            self._drafts.mkdir(mode=0o700, exist_ok=True)
            self.contents = contents_folder(root)
            adopt_contents(root, self.contents)
        except OSError as error:
            raise problem(self._drafts, error) from error
        self._lock = threading.Lock()
        self._suppliers = Suppliers(self._drafts / _SUPPLIERS, self.size)
        self._unsynced = Unsynced(self._drafts / _UNSYNCED)
        try:
            self._suppliers.forget(self._unsynced.recover(self.contents))
        except OSError as error:
            raise problem(self._drafts, error) from error

    def path(self, sha256: bytes) -> Path:
        """Return the path of a file, whether it exists or not."""
        return self.contents / file_name(sha256)

    def size(self, sha256: bytes) -> int | None:
        """Return the size of a file; None if it is missing."""
        try:
            return self.path(sha256).stat().st_size
        except OSError:
            return None

    def size_for(self, supplier: str, sha256: bytes) -> int | None:
        """Return the size of a file that this supplier brought; None if it is missing, or was brought by others."""
        return self.size(sha256) if self._suppliers.has(sha256, supplier) else None

    def missing(self, hashes: Iterable[bytes], *, of: str | None = None) -> tuple[bytes, ...]:
        """Return the missing files; the retention time of the others starts again.

        With a supplier (`of`), a file that only others brought counts as missing.
        """
        return tuple(sha256 for sha256 in dict.fromkeys(hashes) if not self._is_here(sha256, of=of))

    def keep(self, content: bytes, *, of: str = "") -> bytes:
        """Store a small file of a supplier and return its hash."""
        (sha256,) = self.keep_all([content], of=of)
        return sha256

    def keep_all(
        self, contents: Sequence[bytes], *, of: str = "", expected: Sequence[bytes] = (), is_durable: bool = True
    ) -> tuple[bytes, ...]:
        """Store small files, all or none, with one sync of the disk if they are many, and return their hashes.

        `WrongContentError` if these are not the `expected` hashes. Files that are not durable may be lost if the
        machine fails: that is right where their attempts are lost with them.
        """
        hashes = tuple(hashlib.sha256(content).digest() for content in contents)
        for came, announced in zip(hashes, expected, strict=False):
            if came != announced:
                raise WrongContentError(f"the content received as {file_name(announced)} is another file")
        found = dict(zip(hashes, contents, strict=True))
        lacking = {one: content for one, content in found.items() if not self._has(one, is_durable=is_durable)}
        self._write_all(lacking, is_durable=is_durable)
        self._suppliers.note(hashes, of)
        return hashes

    def _write_all(self, contents: Mapping[bytes, bytes], *, is_durable: bool) -> None:
        if not contents:
            return
        if not is_durable:
            self._mark_unsynced(contents.keys())
        suffix = f"{os.urandom(16).hex()}.{_UNNAMED}"
        drafts = {sha256: f"{self._drafts}/{file_name(sha256)}.{suffix}" for sha256 in contents}
        is_group = is_durable and len(contents) >= _GROUP_FILES and can_sync_disks()
        try:
            for sha256, path in drafts.items():
                _write_new(path, contents[sha256], is_synced=is_durable and not is_group)
            if is_group:
                sync_disk(self._drafts)
            for sha256, path in drafts.items():
                os.replace(path, f"{self.contents}/{file_name(sha256)}")  # noqa: PTH105 - for each of thousands of files
            if is_durable:
                sync_folder(self.contents)
                self._unsynced.remove(contents.keys())
        except OSError as error:
            for path in drafts.values():
                Path(path).unlink(missing_ok=True)
            raise problem(self._drafts / "x", error) from error

    def _mark_unsynced(self, hashes: Collection[bytes]) -> None:
        try:
            self._unsynced.add(hashes)
        except OSError as error:
            raise problem(self._drafts / _UNSYNCED, error) from error

    async def put(
        self, sha256: bytes, pieces: AsyncIterable[bytes | memoryview], *, limit_bytes: int, of: str = ""
    ) -> int:
        """Store a file of at most `limit_bytes` and return its size; `WrongContentError` if it is another one.

        A file that cannot be stored leaves nothing behind. Pieces of a file that this supplier (`of`) brought before
        are read and ignored.
        """
        size = self.size_for(of, sha256) if self._touch(sha256) else None
        if size is not None:
            async for _ in pieces:
                pass
            return size
        path = self._drafts / f"{file_name(sha256)}.{os.urandom(16).hex()}.{_UNNAMED}"
        draft = await asyncio.to_thread(self._draft, path, sha256, size_bytes=limit_bytes, of=of)
        try:
            async for piece in pieces:
                await asyncio.to_thread(draft.add, piece)
            draft.size_bytes = draft.offset_bytes
            await asyncio.to_thread(draft.finish)
        finally:
            await asyncio.to_thread(draft.discard)
        return draft.size_bytes

    def open(self, sha256: bytes, offset: int) -> FileSource:
        """Open a file at an offset; an `OSError` if it is missing."""
        return FileSource(self.path(sha256), offset)

    def drafts(self, *, of: str) -> dict[str, int]:
        """Return the incomplete files of a supplier: sizes by draft name, the oldest first."""
        return self._found_drafts(_suffix(of))

    def drafts_behind(self, neighbor: SystemId) -> dict[str, int]:
        """Return the incomplete files of a neighbor and of all suppliers behind it, as `drafts` does."""
        return self._found_drafts(f"{_digest(neighbor)}*")

    def drop_interrupted(self, excess_bytes: int, *, kept: Collection[str]) -> None:
        """Remove drafts of so many bytes, if there are so many, except those in `kept`.

        Those of the neighbor that has most of them go first, and of these the oldest.
        """
        found = {name: size for name, size in self._found_drafts(_ANY_SUFFIX).items() if name not in kept}
        if sum(map(counted_bytes, found.values())) < excess_bytes:
            return
        piles: dict[str, list[tuple[str, int]]] = {}
        for name, size in found.items():
            neighbor = name.partition(".")[2][:_DIGEST_DIGITS]
            piles.setdefault(neighbor, []).append((name, size))
        while excess_bytes > 0:
            largest = max(piles, key=lambda each: sum(size for _, size in piles[each]))
            name, size = piles[largest].pop(0)
            self.drop_drafts([name])
            excess_bytes -= counted_bytes(size)
            if not piles[largest]:
                del piles[largest]

    def _found_drafts(self, suffix: str) -> dict[str, int]:
        found: list[tuple[float, str, int]] = []
        try:
            paths = list(self._drafts.glob(f"*.{suffix}"))
        except OSError as error:
            raise problem(self._drafts / suffix, error) from error
        for path in paths:
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, path.name, status.st_size))
        return {name: size for _, name, size in sorted(found)}

    def drop_drafts(self, names: Iterable[str]) -> None:
        """Remove drafts that are not being written."""
        for name in names:
            with suppress(OSError):
                (self._drafts / name).unlink()

    def draft(self, sha256: bytes, *, size_bytes: int, of: str, is_durable: bool = True) -> "Draft":
        """Begin the draft of a supplier (`of`), or continue its earlier one.

        Only a small file need not be durable, as in `keep_all`; it does not replace a durable one.
        """
        is_durable = is_durable or (self.size(sha256) is not None and not self._unsynced.has(sha256))
        if not is_durable:
            assert size_bytes <= SMALL_BYTES, "damaged large files are not looked for"
            self._mark_unsynced((sha256,))
        draft = self._draft(self._drafts / draft_name(sha256, of), sha256, size_bytes=size_bytes, of=of)
        draft.is_durable = is_durable
        return draft

    def _draft(self, path: Path, sha256: bytes, *, size_bytes: int, of: str) -> "Draft":
        note = partial(self._suppliers.note, (sha256,), of)
        return Draft(path, self.path(sha256), sha256=sha256, size_bytes=size_bytes, on_stored=note)

    def offset(self, sha256: bytes, *, of: str) -> int:
        """Return how many bytes of a file a supplier has brought: all of it, or its draft."""
        size = self.size_for(of, sha256) if self._touch(sha256) else None
        if size is not None:
            return size
        try:
            return (self._drafts / draft_name(sha256, of)).stat().st_size
        except OSError:
            return 0

    def free_bytes(self) -> int:
        """Return the free bytes on the disk that files of this store may take; negative: so many must become free."""
        return spare_bytes(self.root)

    def free_files(self) -> int | None:
        """Return how many files the disk can still have; None: it has no such number."""
        return free_files(self.root)

    def held_by(self, supplier: str, *, is_counted_again: bool = False) -> Amount:
        """Return what a supplier brought of the files that are here: counted once, or again if the caller wants that.

        Files that somebody removed by hand count until then.
        """
        return self._suppliers.held_by(supplier, is_counted_again=is_counted_again)

    def collect(self, in_use: Collection[bytes], *, unused_seconds: float, cache_bytes: int = 0) -> int:
        """Delete files and drafts that were unused for this long, and return their number; those `in_use` stay.

        Of the files that are not in use, the most recently used ones stay, up to `cache_bytes` together with the drafts
        that stay; each counts as at least 64 KiB.
        """
        before = time.time() - unused_seconds
        dropped = self._drop_old_drafts(before)
        room, old = cache_bytes - self._draft_bytes(), []
        for path, found in sorted(self._unused(in_use), key=lambda each: each[1].st_mtime, reverse=True):
            room -= counted_bytes(found.st_size)
            if room < 0:
                old.append(path)
        gone = [path for path in old if self._delete(path, before)]
        self._forget(gone)
        return len(gone) + dropped

    def make_room(
        self,
        wanted_bytes: int,
        in_use: Collection[bytes],
        *,
        unused_seconds: float,
        spent: Mapping[bytes, float],
    ) -> None:
        """Delete files until so many bytes are free, the least recently used first; those `in_use` stay.

        They were unused for this long, or are `spent`: not used since that time. Drafts of that age go first.
        """
        before = time.time() - unused_seconds
        self._drop_old_drafts(before)
        excess_bytes = wanted_bytes - self.free_bytes()
        gone = []
        for path, found in sorted(self._unused(in_use), key=lambda each: each[1].st_mtime):
            if excess_bytes <= 0:
                break
            if self._delete(path, max(before, spent.get(bytes.fromhex(path.name), before))):
                excess_bytes -= found.st_size
                gone.append(path)
        self._forget(gone)

    def _drop_old_drafts(self, before: float) -> int:
        drafts = [path for path in self._drafts.iterdir() if path.name not in {_SUPPLIERS, _UNSYNCED}]
        return sum(self._delete(path, before) for path in drafts)

    def _forget(self, gone: Iterable[Path]) -> None:
        hashes = [bytes.fromhex(path.name) for path in gone]
        self._suppliers.forget(hashes)
        self._unsynced.remove(hashes)

    def cached_bytes(self, in_use: Collection[bytes]) -> int:
        """Return the size of all files that are not in use, and of all drafts; each counts as at least 64 KiB."""
        return sum(counted_bytes(found.st_size) for _, found in self._unused(in_use)) + self._draft_bytes()

    def _draft_bytes(self) -> int:
        return sum(map(counted_bytes, self._found_drafts("*").values()))

    def _unused(self, in_use: Collection[bytes]) -> list[tuple[Path, os.stat_result]]:
        kept = {file_name(sha256) for sha256 in in_use}
        found = []
        try:
            with os.scandir(self.contents) as entries:
                listed = [one for one in entries if len(one.name) == HEX_DIGITS and one.name not in kept]
        except OSError as error:
            raise problem(self._drafts, error) from error
        for entry in listed:
            with suppress(OSError):
                found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
        return found

    def _has(self, sha256: bytes, *, is_durable: bool) -> bool:
        return self._touch(sha256) and not (is_durable and self._unsynced.has(sha256))

    def _is_here(self, sha256: bytes, *, of: str | None) -> bool:
        return (of is None or self._suppliers.has(sha256, of)) and self._touch(sha256)

    def _touch(self, sha256: bytes) -> bool:
        with self._lock:
            try:
                os.utime(self.path(sha256))
            except OSError:
                return False
        return True

    def _delete(self, path: Path, before: float) -> bool:
        with self._lock, suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
                # Until the next start, one of release 0.1.0 has a second name there.
                (self.root / path.name).unlink(missing_ok=True)
                return True
        return False


def _write_new(path: str, content: bytes, *, is_synced: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, 0o444)
        if is_synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def counted_bytes(size_bytes: int) -> int:
    """Return as how much a file of this size counts in a cache."""
    return max(size_bytes, _LEAST_COUNTED_BYTES)


def draft_name(sha256: bytes, supplier: str) -> str:
    """Return the name of the draft of a file."""
    return f"{file_name(sha256)}.{_suffix(supplier)}"


@lru_cache(64)
def _suffix(supplier: str) -> str:
    return f"{_digest(neighbor_of(supplier))}{_digest(supplier)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_DIGITS]
