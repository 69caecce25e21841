"""Inputs that other systems send for tasks of this machine (MESSIAHS 5.3.3).

Only those who may use the ticket of a claim may send files, within bounds: a hostile one can fill the disk only as far
as its claim allows, and never its last twentieth.
"""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from messiahs.channel.byte_streams.byte_threads import in_own_thread
from messiahs.channel.contract import ByteSource, Peer
from messiahs.core.interface.limits import INPUT_LIMIT_BYTES
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.model.ids import ClaimId, Ticket
from messiahs.core.relay.byte_route import may_access
from messiahs.daemon.storage.drafts import Draft
from messiahs.daemon.storage.files import FileStore, draft_name
from messiahs.daemon.storage.suppliers import neighbor_of, supplier_of
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.brought_files import BroughtFiles
from messiahs.daemon.transfer.claim_suppliers import ClaimSuppliers
from messiahs.daemon.transfer.input_room import InputRoom, Spent
from messiahs.daemon.transfer.named_inputs import NamedInputs
from messiahs.daemon.transfer.scan_turns import ScanTurns
from messiahs.daemon.transfer.underway_files import UnderwayFiles
from messiahs.errors import ChannelError, DeclinedError, MessiahsError, public_of
from messiahs.wire.codec import PutFile, PutRequest

_FILE_COUNT_LIMIT: Final = 65_536
_GROUP_FILES: Final = 256
_GROUP_BYTES: Final = 4 << 20
"""Small files on one stream are stored in groups of at most this many."""


class RefusedFilesError(DeclinedError):
    """A peer may not send these files: its ticket is wrong, or they are too many."""


