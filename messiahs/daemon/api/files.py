"""Files of the local API: inputs are uploaded before their tasks, outputs are read after tasks have ended."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final

import msgspec
from aiohttp import StreamReader, web

from messiahs.core import queries
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.instants import MICROSECOND
from messiahs.core.model.task_files import Output
from messiahs.core.origin.array_members import outputs_of
from messiahs.core.origin.completion import has_ended_well
from messiahs.core.origin.dependencies import failed_text
from messiahs.core.origin.how_ended import how_ended
from messiahs.daemon.api.json_slices import Elements, Steps
from messiahs.daemon.api.paced_handlers import in_slices
from messiahs.daemon.api.pieces import Pieces
from messiahs.daemon.api.requests import body_of, offset_of, own_single_task, own_task, refusal, supplier_at
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import time_document
from messiahs.daemon.storage.drafts import WrongContentError
from messiahs.daemon.storage.files import PIECE_BYTES, FileStore
from messiahs.daemon.transfer.declared_outputs import DeclaredOutputs
from messiahs.daemon.transfer.output_arrivals import Outputs
from messiahs.daemon.transfer.taken_outputs import KeptOutputs
from messiahs.daemon.transfer.underway_files import Upload
from messiahs.errors import NoRoomError, StoreError

_HEX = re.compile(r"[0-9a-f]{64}")
FILE_LENGTH_BYTES = 8
"""Length of the prefix of each file in a request with several files."""
GROUP_LIMIT = 4_096
"""Maximum number of files in one request; clients send fewer."""
_PIECE_HASHES: Final = 128
"""Files that are looked for in one slice."""
_LOOK_NS: Final = 10 * MICROSECOND
"""What looking for one of them is expected to cost."""
_SHOWN_HASHES: Final = 64
_SENT_BYTES: Final = 256 << 10
"""What of an output is in memory until its client reads it."""
_OCTETS = {"Content-Type": "application/octet-stream"}


class MissingBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Requests those of these files that the user must upload: others' uploads do not count."""

    sha256: tuple[str, ...]


class NamesBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Names of files that a task left, which become inputs of others."""

    names: tuple[str, ...]


class FilesApi:
    """Handlers of `/v1/files`, and of outputs of tasks; all may be repeated."""

    def __init__(self, host: Host, outputs: Outputs) -> None:
        self._host = host
        self._files, self._room, self._tasks = host.files, host.input_room, Tasks(host)
        self._kept = KeptOutputs(host.files, host.input_room, outputs)
        self._declared = DeclaredOutputs()

    def routes(self) -> list[web.RouteDef]:
        """Return the paths and their handlers."""
        return [
            web.post("/v1/files/missing", self._missing),
            web.put("/v1/files", self._put_many),
            web.put("/v1/files/{sha256}", self._put),
            web.get("/v1/tasks/{id}/outputs", self._list),
            web.get("/v1/tasks/{id}/member-outputs", self._list_members),
            web.post("/v1/tasks/{id}/outputs", self._keep),
            web.get("/v1/tasks/{id}/outputs/{name:.+}", self._read),
        ]

    async def _missing(self, request: web.Request) -> web.Response:
        try:
            asked = (await body_of(request, MissingBody, {"sha256": Elements.STRINGS})).sha256
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no files: {error}")
        wrong = await in_slices(_finding_wrong(asked))
        if wrong is not None:
            return refusal(400, f"{wrong[:80]!r} is not a SHA-256 in lower-case hex")
        missing = await in_slices(finding_missing(self._files, map(bytes.fromhex, asked), of=supplier_at(request)))
        answer = msgspec.json.encode({"missing": [sha256.hex() for sha256 in missing]})
        return web.Response(body=answer, content_type="application/json")

    async def _put(self, request: web.Request) -> web.Response:
        text = request.match_info["sha256"]
        if _HEX.fullmatch(text) is None:
            return refusal(400, f"{text[:80]!r} is not a SHA-256 in lower-case hex")
        if request.content_length is None:
            return refusal(411, "an upload states its size (Content-Length)")
        # The announced size is checked first, so that an upload that cannot fit does not fill the disk.
        upload, sha256 = Upload(supplier_at(request), request.content_length), bytes.fromhex(text)
        try:
            async with self._room.kept_for(upload):
                pieces = self._room.counted(upload, _large_pieces(request.content))
                size = await self._files.put(sha256, pieces, limit_bytes=upload.size_bytes, of=upload.supplier)
        except WrongContentError as error:
            return refusal(400, str(error))
        except StoreError as error:
            return await self._not_stored(error)
        return web.json_response({"sha256": text, "size": size})

    async def _not_stored(self, error: StoreError) -> web.Response:
        """Refuse a file that does not fit; ask to try again after another failure, such as too many open files."""
        if isinstance(error, NoRoomError):
            return refusal(507, f"no_space: {error}: {await self._room.shortage()}")
        return refusal(503, str(error))

    async def _put_many(self, request: web.Request) -> web.Response:
        """Store many small files, each preceded by its length in eight bytes."""
        contents = _split(await request.read())
        if contents is None:
            return refusal(400, "each file must be preceded by its length in eight bytes, the highest first")
        if len(contents) > GROUP_LIMIT:
            return refusal(400, f"a request may contain at most {GROUP_LIMIT} files")
        upload = Upload(supplier_at(request), sum(map(len, contents)), len(contents))
        try:
            async with self._room.kept_for(upload):
                hashes = await asyncio.to_thread(self._files.keep_all, contents, of=upload.supplier)
        except StoreError as error:
            return await self._not_stored(error)
        return web.json_response({"sha256": [sha256.hex() for sha256 in hashes]})

    async def _list(self, request: web.Request) -> web.Response:
        found = await self._ended(request)
        if isinstance(found, web.Response):
            return found
        return web.json_response(await self._listing(*found))

    async def _listing(self, row: TaskRow, submission: SubmissionRow) -> dict[str, object]:
        outputs = [_document_of(one) for one in await self._declared.of(row, submission)]
        return {"outputs": outputs, "declared": list(outputs_of(submission, row.id))}

    async def _list_members(self, request: web.Request) -> web.StreamResponse:
        """List the outputs of all members of an array that have ended and left some, written piece by piece."""
        found = await own_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        if found.row is not None:
            return refusal(400, f"{found.id} is no array")
        response = web.StreamResponse(headers={"Content-Type": "application/json; charset=utf-8"})
        await response.prepare(request)
        pieces = Pieces(response, '{"members": [')
        async for member in self._tasks.members_of(found):
            part = None
            if member.row is not None and member.is_final:
                listing = await self._listing(member.row, found.submission)
                part = json.dumps({"id": str(member.id), **listing}) if listing["outputs"] else None
            await pieces.add(part)
        await pieces.end("}")
        return response

    async def _read(self, request: web.Request) -> web.StreamResponse:
        found = await self._ended(request)
        if isinstance(found, web.Response):
            return found
        row, submission = found
        name, offset = request.match_info["name"], offset_of(request)
        output = next((one for one in await self._declared.of(row, submission) if one.name == name), None)
        if output is None or not output.is_file:
            return refusal(404, f"{row.id} left no file {name}")
        if offset is None:
            return refusal(400, "offset is a number of bytes")
        length = max(0, output.size_bytes - offset)
        response = web.StreamResponse(headers={**_OCTETS, "Content-Length": str(length)})
        await response.prepare(request)
        async with aclosing(self._kept.pieces(row.id, output, offset=offset, piece_bytes=_SENT_BYTES)) as pieces:
            async for piece in pieces:
                await response.write(piece)
        await response.write_eof()
        return response

    async def _keep(self, request: web.Request) -> web.Response:
        """Keep copies of files that a task left as if its user had uploaded them, and answer with their hashes."""
        found = await self._ended(request)
        if isinstance(found, web.Response):
            return found
        row, submission = found
        try:
            names = (await body_of(request, NamesBody, {"names": Elements.STRINGS})).names
        except msgspec.MsgspecError as error:
            return refusal(400, f"the request names no outputs: {error}")
        if not has_ended_well(row):
            return refusal(409, f"{failed_text(row.id, how_ended(row))}, so its outputs are no inputs of others")
        left = {one.name: one for one in await self._declared.of(row, submission) if one.is_file}
        hashes: dict[str, str] = {}
        for name in names:
            if name not in left:
                return refusal(404, f"{row.id} left no file {name}")
            try:
                sha256 = await self._kept.keep(row.id, left[name], of=supplier_at(request))
            except WrongContentError as error:
                return refusal(503, str(error))
            except StoreError as error:
                return await self._not_stored(error)
            hashes[name] = sha256.hex()
        return web.json_response({"sha256": hashes})

    async def _ended(self, request: web.Request) -> tuple[TaskRow, SubmissionRow] | web.Response:
        """Return the ended task that a request names, or a refusal."""
        found = await own_single_task(request, self._tasks)
        if isinstance(found, web.Response):
            return found
        assert found.row is not None, "own_single_task returns single tasks"
        if not found.is_final:
            until = queries.may_run_until(self._host.module.state, found.row)
            open_end = f"may run at {found.row.executed_on} until {time_document(until)}: its end has not been reported"
            why = "has not ended" if until is None else open_end
            return refusal(409, f"{found.id} {why}; outputs are available afterwards")
        return found.row, found.submission


def finding_missing(files: FileStore, hashes: Iterable[bytes], *, of: str) -> Steps[list[bytes]]:
    """Return the files that a supplier has to upload, each once (`FileStore.missing`)."""
    missing: dict[bytes, None] = {}
    left = iter(hashes)
    while piece := tuple(islice(left, _PIECE_HASHES)):
        yield len(piece) * _LOOK_NS
        missing.update(dict.fromkeys(files.missing(piece, of=of)))
    return list(missing)


def upload_first(missing: Sequence[bytes]) -> str:
    """Return the refusal of a submit whose inputs are missing; of many, it names the first ones."""
    shown = ", ".join(sha256.hex() for sha256 in missing[:_SHOWN_HASHES])
    others = len(missing) - _SHOWN_HASHES
    return f"upload first: {shown}" + (f", and {others} more" if others > 0 else "")


def _finding_wrong(hashes: Sequence[str]) -> Steps[str | None]:
    for start in range(0, len(hashes), _PIECE_HASHES):
        yield _PIECE_HASHES * MICROSECOND
        for text in hashes[start : start + _PIECE_HASHES]:
            if _HEX.fullmatch(text) is None:
                return text
    return None


def _document_of(output: Output) -> dict[str, object]:
    document: dict[str, object] = {
        "name": output.name,
        "size": output.size_bytes,
        "executable": output.is_executable,
    }
    if output.link_target:
        document["link"] = output.link_target
    if output.is_folder:
        document["folder"] = True
    return document


async def _large_pieces(body: StreamReader) -> AsyncGenerator[memoryview, None]:
    """Yield a body in pieces that are worth a thread each, however small those are in which it arrives."""
    piece = bytearray()
    while arrived := await body.readany():
        piece += arrived
        if len(piece) >= PIECE_BYTES:
            yield memoryview(piece)
            piece = bytearray()
    if piece:
        yield memoryview(piece)


def _split(body: bytes) -> list[bytes] | None:
    """Split a body into its files, at most one more than allowed; None if it is malformed."""
    contents: list[bytes] = []
    start = 0
    while start < len(body) and len(contents) <= GROUP_LIMIT:
        begin = start + FILE_LENGTH_BYTES
        start = begin + int.from_bytes(body[start:begin])
        if start > len(body):
            return None
        contents.append(body[begin:start])
    return contents
