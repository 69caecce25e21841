"""What tasks left behind, at home: small outputs beside the rows, large ones as files (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

from messiahs.channel.contract import Channels
from messiahs.core.actions import FetchOutputs
from messiahs.core.ids import AttemptId, SystemId, TaskId
from messiahs.core.messages import Output
from messiahs.core.rows import TaskRow
from messiahs.daemon.store import KeepOutput, RowStore
from messiahs.errors import ChannelError, ExecutorError
from messiahs.executor.contract import Executor
from messiahs.executor.layout import WORK
from messiahs.wire.codec import ReadRequest

SMALL_BYTES = 65_536
_SMALL_TOGETHER_BYTES = 1_048_576
"""More than this of one attempt is not kept beside the rows."""
_DECLARED = f"{WORK}/"
_PIECE_BYTES = 262_144
_POLL_SECONDS = 0.05


class Outputs:
    """The outputs of this module's tasks; `home` is the folder of the large ones."""

    def __init__(
        self, home: Path, store: RowStore, *, own: SystemId, channels: Channels, executor: Executor | None
    ) -> None:
        self._home, self._store = home, store
        self._own, self._channels, self._executor = own, channels, executor

    async def bring_home(self, action: FetchOutputs) -> tuple[KeepOutput, ...]:
        """Fetch all outputs of an attempt; large ones are on disk when this returns, small ones are for the store.

        Raises `FileNotFoundError` or `PermissionError` if the executor has them no more, else `ChannelError`.
        """
        kept: list[KeepOutput] = []
        room = _SMALL_TOGETHER_BYTES
        for output in action.outputs:
            task = action.attempt.task
            if output.size_bytes > min(SMALL_BYTES, room):
                await self._write_file(action, output)
            elif output.size_bytes or action.attempt.number > 1:
                room -= output.size_bytes
                pieces = [piece async for piece in self._pieces(action, output)] if output.size_bytes else []
                self._path(task, output.name).unlink(missing_ok=True)
                kept.append(KeepOutput(task=task, name=output.name, body=_whole(b"".join(pieces), output)))
        return tuple(kept)

    def read(self, task: TaskId, name: str, *, offset: int, limit: int) -> bytes:
        """Read from an output that is home; empty at its end."""
        try:
            with self._path(task, name).open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        except FileNotFoundError:
            return (self._store.output(task, name) or b"")[offset : offset + limit]

    def declared(self, row: TaskRow) -> tuple[Output, ...]:
        """Name the declared outputs that a task left, by their paths in its working directory."""
        outputs = row.result.outputs if row.result is not None else ()
        return tuple(
            replace(output, name=output.name.removeprefix(_DECLARED))
            for output in outputs
            if output.name.startswith(_DECLARED)
        )

    def read_declared(self, task: TaskId, name: str, *, offset: int, limit: int) -> bytes:
        """Read from a declared output."""
        return self.read(task, f"{_DECLARED}{name}", offset=offset, limit=limit)

    def _path(self, task: TaskId, name: str) -> Path:
        # A hash in place of a path that a task chose: no two are in each other's way, and none is too long.
        file = f"work-{hashlib.sha256(name.encode()).hexdigest()}" if name.startswith(_DECLARED) else name
        return self._home / str(task.number) / str(task.member) / file

    async def _write_file(self, action: FetchOutputs, output: Output) -> None:
        path = self._path(action.attempt.task, output.name)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{action.attempt.number}.part")
        size = 0
        try:
            with draft.open("wb") as file:
                async for piece in self._pieces(action, output):
                    size += len(piece)
                    if size > output.size_bytes:
                        break
                    await asyncio.to_thread(file.write, piece)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            if size != output.size_bytes:
                raise ChannelError(f"{output.name} of {action.attempt} is not of its {output.size_bytes} bytes")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _pieces(self, action: FetchOutputs, output: Output) -> AsyncGenerator[bytes, None]:
        if action.executor == self._own:
            return self._local_pieces(action, output)
        request = ReadRequest(claim=action.claim, ticket=action.ticket, attempt=action.attempt, name=output.name)
        return self._channels.fetch(action.executor, action.address, request)

    async def _local_pieces(self, action: FetchOutputs, output: Output) -> AsyncGenerator[bytes, None]:
        assert self._executor is not None, "an attempt of this module ran on its own machine"
        async for piece in follow_file(self._executor, action.attempt, name=output.name, is_over=lambda: True):
            yield piece


async def follow_file(
    executor: Executor, attempt: AttemptId, *, name: str, is_over: Callable[[], bool], offset: int = 0
) -> AsyncGenerator[bytes, None]:
    """Read what an attempt wrote on this machine; until `is_over`, wait at its end for more."""
    while True:
        over = is_over()
        try:
            piece = executor.read_output(attempt, name, offset=offset, limit=_PIECE_BYTES)
        except ExecutorError as error:
            raise (ChannelError if error.transient else FileNotFoundError)(str(error)) from error
        if piece:
            offset += len(piece)
            yield piece
        elif over:
            return
        else:
            await asyncio.sleep(_POLL_SECONDS)


def _whole(body: bytes, output: Output) -> bytes:
    if len(body) != output.size_bytes:
        raise ChannelError(f"{output.name} came with {len(body)} of {output.size_bytes} bytes")
    return body
