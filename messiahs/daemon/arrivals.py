"""Inputs that other systems bring for tasks of this machine (MESSIAHS 5.3.3).

Only the origin of a claim brings files, with the claim's ticket, and within bounds: a hostile one can fill the disk
no more than its claim allows, and never the last twentieth of it.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from messiahs.core.ids import ClaimId, SystemId, Ticket
from messiahs.core.messages import TaskTransfer
from messiahs.core.rows import GrantedClaimRow
from messiahs.daemon.files import Draft, FileStore
from messiahs.errors import MessiahsError
from messiahs.wire.codec import PutFile, PutRequest

LEAST_LIMIT_BYTES: Final = 16 << 30
"""What a claim may bring though its tasks state a smaller `$disk`, or none."""
_FILE_COUNT_LIMIT: Final = 65_536
_PRESSURE_SECONDS: Final = 300.0
"""When the disk is short, what nobody used for so long goes at once."""


class RefusedFilesError(MessiahsError):
    """A peer may not bring these files: not with this ticket, or not so many."""


class ArrivingFiles:
    """Puts files into the store; `_brought` says what each claim brought, and `_active` which drafts are written."""

    def __init__(
        self,
        files: FileStore,
        *,
        claim_of: Callable[[ClaimId], GrantedClaimRow | None],
        in_use: Callable[[], Collection[bytes]],
    ) -> None:
        self.files = files
        self._claim_of, self._in_use = claim_of, in_use
        self._brought: dict[ClaimId, dict[bytes, int]] = {}
        self._active: dict[tuple[SystemId, bytes], Draft] = {}

    @property
    def arriving(self) -> tuple[ClaimId, ...]:
        """The claims for which files are on their way to here."""
        active = {sha256 for _, sha256 in self._active}
        return tuple(claim for claim, files in self._brought.items() if not active.isdisjoint(files))

    async def keep(self, peer: SystemId, transfer: TaskTransfer, contents: tuple[bytes, ...], /) -> str:
        """Store small files, and say what the transfer's tasks lack; the core judges a transfer without a right."""
        try:
            claim = self._claim_for(peer, transfer.claim, transfer.ticket)
        except RefusedFilesError:
            return ""
        try:
            if contents:
                await self.admit(claim, [PutFile(hashlib.sha256(one).digest(), len(one)) for one in contents])
            for content in contents:
                await asyncio.to_thread(self.files.keep, content)
        except MessiahsError as error:
            return str(error)
        missing = self.files.missing(one.sha256 for task in transfer.tasks for one in task.command.inputs)
        return f"{len(missing)} of its files are not here" if missing else ""

    def receive(self, peer: SystemId, request: PutRequest) -> "FilesReceipt":
        """Take files from the origin of a claim; `RefusedFilesError` for anyone else."""
        return FilesReceipt(self, peer, request, claim=self._claim_for(peer, request.claim, request.ticket))

    async def admit(self, claim: GrantedClaimRow, files: Iterable[PutFile]) -> None:
        """Reserve room for files; `RefusedFilesError` if the claim or the disk has none."""
        lacking = [one for one in files if self.files.size(one.sha256) is None]
        await self._admit(claim, lacking)
        self._brought.setdefault(claim.id, {}).update(lacking)

    def open_draft(self, peer: SystemId, file: PutFile) -> Draft:
        """Go on with a file that a peer brings; whoever was at it before, on a broken stream, is stopped."""
        earlier = self._active.pop((peer, file.sha256), None)
        if earlier is not None:
            earlier.close()
        draft = self.files.draft(file.sha256, size_bytes=file.size_bytes, of=peer)
        self._active[peer, file.sha256] = draft
        return draft

    def close_draft(self, peer: SystemId, file: PutFile, *, draft: Draft) -> None:
        """Let go of a file."""
        draft.close()
        if self._active.get((peer, file.sha256)) is draft:
            del self._active[peer, file.sha256]

    def forget_ended(self) -> None:
        """Count no more for claims that have ended."""
        self._brought = {claim: files for claim, files in self._brought.items() if self._claim_of(claim) is not None}

    def _claim_for(self, peer: SystemId, claim_id: ClaimId, ticket: Ticket) -> GrantedClaimRow:
        claim = self._claim_of(claim_id)
        if claim is None or claim.origin != peer or claim.ticket != ticket:
            raise RefusedFilesError(f"{peer} has no ticket for {claim_id}")
        return claim

    async def _admit(self, claim: GrantedClaimRow, lacking: Collection[PutFile]) -> None:
        problem = self._shortage(claim, lacking)
        if problem:
            await asyncio.to_thread(self.files.collect, self._in_use(), unused_seconds=_PRESSURE_SECONDS)
            problem = self._shortage(claim, lacking)
        if problem:
            raise RefusedFilesError(problem)

    def _shortage(self, claim: GrantedClaimRow, lacking: Collection[PutFile]) -> str:
        active = {sha256 for _, sha256 in tuple(self._active)}
        brought = {
            sha256: size
            for sha256, size in self._brought.get(claim.id, {}).items()
            if sha256 in active or self.files.size(sha256) is not None
        }
        self._brought[claim.id] = brought
        disk = claim.tdv.description().get("disk")
        limit = max(LEAST_LIMIT_BYTES, claim.places * disk if isinstance(disk, int) else 0)
        wanted = sum(one.size_bytes for one in lacking)
        if sum(brought.values()) + wanted > limit or len(brought) + len(lacking) > _FILE_COUNT_LIMIT:
            return f"the tasks of {claim.id} may bring {limit} bytes of files"
        if wanted > self.files.free_bytes():
            return f"the disk of {claim.id.executor} has no room for {wanted} bytes of files"
        return ""


