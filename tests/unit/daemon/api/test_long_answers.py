"""Answers that are sent while their clients read them: how many one account has, and what is left when one ends."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from messiahs.daemon.api.connection_limits import Limits, begin_long_answer
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from tests.unit.daemon.api.free_turns import free_turns
from tests.waiting import until

_LIMITS = Limits(of_one=16, of_all=32, long_answers=4, head_seconds=3_600.0, body_seconds=3_600.0)
_PIECE_BYTES = 1 << 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Held:
    """What a handler has in memory while it answers."""


class Lab:
    """An API whose answers have no end (mutable)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held: list[weakref.ref[Held]] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def long(self, request: web.Request) -> web.StreamResponse:
        """Answer for as long as the client is there, to few of one account."""
        begin_long_answer(request)
        return await self.any(request)

    async def any(self, request: web.Request) -> web.StreamResponse:
        """Answer for as long as the client is there."""
        had = Held()
        self.held.append(weakref.ref(had))
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(await InThread(lambda: bytes(_PIECE_BYTES)))

    async def broken(self, request: web.Request) -> web.StreamResponse:
        """Answer as a write does whose client hangs up: what it waits for has the error that it raises."""
        had, waiting = Held(), asyncio.get_running_loop().create_future()
        self.held.append(weakref.ref(had))
        await web.StreamResponse().prepare(request)
        await until(lambda: request.transport is None)
        waiting.set_exception(ConnectionResetError())
        return web.Response(text=await waiting)

    async def ask(self, path: str) -> Streams:
        """Request an answer."""
        reader, writer = await asyncio.open_unix_connection(self.path)
        self.writers.append(writer)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return reader, writer

    def alive(self) -> int:
        """Return how many handlers still have something in memory."""
        return sum(each() is not None for each in self.held)


def run(folder: Path, test: Callable[[Lab], Awaitable[None]], /) -> None:
    async def main() -> None:
        lab = Lab(folder / "a.sock")
        routes = [web.get("/long", lab.long), web.get("/any", lab.any), web.get("/broken", lab.broken)]
        runner = await serve(routes, SocketAccess(path=lab.path), _LIMITS, free_turns())
        try:
            await test(lab)
        finally:
            for writer in lab.writers:
                writer.transport.abort()
            await asyncio.gather(*(writer.wait_closed() for writer in lab.writers), return_exceptions=True)
            await runner.cleanup()

    asyncio.run(main())


def test_one_account_has_few_long_answers_and_one_that_ends_makes_room(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        held = [await lab.ask("/long") for _ in range(_LIMITS.long_answers)]
        assert [await reader.readline() for reader, _ in held] == [b"HTTP/1.1 200 OK\r\n"] * _LIMITS.long_answers
        for _ in range(2):
            reader, refused = await lab.ask("/long")
            assert await reader.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
            text = b"you have too many connections with this module that follow, or have not read what they asked for"
            assert text in await reader.readuntil(b"}")
            refused.close()
        # Others are not counted.
        assert await (await lab.ask("/any"))[0].readline() == b"HTTP/1.1 200 OK\r\n"
        held[0][1].transport.abort()
        await until(lambda: lab.alive() == _LIMITS.long_answers)
        assert await (await lab.ask("/long"))[0].readline() == b"HTTP/1.1 200 OK\r\n"

    run(tmp_path, test)


@pytest.mark.parametrize("path", ["/long", "/any", "/broken"])
def test_nothing_of_an_answer_is_left_when_its_client_hangs_up(tmp_path: Path, path: str) -> None:
    async def test(lab: Lab) -> None:
        gc.disable()
        try:
            for count in range(1, 4):
                reader, writer = await lab.ask(path)
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
                assert (lab.alive(), len(lab.held)) == (1, count)
                writer.transport.abort()
                await until(lambda: not lab.alive(), seconds=30)
        finally:
            gc.enable()

    run(tmp_path, test)
