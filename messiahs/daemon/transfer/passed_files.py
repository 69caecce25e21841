"""Files that pass through this module to the next system on the path of their claim (MESSIAHS 5.3.3).

Where the cache has room they are *cached*: stored here, while the next system gets what has arrived, so that each end
continues after a break where it was, and a supplier sends a file once for any number of claims. Else they are *passed
on*: from stream to stream through one buffer, and the next system knows how much of them it has.

This module tells the next one for which supplier it sends, by a name that only it understands. So the next one knows
that a supplier has proved a file, and what it has of a file that only passes here is never used for another supplier.
"""

import asyncio
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from messiahs.channel.byte_streams.byte_threads import Part, in_own_thread
from messiahs.channel.contract import ByteSource, Channels, Peer, Put
from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.routes import Leg
from messiahs.daemon.storage.drafts import Draft, WrongContentError
from messiahs.daemon.storage.files import FileStore, draft_name
from messiahs.daemon.storage.suppliers import neighbor_of, supplier_of
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.border_crossing import with_own_text
from messiahs.daemon.transfer.cache_room import Cache, CacheRoom
from messiahs.daemon.transfer.claim_suppliers import ClaimSuppliers
from messiahs.daemon.transfer.followed_files import FollowedFile
from messiahs.daemon.transfer.underway_files import UnderwayFiles
from messiahs.errors import BeyondError, ChannelError, DeclinedError, DeniedError, RefusedError, StoreError, public_of
from messiahs.wire.codec import PutFile, PutRequest

_SUPPLIER_BYTES: Final = 16
_UNCHECKED_FILES: Final = 256
_LEAST_SMALL_BYTES: Final = 64 << 20
"""What small files that come with tasks may use even if the cache is smaller: they are sent on from here."""
_INTERRUPTED_FILES: Final = 256
"""Files of one neighbor whose transfer was interrupted; it sends the oldest of more from the beginning."""
_SHOWN_LIMIT: Final = 4_096


@dataclass(slots=True)
class _Arriving:
    """A file that a supplier sends for a claim, and the draft that is written (mutable)."""

    claim: ClaimId
    file: FollowedFile
    draft: Draft | None = None


class PassingFiles:
    """All files that pass through; everything belongs to the event loop."""

    def __init__(
        self,
        files: FileStore,
        cache: Cache,
        *,
        own: SystemId,
        underway: UnderwayFiles,
        channels: Callable[[], Channels],
        on_event: Callable[[Event], None],
    ) -> None:
        self.files, self._cache, self.own = files, cache, own
        self.underway = underway
        self.room = CacheRoom(files, cache, own=own, underway=underway)
        self._channels, self._on_event = channels, on_event
        self._suppliers = ClaimSuppliers(cache.passes)
        self._shown: dict[bytes, str] = {}
        self._unchecked_files = _UNCHECKED_FILES
        self.arriving: dict[tuple[str, bytes], _Arriving] = {}
        self.receipts: dict[PassedReceipt, None] = {}

    @property
    def channels(self) -> Channels:
        """The channels of this module."""
        return self._channels()

    @property
    def claims(self) -> tuple[ClaimId, ...]:
        """The claims whose files pass through now."""
        return tuple(dict.fromkeys(receipt.request.claim for receipt in self.receipts))

    async def keep(self, peer: Peer, transfer: TaskTransfer, *, contents: tuple[bytes, ...]) -> str:
        """Store small files that tasks bring; return why they are refused, or "".

        Others come separately, and the end of the path knows which are missing.
        """
        supplier = supplier_of(peer.system, transfer.supplier)
        has_inputs = any(one.is_file for task in transfer.tasks for one in task.command.inputs)
        try:
            if has_inputs or contents:
                self._suppliers.add(transfer.claim, supplier, own=self.own)
            if contents:
                await self._keep(contents, supplier)
        except DeclinedError as error:
            return str(error)
        except StoreError as error:
            return f"{self.own}: {public_of(error)}"
        return ""

    async def _keep(self, contents: tuple[bytes, ...], supplier: str) -> None:
        self._unchecked_files += len(contents)
        if self._unchecked_files >= _UNCHECKED_FILES:
            # Room is looked for once for many files, because that may scan the cache.
            ahead = PutFile(b"", _UNCHECKED_FILES * SMALL_BYTES)
            if not await self.room.has(supplier, [ahead], least_bytes=_LEAST_SMALL_BYTES):
                raise DeclinedError(f"{self.own}: its disk or its cache has no room for small files")
            self._unchecked_files = 0
        await asyncio.to_thread(partial(self.files.keep_all, contents, of=supplier, is_durable=False))

    def receive(self, peer: Peer, request: PutRequest, *, leg: Leg, is_hidden: bool = False) -> "PassedReceipt":
        """Receive files of a claim that take this leg next; a `DeclinedError` if it has too many suppliers.

        With `is_hidden`, the peer must not learn of the systems that the leg leads to.
        """
        supplier = supplier_of(peer.system, request.supplier)
        self._suppliers.add(request.claim, supplier, own=self.own)
        return PassedReceipt(self, request, supplier=supplier, leg=leg, is_hidden=is_hidden)

    def shown(self, supplier: str) -> bytes:
        """Return the name by which the next system knows a supplier."""
        name = hmac.digest(self._cache.secret, supplier.encode(), "sha256")[:_SUPPLIER_BYTES]
        # The latest last.
        self._shown.pop(name, None)
        self._shown[name] = supplier
        if len(self._shown) > _SHOWN_LIMIT:
            del self._shown[next(iter(self._shown))]
        return name

    def known(self, shown: bytes) -> str:
        """Return the supplier that was shown by a name; empty if that was long ago."""
        return self._shown.get(shown, "")

    def declined(self, claim: ClaimId, leg: Leg, *, error: ChannelError, is_hidden: bool) -> DeclinedError:
        """Return what a peer reads of an error of the next system, and let the core look for another way."""
        if isinstance(error, DeniedError) or not isinstance(error, RefusedError | BeyondError):
            self._on_event(StraightFailed(claim=claim, text=str(error)))
        return declined(leg, with_own_text(error) if is_hidden else error)

    def forget_ended(self) -> None:
        """Forget who sent files for claims that have ended."""
        self._suppliers.forget_ended()


