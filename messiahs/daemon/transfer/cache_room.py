"""Room in the cache of a hop for files that pass (MESSIAHS 5.3.3).

Adding up the cache is a scan of all its files, and neighbors choose how many these are and how often they ask. So the
sum of a scan is used for 10 s, with what was admitted since it began. Whoever does not fit by that sum scans again: one
scan at a time for each neighbor, in a thread of its own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final, TypeVar

from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.daemon.storage.files import PRESSURE_SECONDS, FileStore, counted_bytes, draft_name
from messiahs.daemon.storage.suppliers import neighbor_of
from messiahs.daemon.transfer.scan_turns import ScanTurns
from messiahs.daemon.transfer.underway_files import UnderwayFiles
from messiahs.errors import DeclinedError, StoreError, public_of
from messiahs.wire.codec import PutFile

_VALID_SECONDS: Final = 10.0
"""How long the result of a scan is used."""
_BRIEF_SECONDS: Final = 30.0
"""Files unused for this long are deleted if small files that come with tasks exceed a smaller cache."""
_SPARE_PART: Final = 16
"""A deletion also makes room for what follows: for one part in so many of the cache."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What the cache may use: its size, and a secret with which suppliers are named to other systems.

    `in_use` returns files that are not to be deleted, and `passes` whether a claim passes through here.
    """

    size_bytes: int
    secret: bytes
    in_use: Callable[[], Collection[bytes]]
    passes: Callable[[ClaimId], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    """The size of the cache, and what was on its way and had been admitted when the scan began."""

    cached_bytes: int
    left_bytes: int
    admitted_bytes: int
    ended_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The size of files for which no room could be made, in a cache of this size."""

    wanted_bytes: int
    size_bytes: int
    at_seconds: float


class CacheRoom:
    """Decides which files may be stored; belongs to the event loop."""

    def __init__(self, files: FileStore, cache: Cache, *, own: SystemId, underway: UnderwayFiles) -> None:
        self._files, self._cache, self._own, self._underway = files, cache, own, underway
        self._turns = ScanTurns()
        self._admitted_bytes = 0
        """Size of all files that were admitted since the start, some of them more than once."""
        self._scan: _Scan | None = None
        self._refusals: dict[str, _Refusal] = {}
        """The latest of each supplier: for one supplier, files may stay that make room for another."""

    async def has(self, supplier: str, files: Collection[PutFile], *, least_bytes: int = 0) -> bool:
        """Whether files of a supplier may be stored now, in a cache of at least some size.

        If necessary, cached files are deleted that were unused for a while, then files whose transfer was interrupted.
        A `DeclinedError` if the files that are stored cannot be listed. There is no await after the check, so two
        streams cannot get the same room.
        """
        if not files:
            return True
        size_bytes = max(self._cache.size_bytes, least_bytes)
        answer = self._known(supplier, files, size_bytes=size_bytes)
        if answer is None:
            async with self._turns.turn(neighbor_of(supplier)):
                answer = self._known(supplier, files, size_bytes=size_bytes)
                if answer is None:
                    answer = await self._make(supplier, files, size_bytes=size_bytes)
        if answer:
            self._admitted_bytes += _counted(files)
        return answer

    def _known(self, supplier: str, files: Collection[PutFile], *, size_bytes: int) -> bool | None:
        """Return what the latest scan tells about files; None if it does not tell, or is too old.

        Files that local users and tasks of this machine brought since then are not considered, except while they are
        on their way.
        """
        wanted, since = _size_of(files), monotonic() - _VALID_SECONDS
        scan, refusal = self._scan, self._refusals.get(supplier)
        if scan is not None and scan.ended_seconds > since:
            left = self._underway.left_bytes
            added = max(scan.left_bytes + self._admitted_bytes - scan.admitted_bytes, left)
            has_space = wanted + left <= self._files.free_bytes()
            if has_space and _counted(files) + scan.cached_bytes + added <= size_bytes:
                return True
        if refusal is not None and refusal.at_seconds > since:
            return False if refusal.wanted_bytes <= wanted and size_bytes <= refusal.size_bytes else None
        return None

    async def _make(self, supplier: str, files: Collection[PutFile], *, size_bytes: int) -> bool:
        """Make room for files; return whether there is some."""
        excess, cached = await self._excess(supplier, files, size_bytes=size_bytes)
        if excess > 0 and _size_of(files) + self._underway.left_bytes > size_bytes:
            return False
        if excess > 0:
            unused_seconds = PRESSURE_SECONDS if self._cache.size_bytes == size_bytes else _BRIEF_SECONDS
            stays = cached - excess - size_bytes // _SPARE_PART
            in_use = self._cache.in_use()
            await _run(partial(self._files.collect, in_use, unused_seconds=unused_seconds, cache_bytes=stays))
            excess, _ = await self._excess(supplier, files, size_bytes=size_bytes)
        if excess > 0:
            kept = self._underway.drafts | {draft_name(one.sha256, supplier) for one in files}
            await _run(partial(self._files.drop_interrupted, excess, kept=kept))
            excess, _ = await self._excess(supplier, files, size_bytes=size_bytes)
        if excess > 0:
            self._note_refusal(supplier, _size_of(files), size_bytes=size_bytes)
        return excess <= 0

    def _note_refusal(self, supplier: str, wanted_bytes: int, *, size_bytes: int) -> None:
        now = monotonic()
        for name in [name for name, each in self._refusals.items() if each.at_seconds <= now - _VALID_SECONDS]:
            del self._refusals[name]
        self._refusals[supplier] = _Refusal(wanted_bytes=wanted_bytes, size_bytes=size_bytes, at_seconds=now)

    async def _excess(self, supplier: str, files: Collection[PutFile], *, size_bytes: int) -> tuple[int, int]:
        """Scan, and return by how many bytes files exceed the cache or the disk, and the size of what the cache has."""
        admitted, left_before = self._admitted_bytes, self._underway.left_bytes
        try:
            cached, drafts = await _run(partial(self._stored, supplier, self._cache.in_use()))
        except StoreError as error:
            raise DeclinedError(f"{self._own}: {public_of(error)}", is_brief=True) from error
        self._scan = _Scan(
            cached_bytes=cached, left_bytes=left_before, admitted_bytes=admitted, ended_seconds=monotonic()
        )
        left = sum(one.size_bytes - drafts.get(draft_name(one.sha256, supplier), 0) for one in files)
        needed = left + self._underway.left_bytes
        return max(needed + cached - size_bytes, needed - self._files.free_bytes()), cached

    def _stored(self, supplier: str, in_use: Collection[bytes]) -> tuple[int, dict[str, int]]:
        return self._files.cached_bytes(in_use), self._files.drafts(of=supplier)


async def _run(work: Callable[[], _Result]) -> _Result:
    """Run a scan to its end: it does not take long, so a cancellation waits for it."""
    return await in_own_thread(work, stop=lambda: None)


def _size_of(files: Collection[PutFile]) -> int:
    return sum(one.size_bytes for one in files)


def _counted(files: Collection[PutFile]) -> int:
    return sum(counted_bytes(one.size_bytes) for one in files)