class FilesReceipt:
    """Files that come on one stream, in the order of the request (mutable)."""

    def __init__(self, arrivals: ArrivingFiles, peer: SystemId, request: PutRequest, *, claim: GrantedClaimRow) -> None:
        self._arrivals, self._peer, self._request, self._claim = arrivals, peer, request, claim
        self._lacking: deque[tuple[PutFile, int]] = deque()
        self._draft: Draft | None = None

    async def begin(self) -> tuple[int, ...]:
        """Say how much of each file is here."""
        await self._arrivals.admit(self._claim, self._request.files)
        offsets = await asyncio.to_thread(self._offsets)
        store = self._arrivals.files
        self._lacking.extend(
            (one, offset)
            for one, offset in zip(self._request.files, offsets, strict=True)
            if store.size(one.sha256) is None
        )
        await self._go_on()
        return offsets

    async def add(self, content: bytes) -> None:
        """Take the next piece."""
        assert self._draft is not None, "a piece comes only while a file is lacking"
        await asyncio.to_thread(self._draft.add, content)
        if self._draft.offset_bytes == self._draft.size_bytes:
            await self._finish()
            await self._go_on()

    async def close(self) -> None:
        """Let go; what came of an incomplete file stays for a while."""
        if self._draft is not None:
            self._arrivals.close_draft(self._peer, self._lacking[0][0], draft=self._draft)
            self._draft = None

    async def _go_on(self) -> None:
        """Open the next file that lacks something."""
        while self._lacking:
            file, offset = self._lacking[0]
            self._draft = await asyncio.to_thread(self._arrivals.open_draft, self._peer, file)
            if self._draft.offset_bytes != offset:
                raise RefusedFilesError("a file is brought twice at once")
            if offset < file.size_bytes:
                return
            await self._finish()

    async def _finish(self) -> None:
        assert self._draft is not None, "a file that is finished was open"
        await asyncio.to_thread(self._draft.finish)
        file, _ = self._lacking[0]
        self._arrivals.close_draft(self._peer, file, draft=self._draft)
        self._draft = None
        self._lacking.popleft()

    def _offsets(self) -> tuple[int, ...]:
        return tuple(map(self._offset, self._request.files))

    def _offset(self, file: PutFile) -> int:
        store = self._arrivals.files
        size = store.size(file.sha256)
        if size is not None and size != file.size_bytes:
            raise RefusedFilesError(f"{file.sha256.hex()} has {size} bytes")
        offset = store.offset(file.sha256, of=self._peer)
        if offset > file.size_bytes:
            store.draft(file.sha256, size_bytes=0, of=self._peer).discard()
            return 0
        return offset