class PassedReceipt:
    """Files of one request on their way through (mutable): the peer is answered when the next system has them."""

    def __init__(self, passing: PassingFiles, request: PutRequest, *, supplier: str, leg: Leg, is_hidden: bool) -> None:
        self.request = request
        self._passing, self._supplier, self._leg, self._is_hidden = passing, supplier, leg, is_hidden
        self._put: Put | None = None
        self._is_cached = False
        self._lacking: tuple[PutFile, ...] = ()
        """Files that this stream stores."""
        self._offsets: dict[bytes, int] = {}
        self._followed: dict[bytes, FollowedFile] = {}
        self._incoming: ByteSource | None = None

    @property
    def left_bytes(self) -> int:
        """Bytes that this stream is going to store."""
        return sum(one.size_bytes - self._here_bytes(one.sha256) for one in self._lacking)

    def _here_bytes(self, sha256: bytes) -> int:
        return max(self._offsets.get(sha256, 0), self._followed[sha256].offset_bytes)

    async def begin(self) -> tuple[int, ...]:
        """Return how many bytes of each file need not be sent to this module."""
        passing = self._passing
        self._stop_earlier()
        passing.receipts[self] = None
        # Their retention time starts again.
        await asyncio.to_thread(passing.files.missing, [one.sha256 for one in self.request.files], of=self._supplier)
        self._is_cached = await self._may_be_cached()
        absent = [one for one in self.request.files if not self._is_stored(one)]
        if self._is_cached:
            # There was no await in between, so two requests cannot receive the same file.
            absent = self._unexpected(absent)
            self._expect(absent)
            passing.underway.begin(self, self.request.claim, self._supplier, absent)
            self._offsets = await asyncio.to_thread(self._draft_sizes, passing.underway.drafts)
        self._put = await self._begin_put()
        if not self._is_cached:
            ahead = dict(zip(self.request.files, self._put.offsets_bytes, strict=True))
            self._offsets = {one.sha256: ahead[one] for one in absent}
        return tuple(self._offsets.get(one.sha256, one.size_bytes) for one in self.request.files)

    async def _may_be_cached(self) -> bool:
        """Whether the files may be stored; waits for those that come for tasks of this machine now."""
        passing = self._passing
        while await passing.room.has(self._supplier, self._unexpected(self.request.files)):
            wanted = self._unexpected(self.request.files)
            others = passing.underway.others(self.request.claim, self._supplier, wanted)
            if not others:
                return True
            await passing.underway.wait(self._supplier, others)
        return False

    async def take(self, source: ByteSource, /) -> None:
        """Return when the next system has all files."""
        assert self._put is not None, "a receipt begins before it takes files"
        self._incoming = source
        if not self._lacking:
            await self._send(self._put)
            return
        storing = asyncio.create_task(in_own_thread(lambda: self._store(source), stop=source.close))
        storing.add_done_callback(lambda _: self._passing.underway.end(self))
        sending = asyncio.create_task(self._send(self._put))
        try:
            await asyncio.wait({storing, sending}, return_when=asyncio.FIRST_EXCEPTION)
            if storing.done():
                await self._stored(storing, sending)
            await sending
        finally:
            storing.cancel()
            sending.cancel()
            await asyncio.gather(storing, sending, return_exceptions=True)

    async def _stored(self, storing: "asyncio.Task[None]", sending: "asyncio.Task[None]") -> None:
        try:
            await storing
        except WrongContentError:
            # The next system gets all of the wrong file, too: otherwise it would continue with it.
            for one in self._lacking:
                self._forget(one)
            await asyncio.wait({sending})
            raise

    async def close(self) -> None:
        """End the receipt; what was stored of the files stays for a while."""
        self._passing.receipts.pop(self, None)
        self._passing.underway.end(self)
        for one in self._lacking:
            self._forget(one)
        if self._put is not None:
            self._put.close()

    def _unexpected(self, files: Iterable[PutFile]) -> list[PutFile]:
        """Return files that are not stored, and that no other stream which passes brings."""
        arriving = self._passing.arriving
        return [one for one in files if (self._supplier, one.sha256) not in arriving and not self._is_stored(one)]

    def _is_stored(self, one: PutFile) -> bool:
        return self._passing.files.size_for(self._supplier, one.sha256) is not None

    def _draft_sizes(self, kept: set[str]) -> dict[bytes, int]:
        files = self._passing.files
        behind = files.drafts_behind(neighbor_of(self._supplier))
        files.drop_drafts([name for name in behind if name not in kept][:-_INTERRUPTED_FILES])
        sizes = {one.sha256: behind.get(draft_name(one.sha256, self._supplier), 0) for one in self._lacking}
        for one in self._lacking:
            if sizes[one.sha256] > one.size_bytes:
                files.drop_drafts([draft_name(one.sha256, self._supplier)])
                sizes[one.sha256] = 0
        return sizes

    def _stop_earlier(self) -> None:
        """Stop an earlier stream of the same claim that writes one of the files: it is cut, or this one would wait."""
        for one in self.request.files:
            arriving = self._passing.arriving.get((self._supplier, one.sha256))
            if arriving is not None and arriving.claim == self.request.claim:
                del self._passing.arriving[self._supplier, one.sha256]
                if arriving.draft is not None:
                    arriving.draft.close()

    def _expect(self, lacking: list[PutFile]) -> None:
        self._lacking = tuple(lacking)
        for one in self.request.files:
            known = self._passing.arriving.get((self._supplier, one.sha256))
            if known is not None:
                self._followed[one.sha256] = known.file
        for one in lacking:
            file = self._followed[one.sha256] = FollowedFile(one.size_bytes)
            self._passing.arriving[self._supplier, one.sha256] = _Arriving(self.request.claim, file)

    def _forget(self, one: PutFile) -> None:
        file = self._followed[one.sha256]
        key = (self._supplier, one.sha256)
        arriving = self._passing.arriving.get(key)
        if arriving is not None and arriving.file is file:
            del self._passing.arriving[key]
        file.end()

    async def _begin_put(self) -> Put:
        leg = self._leg
        shown = self._passing.shown(self._supplier)
        request = PutRequest(claim=self.request.claim, ticket=leg.ticket, files=self.request.files, supplier=shown)
        try:
            return await self._passing.channels.begin_put(leg.system, leg.address, request)
        except ChannelError as error:
            raise self._declined(error) from error

    async def _send(self, put: Put) -> None:
        try:
            await put.send(self._open)
        except ChannelError as error:
            raise self._declined(error) from error
        except OSError as error:
            text = f"{self._passing.own}: a stored file cannot be read: {error.strerror}"
            raise DeclinedError(text, is_brief=True) from error

    def _declined(self, error: ChannelError) -> DeclinedError:
        return self._passing.declined(self.request.claim, self._leg, error=error, is_hidden=self._is_hidden)

    def _open(self, sha256: bytes, offset: int) -> ByteSource:
        followed = self._followed.get(sha256)
        source = followed.open(offset) if followed is not None else None
        if source is not None:
            return source
        if followed is not None or sha256 not in self._offsets:
            return self._passing.files.open(sha256, offset)
        assert self._incoming is not None, "files are sent after they begin to arrive"
        size = next(one.size_bytes for one in self.request.files if one.sha256 == sha256)
        return Part(self._incoming, size - offset)

    def _store(self, source: ByteSource) -> None:
        for one in self._lacking:
            try:
                self._store_one(one, source)
            except StoreError as error:
                raise DeclinedError(f"{self._passing.own}: {public_of(error)}", is_brief=True) from error

    def _store_one(self, one: PutFile, source: ByteSource) -> None:
        followed = self._followed[one.sha256]
        is_large = one.size_bytes > SMALL_BYTES
        draft = self._passing.files.draft(one.sha256, size_bytes=one.size_bytes, of=self._supplier, is_durable=is_large)
        arriving = self._passing.arriving.get((self._supplier, one.sha256))
        try:
            if arriving is None or arriving.file is not followed or draft.offset_bytes != self._offsets[one.sha256]:
                raise ChannelError("another stream sends the same file")
            arriving.draft = draft
            followed.take(draft, source)
        finally:
            draft.close()


def declined(leg: Leg, error: ChannelError) -> DeclinedError:
    """Return what the peer reads of an error of the next system: that one's own words, or who failed and why."""
    if isinstance(error, RefusedError | BeyondError) and not isinstance(error, DeniedError):
        return DeclinedError(public_of(error), is_brief=isinstance(error, BeyondError))
    return DeclinedError(f"{leg.system}: {public_of(error)}", is_brief=True)
