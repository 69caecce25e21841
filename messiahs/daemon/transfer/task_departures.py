"""Sending tasks with inputs on the next leg: first the files that are lacking there, then the tasks (MESSIAHS 5.3.3).

At a hop, large inputs have passed already when their tasks come; only small ones are sent here.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from messiahs.channel.contract import Channels
from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.events import Event, TransferFailed
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.errors import (
    BeyondError,
    ChannelError,
    DeniedError,
    ProtocolError,
    RefusedError,
    UntrustedError,
    public_of,
)
from messiahs.wire.codec import PutFile, PutRequest
from messiahs.wire.limits import FILE_LIMIT

_SMALL_TOGETHER_BYTES: Final = 512 << 10
PUTS: Final = 32
"""Streams of files at once to one system, below what a module accepts of a neighbor by default."""


class _Key(NamedTuple):
    """A file that is being sent: to whom, for which executor, and of which supplier."""

    to: SystemId
    executor: SystemId
    supplier: bytes
    sha256: bytes


class _Going(NamedTuple):
    """A stream of files, and the claim whose ticket it has shown."""

    claim: ClaimId
    stream: asyncio.Task[None]


class Sending:
    """Sends tasks with inputs, each transfer independently. A file is sent for an executor once at a time.

    `known` returns the supplier of inputs that pass through here, by the name that the next system knows. `is_held`
    tells whether a claim has not ended.
    """

    def __init__(
        self,
        files: FileStore,
        channels: Channels,
        *,
        on_event: Callable[[Event], None],
        is_wanted: Callable[[AttemptId], bool] = lambda _: True,
        is_held: Callable[[ClaimId], bool] = lambda _: True,
        known: Callable[[bytes], str] = lambda _: "",
    ) -> None:
        self._known, self._is_held = known, is_held
        self._files, self._channels, self._on_event, self._is_wanted = files, channels, on_event, is_wanted
        self._going: dict[_Key, _Going] = {}
        self._free_puts: WeakValueDictionary[SystemId, asyncio.Semaphore] = WeakValueDictionary()
        self._bringing: dict[ClaimId, int] = {}

    @property
    def bringing(self) -> frozenset[ClaimId]:
        """The claims whose files are being sent, and whose tasks therefore wait."""
        return frozenset(self._bringing)

    async def send(self, action: SendTasks) -> None:
        """Send the files and then pass the tasks to their channel; `TransferFailed` if the files cannot be sent."""
        claim = action.message.claim
        self._bringing[claim] = self._bringing.get(claim, 0) + 1
        try:
            small, large = await asyncio.to_thread(self._divided, action.message)
            await self._put(action, large)
            contents = await asyncio.to_thread(self._read, small)
        except (ChannelError, OSError) as error:
            text, kind = str(error), _kind_of(error)
            failed = TransferFailed(claim=claim, text=text, public=public_of(error), kind=kind, to=action.to)
            self._on_event(failed)
        else:
            # Sending files may have taken long, and tasks may have been cancelled meanwhile.
            is_passed = bool(action.message.supplier)
            wanted = tuple(task for task in action.message.tasks if is_passed or self._is_wanted(task.attempt))
            if wanted:
                message = replace(action.message, tasks=wanted)
                self._channels.send_tasks(action.to, action.address, message, files=contents)
        finally:
            self._bringing[claim] -= 1
            if not self._bringing[claim]:
                del self._bringing[claim]

    def give_up_ended(self) -> None:
        """End the streams of claims that have ended: a system that never takes the files would keep them open."""
        for going in set(self._going.values()):
            if not self._is_held(going.claim):
                going.stream.cancel()

    async def stop(self) -> None:
        """Stop sending."""
        streams = {going.stream for going in self._going.values()}
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    def _divided(self, message: TaskTransfer) -> tuple[list[bytes], list[bytes]]:
        hashes = dict.fromkeys(one.sha256 for task in message.tasks for one in task.command.inputs if one.is_file)
        if not message.supplier:
            return divided({sha256: self._files.size(sha256) for sha256 in hashes})
        supplier = self._known(message.supplier)
        here = {sha256: self._files.size_for(supplier, sha256) for sha256 in hashes}
        # What was passed on without being stored is not here, and large files have passed before.
        return divided({sha256: size for sha256, size in here.items() if size is not None and size <= SMALL_BYTES})

    async def _put(self, action: SendTasks, files: list[bytes]) -> None:
        claim = action.message.claim
        keys = {sha256: _Key(action.to, claim.executor, action.message.supplier, sha256) for sha256 in files}
        lacking = [sha256 for sha256, key in keys.items() if key not in self._going]
        for start in range(0, len(lacking), FILE_LIMIT):
            part = lacking[start : start + FILE_LIMIT]
            stream = asyncio.create_task(self._put_part(action, part))
            parts = [keys[sha256] for sha256 in part]
            self._going.update(dict.fromkeys(parts, _Going(claim, stream)))
            stream.add_done_callback(partial(self._arrived, parts))
        for stream in {self._going[key].stream for key in keys.values()}:
            # Not awaited itself, because other transfers wait for it too.
            await asyncio.wait({stream})
            if not stream.cancelled():
                stream.result()
            elif self._is_held(claim):
                # The claim ended for which another transfer sent these files.
                await self._put(action, files)
            else:
                raise ChannelError(f"{claim} has ended")

    async def _put_part(self, action: SendTasks, hashes: list[bytes]) -> None:
        message = action.message
        files = tuple(PutFile(sha256, self._files.path(sha256).stat().st_size) for sha256 in hashes)
        request = PutRequest(claim=message.claim, ticket=message.ticket, files=files, supplier=message.supplier)
        free = self._free_puts.setdefault(action.to, asyncio.Semaphore(PUTS))
        async with free:
            await self._channels.put(action.to, action.address, request, self._files.open)

    def _arrived(self, keys: "list[_Key]", _: asyncio.Task[None]) -> None:
        for key in keys:
            del self._going[key]

    def _read(self, hashes: list[bytes]) -> dict[bytes, bytes]:
        return {sha256: self._files.path(sha256).read_bytes() for sha256 in hashes}


def _kind_of(error: ChannelError | OSError) -> TransferFailure:
    if isinstance(error, UntrustedError):
        return TransferFailure.UNTRUSTED
    if isinstance(error, DeniedError):
        return TransferFailure.DENIED
    if isinstance(error, BeyondError):
        return TransferFailure.BEYOND
    return TransferFailure.REFUSED if isinstance(error, RefusedError | ProtocolError) else TransferFailure.BROKEN


def divided(sizes: Mapping[bytes, int | None]) -> tuple[list[bytes], list[bytes]]:
    """Return the files to send with their tasks, and those to send before: large ones, and too many small ones.

    `sizes` are those of the stored files: a user or another system may have told the size of another file.
    """
    small: list[bytes] = []
    large: list[bytes] = []
    room = _SMALL_TOGETHER_BYTES
    for sha256, size in sizes.items():
        if size is not None and size <= min(SMALL_BYTES, room) and len(small) < FILE_LIMIT:
            room -= size
            small.append(sha256)
        else:
            large.append(sha256)
    return small, large
