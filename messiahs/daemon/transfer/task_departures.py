"""Sending tasks with inputs to their executor: first the files that it lacks, then the tasks (MESSIAHS 5.3.3)."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from messiahs.channel.contract import Channels
from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.events import Event, TransferFailed
from messiahs.core.interface.messages import (
    BoundTask,
)
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.files import FileStore
from messiahs.errors import ChannelError, ProtocolError, RefusedError, UntrustedError
from messiahs.wire.codec import PutFile, PutRequest
from messiahs.wire.limits import FILE_LIMIT

SMALL_BYTES: Final = 64 << 10
_SMALL_TOGETHER_BYTES: Final = 512 << 10


class Sending:
    """Sends tasks with inputs, each transfer independently. A file is sent to an executor once at a time."""

    def __init__(
        self,
        files: FileStore,
        channels: Channels,
        *,
        on_event: Callable[[Event], None],
        is_wanted: Callable[[AttemptId], bool] = lambda _: True,
    ) -> None:
        self._files, self._channels, self._on_event, self._is_wanted = files, channels, on_event, is_wanted
        self._going: dict[tuple[SystemId, bytes], asyncio.Task[None]] = {}
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
            small, large = divided(action.message.tasks)
            await self._put(action, large)
            contents = await asyncio.to_thread(self._read, small)
        except (ChannelError, OSError) as error:
            self._on_event(TransferFailed(claim=claim, text=str(error), kind=_kind_of(error), to=action.to))
        else:
            # Sending files may have taken long, and tasks may have been cancelled meanwhile.
            wanted = tuple(task for task in action.message.tasks if self._is_wanted(task.attempt))
            if wanted:
                message = replace(action.message, tasks=wanted)
                self._channels.send_tasks(action.to, action.address, message, files=contents)
        finally:
            self._bringing[claim] -= 1
            if not self._bringing[claim]:
                del self._bringing[claim]

    async def stop(self) -> None:
        """Stop sending."""
        going = set(self._going.values())
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)

    async def _put(self, action: SendTasks, files: list[bytes]) -> None:
        lacking = [sha256 for sha256 in files if (action.to, sha256) not in self._going]
        for start in range(0, len(lacking), FILE_LIMIT):
            part = lacking[start : start + FILE_LIMIT]
            task = asyncio.create_task(self._put_part(action, part))
            keys = [(action.to, sha256) for sha256 in part]
            self._going.update(dict.fromkeys(keys, task))
            task.add_done_callback(partial(self._arrived, keys))
        for task in {self._going[action.to, sha256] for sha256 in files}:
            # Shielded, because other transfers wait for it too.
            await asyncio.shield(task)

    async def _put_part(self, action: SendTasks, hashes: list[bytes]) -> None:
        files = tuple(PutFile(sha256, self._files.path(sha256).stat().st_size) for sha256 in hashes)
        request = PutRequest(claim=action.message.claim, ticket=action.message.ticket, files=files)
        await self._channels.put(action.to, action.address, request, self._files.open)

    def _arrived(self, keys: list[tuple[SystemId, bytes]], _: asyncio.Task[None]) -> None:
        for key in keys:
            del self._going[key]

    def _read(self, hashes: list[bytes]) -> dict[bytes, bytes]:
        return {sha256: self._files.path(sha256).read_bytes() for sha256 in hashes}


def _kind_of(error: ChannelError | OSError) -> TransferFailure:
    if isinstance(error, UntrustedError):
        return TransferFailure.UNTRUSTED
    return TransferFailure.REFUSED if isinstance(error, RefusedError | ProtocolError) else TransferFailure.BROKEN


def divided(tasks: Iterable[BoundTask]) -> tuple[list[bytes], list[bytes]]:
    """Return the files to send with their tasks, and those to send before: large ones, and too many small ones."""
    files = (one for task in tasks for one in task.command.inputs if one.is_file)
    inputs: dict[bytes, InputFile] = {one.sha256: one for one in files}
    small: list[bytes] = []
    large: list[bytes] = []
    room = _SMALL_TOGETHER_BYTES
    for sha256, one in inputs.items():
        if one.size_bytes <= min(SMALL_BYTES, room):
            room -= one.size_bytes
            small.append(sha256)
        else:
            large.append(sha256)
    return small, large
