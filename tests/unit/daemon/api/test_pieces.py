"""Long answers that are written in pieces."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from messiahs.daemon.api.connection_limits import limits_of_this_process
from messiahs.daemon.api.pieces import CHARACTERS, PARTS, Pieces
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from tests.unit.daemon.api.free_turns import free_turns


@pytest.mark.parametrize(
    ("parts", "pieces"),
    [
        ([], 1),
        (["1"] * (PARTS - 1), 1),
        ([None] * (3 * PARTS), 2),
        (["1", None] * PARTS, 3),
        ([json.dumps("x" * CHARACTERS)] * 5 + ["1"], 6),
        ([json.dumps("x" * (CHARACTERS // 4))] * 9, 3),
    ],
)
def test_a_piece_has_a_bounded_number_of_parts_and_about_a_bounded_length(
    tmp_path: Path, parts: list[str | None], pieces: int
) -> None:
    path = tmp_path / "a.sock"

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        made = Pieces(response, '{"a": [')
        for part in parts:
            await made.add(part)
        await made.end(', "b": 1}')
        return response

    async def main() -> list[bytes]:
        runner = await serve([web.get("/", answer)], SocketAccess(path=path), limits_of_this_process(), free_turns())
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        chunks = []
        while size := int(await reader.readline(), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
        writer.close()
        await runner.cleanup()
        return chunks

    chunks = asyncio.run(main())
    assert json.loads(b"".join(chunks)) == {"a": [json.loads(part) for part in parts if part is not None], "b": 1}
    assert len(chunks) == pieces
