"""Outputs of ended tasks become inputs of others: files of the same store, without their user (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Final

from messiahs.core.interface.actions import TakeOutputs
from messiahs.core.interface.dependencies import Dependency, WantedOutput
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.interface.taken_outputs import OutputsTaken
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.ids import TaskId
from messiahs.core.model.output_names import listed
from messiahs.core.model.task_files import InputFile, Output, entry_bytes
from messiahs.core.origin.awaited import awaits_outputs
from messiahs.daemon.storage.drafts import WrongContentError
from messiahs.daemon.storage.files import PIECE_BYTES, FileStore
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.suppliers import USER_PREFIX
from messiahs.daemon.transfer.declared_outputs import DeclaredOutputs
from messiahs.daemon.transfer.input_room import InputRoom
from messiahs.daemon.transfer.output_arrivals import Outputs
from messiahs.daemon.transfer.underway_files import Upload
from messiahs.errors import MessiahsError, StoreError
from messiahs.wire.limits import check_kind, described, relative_path

_LOG: Final = logging.getLogger(__name__)
_AGAIN_SECONDS: Final = 5.0
"""Pause before outputs are taken again that found no room, or could not be read or written."""
_SHOWN: Final = 10
"""The most names of outputs that a refusal has."""


class KeptOutputs:
    """Keeps copies of outputs among the inputs, as if a user had uploaded them."""

    def __init__(self, files: FileStore, room: InputRoom, outputs: Outputs) -> None:
        self._files, self._room, self._outputs = files, room, outputs

    async def keep(self, task: TaskId, output: Output, *, of: str) -> bytes:
        """Return the hash of an output that is kept; a `NoRoomError` if there is no room, other errors as of `put`.

        A `WrongContentError` if it is not there as it was when its task ended.
        """
        upload = Upload(of, output.size_bytes)
        async with self._room.kept_for(upload):
            digest, size = hashlib.sha256(), 0
            async for piece in self.pieces(task, output):
                await asyncio.to_thread(digest.update, piece)
                size += len(piece)
            if size != output.size_bytes:
                text = f"{output.name} of {task} is no longer there: {size} of {output.size_bytes} bytes"
                raise WrongContentError(text)
            pieces = self._room.counted(upload, self.pieces(task, output))
            await self._files.put(digest.digest(), pieces, limit_bytes=upload.size_bytes, of=of)
        return digest.digest()

    async def pieces(
        self, task: TaskId, output: Output, *, offset: int = 0, piece_bytes: int = PIECE_BYTES
    ) -> AsyncGenerator[bytes, None]:
        """Yield the content of an output from an offset on; it ends early if no more is there."""
        while offset < output.size_bytes:
            piece = self._outputs.read_declared(task, output.name, offset=offset, limit=piece_bytes)
            if not piece:
                return
            offset += len(piece)
            yield piece


class OutputTaking:
    """Takes outputs for tasks that have waited for them, and posts what has become of it."""

    def __init__(
        self,
        store: RowStore,
        kept: KeptOutputs,
        *,
        submission_of: Callable[[TaskId], SubmissionRow | None],
        on_event: Callable[[OutputsTaken], None],
    ) -> None:
        self._store, self._kept, self._declared = store, kept, DeclaredOutputs()
        self._submission_of, self._on_event = submission_of, on_event

    async def take(self, action: TakeOutputs) -> None:
        """Store the outputs as inputs and post their names and hashes, or why that can never be.

        While there is no room for them, or the disk fails, it is tried again, as long as somebody waits.
        """
        has_failed = False
        while (row := self._submission_of(action.submission)) is not None and awaits_outputs(row):
            try:
                inputs = tuple([one for each in action.after for one in await self._inputs_of(each, row.user)])
                _check_description(row, inputs)
            except (StoreError, OSError) as error:
                if not has_failed:
                    _LOG.warning("%s waits on for outputs of others: %s", action.submission, error)
                    self._on_event(OutputsTaken(submission=action.submission, delay=str(error)))
                has_failed = True
                await asyncio.sleep(_AGAIN_SECONDS)
            except MessiahsError as error:
                self._on_event(OutputsTaken(submission=action.submission, problem=str(error)))
                return
            else:
                self._on_event(OutputsTaken(submission=action.submission, inputs=inputs))
                return

    async def _inputs_of(self, dependency: Dependency, user: str) -> list[InputFile]:
        row, submission = self._store.task(dependency.on), self._store.submission(dependency.on)
        if row is None or submission is None:
            names = ", ".join(each.name for each in dependency.outputs)
            raise WrongContentError(f"{dependency.on} is no longer known here, so {names} cannot be taken from it")
        left = await self._declared.of(row, submission)
        return [one for wanted in dependency.outputs for one in await self._taken(row, wanted, left, user)]

    async def _taken(self, row: TaskRow, wanted: WantedOutput, left: tuple[Output, ...], user: str) -> list[InputFile]:
        inside = f"{wanted.name}/"
        chosen = [output for output in left if output.name == wanted.name or output.name.startswith(inside)]
        if not chosen:
            raise WrongContentError(f"{wanted.name} was not there when {row.id} ended: {_names_of(left)}")
        found = []
        for output in chosen:
            name = f"{wanted.to}{output.name.removeprefix(wanted.name)}"
            sha256 = await self._kept.keep(row.id, output, of=f"{USER_PREFIX}{user}") if output.is_file else b""
            found.append(
                InputFile(
                    name=name,
                    sha256=sha256,
                    size_bytes=output.size_bytes,
                    is_executable=output.is_executable,
                    link_target=output.link_target,
                    is_folder=output.is_folder,
                )
            )
        return found


def _check_description(row: SubmissionRow, inputs: tuple[InputFile, ...]) -> None:
    """Refuse what a submit refuses: more inputs than a message can describe, and links that lead out from there."""
    for each in inputs:
        relative_path(each.name)
        size_bytes = each.size_bytes if each.is_folder or each.link_target else 0
        check_kind(each.name, link_target=each.link_target, is_folder=each.is_folder, size_bytes=size_bytes)
    longest = max((len(item.encode()) for item in row.items), default=0)
    own = max((sum(_sizes(files)) for files in row.member_inputs), default=0)
    outputs = sum(entry_bytes(name) + longest * name.count(PLACEHOLDER) for name in row.command.outputs)
    described(sum(_sizes((*row.command.inputs, *inputs))) + own + outputs)


def _sizes(files: tuple[InputFile, ...]) -> Iterator[int]:
    return (entry_bytes(each.name, each.link_target) for each in files)


def _names_of(left: tuple[Output, ...]) -> str:
    names = sorted(output.name for output in left)
    return f"it left {listed(names[:_SHOWN], len(names)) or 'none'}"