class ArrivingFiles:
    """Stores received files, and counts what each claim has sent, including incomplete files.

    `_active` has the drafts that are being written, and `_receipts` the streams with files. Threads change `_active`,
    so it is used only under its lock; everything else belongs to the event loop.
    """

    def __init__(
        self,
        files: FileStore,
        *,
        claim_of: Callable[[ClaimId], GrantedClaimRow | None],
        in_use: Callable[[], Collection[bytes]],
        cache_bytes: int = 0,
        spent: Callable[[], Callable[[], Spent]] = lambda: dict,
    ) -> None:
        self.files, self.cache_bytes = files, cache_bytes
        self.underway = UnderwayFiles()
        self.room = InputRoom(files, self.underway, in_use=in_use, spent=self._finding_spent)
        self._spent, self._named = spent, NamedInputs()
        self._claim_of, self.in_use = claim_of, in_use
        self._suppliers = ClaimSuppliers(lambda claim: claim_of(claim) is not None)
        self._brought = BroughtFiles()
        self._turns = ScanTurns()
        self._active: dict[tuple[str, bytes], Draft] = {}
        self._active_lock = threading.Lock()
        self._receipts: dict[FilesReceipt, None] = {}

    @property
    def arriving(self) -> tuple[ClaimId, ...]:
        """The claims for which files are arriving."""
        return tuple(dict.fromkeys(receipt.claim.id for receipt in self._receipts if receipt.lacking))

    async def keep(self, peer: Peer, transfer: TaskTransfer, contents: tuple[bytes, ...], /) -> str:
        """Store small files; return which inputs of the transfer are missing. The core checks the peer's permission."""
        try:
            claim = self._claim_for(peer, transfer.claim, transfer.ticket)
        except RefusedFilesError:
            return ""
        supplier = supplier_of(peer.system, transfer.supplier)
        try:
            if contents:
                files = [PutFile(hashlib.sha256(one).digest(), len(one)) for one in contents]
                lacking = await self.admit(claim, files, supplier=supplier)
                keep = partial(self.files.keep_all, contents, of=supplier, is_durable=False)
                await asyncio.to_thread(keep)
                if lacking:
                    self.note(claim, lacking)
        except MessiahsError as error:
            return public_of(error)
        inputs = {one.sha256 for task in transfer.tasks for one in task.command.inputs if one.is_file}
        # One message may name tens of thousands of inputs, and each is looked up on disk.
        missing = await asyncio.to_thread(partial(self.files.missing, inputs, of=supplier))
        if peer.system != claim.id.executor:
            # Its origin has them if a task that failed is to be retried.
            self._named.note(inputs)
        return f"{len(missing)} of its files are missing here" if missing else ""

    def receive(self, peer: Peer, request: PutRequest) -> "FilesReceipt":
        """Begin to receive files for a claim; `RefusedFilesError` for peers that may not send them."""
        claim = self._claim_for(peer, request.claim, request.ticket)
        return FilesReceipt(self, request, claim=claim, supplier=supplier_of(peer.system, request.supplier))

    async def admit(
        self,
        claim: GrantedClaimRow,
        files: Iterable[PutFile],
        *,
        supplier: str,
        receipt: "FilesReceipt | None" = None,
    ) -> list[PutFile]:
        """Count files against a claim, and return those that are missing; `RefusedFilesError` if there is no space.

        The space is reserved for a receipt until it is closed.
        """
        lacking = [one for one in files if self.files.size_for(supplier, one.sha256) is None]
        if not lacking:
            return lacking
        self._suppliers.add(claim.id, supplier, own=claim.id.executor)
        if _size_of(lacking) > _limit_bytes(claim) or len(lacking) > _FILE_COUNT_LIMIT:
            # Deleting files would not help.
            raise RefusedFilesError(_beyond(claim))
        problem = self._shortage(claim, supplier, lacking, drafts=await self._drafts_of(supplier))
        if problem:
            async with self._turns.turn(neighbor_of(supplier)):
                problem = await self._make_room(claim, supplier, lacking)
            if self._claim_of(claim.id) is None:
                # Nobody would forget what is counted against it from now on.
                problem = f"{claim.id} has ended here"
        if problem:
            raise RefusedFilesError(problem)
        # There is no await after the check, so two concurrent requests cannot get the same space.
        self.note(claim, lacking)
        if receipt is not None:
            receipt.expect(lacking)
            self._receipts[receipt] = None
        return lacking

    def note(self, claim: GrantedClaimRow, files: Iterable[PutFile]) -> None:
        """Count files against a claim; those that are neither stored nor in transit count until the next recount."""
        self._brought.note(claim.id, files)

    def let_go(self, receipt: "FilesReceipt") -> None:
        """Release the space that was reserved for a stream."""
        self._receipts.pop(receipt, None)

    def open_draft(self, supplier: str, file: PutFile) -> Draft:
        """Continue a file of a supplier; an earlier writer on a broken stream is stopped."""
        self.stop_earlier(supplier, file)
        draft = self.files.draft(file.sha256, size_bytes=file.size_bytes, of=supplier)
        with self._active_lock:
            earlier = self._active.get((supplier, file.sha256))
            self._active[supplier, file.sha256] = draft
        if earlier is not None:
            # Another stream of the supplier began the file in the meantime.
            earlier.close()
        return draft

    def stop_earlier(self, supplier: str, file: PutFile) -> None:
        """Stop an earlier stream of the same supplier that writes a file."""
        with self._active_lock:
            earlier = self._active.pop((supplier, file.sha256), None)
        if earlier is not None:
            # Not under the lock, because it waits for a write in progress.
            earlier.close()

    def close_draft(self, supplier: str, file: PutFile, *, draft: Draft) -> None:
        """Close the draft of a file."""
        draft.close()
        with self._active_lock:
            if self._active.get((supplier, file.sha256)) is draft:
                del self._active[supplier, file.sha256]

    async def forget_ended(self) -> None:
        """Stop counting for claims that have ended, and remove their incomplete files."""
        for claim, suppliers in self._suppliers.forget_ended().items():
            gone = self._brought.forget(claim)
            names = {draft_name(sha256, each) for sha256 in gone for each in suppliers}
            await asyncio.to_thread(self.files.drop_drafts, names - self.underway.drafts)

    def _claim_for(self, peer: Peer, claim_id: ClaimId, ticket: Ticket) -> GrantedClaimRow:
        claim = self._claim_of(claim_id)
        if claim is None:
            # Its origin may not know yet, and its machine is as good as any for the next claim.
            raise RefusedFilesError(f"{claim_id} has ended here")
        if not may_access(claim, peer.system, key=peer.key, ticket=ticket):
            raise RefusedFilesError(f"{peer.system} has no ticket for {claim_id}", is_denied=True)
        return claim

    def _finding_spent(self) -> Callable[[], Spent]:
        finding, named = self._spent(), self._named.spent()
        return lambda: {**named, **finding()}

    async def _drafts_of(self, supplier: str) -> Mapping[str, int]:
        return await asyncio.to_thread(self.files.drafts, of=supplier)

    def _kept(self, supplier: str, wanted: Collection[PutFile]) -> set[str]:
        """Return the drafts of files that a supplier is sending, or is about to send."""
        hashes = self.underway.hashes(supplier) | {one.sha256 for one in wanted}
        return {draft_name(sha256, supplier) for sha256 in hashes}

    def _drop_cut(self, supplier: str, kept: set[str]) -> None:
        """Delete incomplete files of a supplier, except those in `kept`."""
        self.files.drop_drafts(self.files.drafts(of=supplier).keys() - kept)

    async def _make_room(self, claim: GrantedClaimRow, supplier: str, lacking: Collection[PutFile]) -> str:
        """Make room for files; return why they may not be sent, or "".

        All files that the claim has brought are scanned, and unless that suffices all that are stored here.
        """
        problem = self._shortage(claim, supplier, lacking, drafts=await self._drafts_of(supplier))
        if not problem:
            # An earlier scan made room.
            return ""
        await self._recount(claim)
        problem = self._shortage(claim, supplier, lacking, drafts=await self._drafts_of(supplier))
        if problem:
            await asyncio.to_thread(self._drop_cut, supplier, self._kept(supplier, lacking))
            await self.room.make(_size_of(lacking))
            problem = self._shortage(claim, supplier, lacking, drafts=await self._drafts_of(supplier))
        if problem:
            await self.room.drop_unused()
            await self._recount(claim)
            problem = self._shortage(claim, supplier, lacking, drafts=await self._drafts_of(supplier))
        return problem

    def _shortage(
        self, claim: GrantedClaimRow, supplier: str, lacking: Collection[PutFile], *, drafts: Mapping[str, int]
    ) -> str:
        here = {one.sha256: drafts.get(draft_name(one.sha256, supplier), 0) for one in lacking}
        kept = self._kept(supplier, lacking)
        # Including those of claims that have ended, and of an earlier process of this daemon.
        cut = [size for name, size in drafts.items() if name not in kept]
        left_bytes = _limit_bytes(claim) - _size_of(lacking) - sum(cut)
        left_files = _FILE_COUNT_LIMIT - len(lacking) - len(cut)
        if self._brought.exceeds(claim.id, limit_bytes=left_bytes, limit_files=left_files):
            return _beyond(claim)
        needed = sum(one.size_bytes - here[one.sha256] for one in lacking)
        if not self.room.has(needed):
            return f"the disk of {claim.id.executor} has no room for {needed} bytes of files"
        return ""

    async def _recount(self, claim: GrantedClaimRow) -> None:
        """Stop counting files that are neither stored nor on their way."""
        latest, brought = self._brought.noted(claim.id)
        gone = await asyncio.to_thread(self._unstored, brought)
        arriving = {one.sha256 for each in self._receipts if each.claim.id == claim.id for one in each.lacking}
        self._brought.drop(claim.id, gone - arriving, up_to=latest)

    def _unstored(self, hashes: Iterable[bytes]) -> set[bytes]:
        return {sha256 for sha256 in hashes if self.files.size(sha256) is None}


def _limit_bytes(claim: GrantedClaimRow) -> int:
    disk = claim.tdv.description().get("disk")
    return max(INPUT_LIMIT_BYTES, claim.places * disk if isinstance(disk, int) else 0)


def _beyond(claim: GrantedClaimRow) -> str:
    return f"the tasks of {claim.id} may bring {_limit_bytes(claim)} bytes of files"


def _size_of(files: Iterable[PutFile]) -> int:
    return sum(one.size_bytes for one in files)


class FilesReceipt:
    """Files on one stream, in the order of the request (mutable).

    Small files are stored in groups. The thread that takes the files changes only `_stored` and `_draft`.
    """

    def __init__(self, arrivals: ArrivingFiles, request: PutRequest, *, claim: GrantedClaimRow, supplier: str) -> None:
        self.claim, self.supplier = claim, supplier
        self._arrivals, self._request = arrivals, request
        self._expected: tuple[PutFile, ...] = ()
        self._stored = 0
        self._followed: frozenset[PutFile] = frozenset()
        """Files that streams of other claims bring now."""
        self._offsets: dict[bytes, int] = {}
        self._draft: Draft | None = None

    @property
    def lacking(self) -> tuple[PutFile, ...]:
        """The files that are not stored yet."""
        return self._expected[self._stored :]

    @property
    def left_bytes(self) -> int:
        """Bytes that have not arrived."""
        draft = self._draft
        return sum(one.size_bytes for one in self.lacking) - (draft.offset_bytes if draft is not None else 0)

    def expect(self, files: Iterable[PutFile]) -> None:
        """Reserve space for files."""
        self._expected = tuple(files)

    async def begin(self) -> tuple[int, ...]:
        """Return how many bytes of each file are stored."""
        lacking = await self._arrivals.admit(self.claim, self._request.files, supplier=self.supplier, receipt=self)
        # There is no await in between, so two receipts cannot write the same file.
        underway = self._arrivals.underway
        self._followed = frozenset(underway.others(self.claim.id, self.supplier, lacking))
        underway.begin(self, self.claim.id, self.supplier, set(lacking) - self._followed)
        self._offsets = await asyncio.to_thread(self._find_offsets)
        self.expect(self._absent(set(self._request.files) - self._followed))
        return tuple(self._offsets[one.sha256] for one in self._request.files)

    async def take(self, source: ByteSource, /) -> None:
        """Store the missing files, and wait for those that other streams bring."""
        if self.lacking:
            await in_own_thread(lambda: self._take_all(source), stop=source.close)
        # Before waiting, because the others may wait for these.
        self._arrivals.underway.end(self)
        await self._arrivals.underway.wait(self.supplier, self._followed)
        if self._absent(self._followed):
            raise RefusedFilesError("the stream that brought a file for another claim broke off", is_brief=True)

    async def close(self) -> None:
        """End the receipt; incomplete files are kept for a while."""
        self._arrivals.underway.end(self)
        self._arrivals.let_go(self)

    def _absent(self, files: Collection[PutFile]) -> list[PutFile]:
        store = self._arrivals.files
        wanted = (one for one in self._request.files if one in files)
        return [one for one in wanted if store.size_for(self.supplier, one.sha256) is None]

    def _take_all(self, source: ByteSource) -> None:
        small: list[bytes] = []
        try:
            for file in self.lacking:
                if self._offsets[file.sha256] or file.size_bytes > SMALL_BYTES:
                    self._keep(small)
                    self._take_large(file, source)
                    continue
                small.append(_read_whole(source, file.size_bytes))
                if len(small) >= _GROUP_FILES or sum(map(len, small)) >= _GROUP_BYTES:
                    self._keep(small)
        except ChannelError:
            with suppress(MessiahsError):
                self._keep(small)
            raise
        self._keep(small)

    def _keep(self, small: list[bytes]) -> None:
        """Store a group, and begin the next one."""
        expected = [one.sha256 for one in self.lacking[: len(small)]]
        group = tuple(small)
        small.clear()
        if group:
            self._arrivals.files.keep_all(group, expected=expected, of=self.supplier, is_durable=False)
            self._stored += len(group)

    def _take_large(self, file: PutFile, source: ByteSource) -> None:
        draft = self._draft = self._arrivals.open_draft(self.supplier, file)
        try:
            if draft.offset_bytes != self._offsets[file.sha256]:
                raise RefusedFilesError("a file is sent twice at once")
            draft.take(source)
            draft.finish()
        finally:
            self._arrivals.close_draft(self.supplier, file, draft=draft)
            self._draft = None
        self._stored += 1

    def _find_offsets(self) -> dict[bytes, int]:
        return {file.sha256: self._offset(file) for file in self._request.files}

    def _offset(self, file: PutFile) -> int:
        store, supplier = self._arrivals.files, self.supplier
        if file in self._followed:
            return file.size_bytes
        self._arrivals.stop_earlier(supplier, file)
        size = store.size_for(supplier, file.sha256)
        if size is not None and size != file.size_bytes:
            raise RefusedFilesError(f"{file.sha256.hex()} has {size} bytes")
        offset = store.offset(file.sha256, of=supplier)
        if offset > file.size_bytes:
            store.drop_drafts([draft_name(file.sha256, supplier)])
            return 0
        return offset


def _read_whole(source: ByteSource, size_bytes: int) -> bytes:
    content = bytearray(size_bytes)
    view = memoryview(content)
    while view:
        size = source.read_into(view)
        if not size:
            raise ChannelError("the stream ended in the middle of a file")
        view = view[size:]
    return bytes(content)
