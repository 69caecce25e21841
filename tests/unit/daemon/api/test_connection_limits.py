"""Connections of the local API: incomplete requests of one user do not block others."""

import asyncio
import logging
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from messiahs.daemon.api.connection_limits import Limits, end_with_client, limits_of_this_process, raise_file_limit
from messiahs.daemon.api.requests import body_of, content_of, refusal, uid_of
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.process.log_lines import ALIKE_LIMIT, RateLimit
from messiahs.errors import StoreError
from tests.unit.daemon.api.free_turns import free_turns

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
WHOLE = b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = WHOLE[:20]
HELD = WHOLE.replace(b"quick", b"held")
FOLLOWED = WHOLE.replace(b"quick", b"followed")
NAMED_LATE = WHOLE.replace(b"quick", b"late")
ENDLESS = WHOLE.replace(b"quick", b"endless")
HALF_A_BODY = b"PUT /quick HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n1234"
"""The server answers at once that it reads the body."""
NO_UTF_8 = b'\r\nContent-Length: 6\r\n\r\n["\xff"]\n'
LARGE_BYTES = 4 << 20
PATIENT = Limits(of_one=16, of_all=32, head_seconds=3_600.0, body_seconds=3_600.0)


class Lab:
    """An API with two requests: one is answered at once, the other when `release` is set (mutable)."""

    def __init__(self, folder: Path) -> None:
        self.path, self.release, self.held, self.read = folder / "a.sock", asyncio.Event(), 0, 0
        self.changed = asyncio.Condition()
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        """What each request ended with whose client hung up."""
        self.writers: list[asyncio.StreamWriter] = []

    async def quick(self, request: web.Request) -> web.Response:
        """Answer with the size of the body."""
        async with self.changed:
            self.read += 1
            self.changed.notify_all()
        with self.noting_hangups():
            return web.json_response({"bytes": len(await request.read())})

    async def named(self, request: web.Request) -> web.Response:
        """Read a list of names."""
        try:
            return web.json_response(await body_of(request, list[str]))
        except msgspec.MsgspecError as error:
            return refusal(400, str(error))

    async def read_alone(self, request: web.Request) -> web.Response:
        """Answer when `release` is set, to one large request of a user after the other."""
        await request.read()
        async with self.changed:
            self.read += 1
            self.changed.notify_all()
        await content_of(request)
        self.held += 1
        await self.release.wait()
        self.held -= 1
        return web.json_response({})

    async def endless(self, request: web.Request) -> web.StreamResponse:
        """Answer for as long as the client reads."""
        response = web.StreamResponse()
        await response.prepare(request)
        with self.noting_hangups():
            while True:
                await response.write(bytes(65_536))

    @contextmanager
    def noting_hangups(self) -> Iterator[None]:
        """Record what a handler sees when its client closes the connection."""
        try:
            yield
        except ConnectionError as error:
            self.ends.put_nowait(type(error).__name__)
            raise

    async def damaged(self, _: web.Request) -> web.Response:
        """Find unreadable rows."""
        raise StoreError("a row is damaged: restore it")

    async def hold(self, _: web.Request) -> web.Response:
        """Answer when `release` is set."""
        async with self.changed:
            self.held += 1
            self.changed.notify_all()
        await self.release.wait()
        return web.json_response({})

    async def follow(self, request: web.Request) -> web.StreamResponse:
        """Begin an answer that nothing follows."""
        end_with_client(request)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ends.put_nowait("cancelled")
            raise
        return response

    async def name_late(self, request: web.Request) -> web.Response:
        """Answer with the user once the client has left, as after a long wait for a turn."""
        async with self.changed:
            self.held += 1
            self.changed.notify_all()
        await self.release.wait()
        try:
            return web.json_response({"uid": uid_of(request)})
        except Exception as error:
            self.ends.put_nowait(type(error).__name__)
            raise

    async def say(self, words: bytes) -> Streams:
        """Connect and send some bytes."""
        reader, writer = await asyncio.open_unix_connection(self.path)
        self.writers.append(writer)
        writer.write(words)
        await writer.drain()
        return reader, writer

    async def until_read(self, count: int) -> None:
        """Wait until the bodies of `count` requests are being read."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.read >= count)

    async def hold_many(self, count: int) -> list[Streams]:
        """Make requests that wait for their answers."""
        held = [await self.say(HELD) for _ in range(count)]
        async with self.changed:
            await self.changed.wait_for(lambda: self.held >= count)
        return held


def run(folder: Path, limits: Limits, test: Callable[[Lab], Awaitable[None]], /) -> None:
    async def main() -> None:
        lab = Lab(folder)
        routes = [
            web.route("*", "/quick", lab.quick),
            web.put("/named", lab.named),
            web.put("/alone", lab.read_alone),
            web.get("/held", lab.hold),
            web.get("/damaged", lab.damaged),
            web.get("/endless", lab.endless),
            web.get("/followed", lab.follow),
            web.get("/late", lab.name_late),
        ]
        runner = await serve(routes, SocketAccess(path=lab.path), limits, free_turns())
        try:
            await test(lab)
        finally:
            lab.release.set()
            for writer in lab.writers:
                writer.close()
            await asyncio.gather(*(writer.wait_closed() for writer in lab.writers), return_exceptions=True)
            await runner.cleanup()

    asyncio.run(main())


async def status_of(streams: Streams) -> int:
    return int((await streams[0].readline()).split()[1])


def test_600_half_sent_requests_keep_nobody_waiting(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        half = [await lab.say(HALF) for _ in range(600)]
        assert await status_of(await lab.say(WHOLE)) == 200
        # The oldest ones have made room.
        assert await half[0][0].read() == b""

    run(tmp_path, PATIENT, test)


def test_connections_that_are_ended_do_not_fill_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test(lab: Lab) -> None:
        for _ in range(600):
            await lab.say(HALF)
        assert await status_of(await lab.say(WHOLE)) == 200

    # All tests have the same handler.
    limit = RateLimit()
    caplog.handler.addFilter(limit)
    try:
        run(tmp_path, PATIENT, test)
    finally:
        caplog.handler.removeFilter(limit)
    assert 0 < sum("a connection was ended" in record.getMessage() for record in caplog.records) <= ALIKE_LIMIT


def test_requests_that_are_being_answered_are_never_cut_off_and_too_many_of_them_are_refused(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        held = await lab.hold_many(PATIENT.of_one)
        refused, _ = await lab.say(WHOLE)
        said = await refused.read()
        assert said.startswith(b"HTTP/1.1 503 ")
        assert said.endswith(b'{"error": "you have too many connections with this module: close some"}')
        lab.release.set()
        assert [await status_of(each) for each in held] == [200] * PATIENT.of_one

    run(tmp_path, PATIENT, test)


def test_an_incomplete_request_is_ended_even_if_it_progresses_slowly(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        silent, (trickled, writer) = await lab.say(b""), await lab.say(HALF)
        ended = asyncio.ensure_future(trickled.read())
        while not ended.done():
            writer.write(b"x")
            await asyncio.wait([ended], timeout=0.01)
        assert isinstance(ended.exception(), ConnectionError | None)
        assert await silent[0].read() == b""

    run(tmp_path, Limits(of_one=4, of_all=4, head_seconds=0.2, body_seconds=3_600.0), test)


def test_a_body_that_stops_coming_is_ended_and_an_answer_may_take_its_time(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        held = await lab.hold_many(1)
        stopped, _ = await lab.say(b"PUT /quick HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1234")
        assert await stopped.read() == b""
        lab.release.set()
        assert await status_of(held[0]) == 200

    run(tmp_path, Limits(of_one=4, of_all=4, head_seconds=0.1, body_seconds=0.1), test)


@pytest.mark.parametrize("words", [ENDLESS, HALF_A_BODY], ids=["answer", "body"])
def test_a_client_that_hangs_up_in_the_middle_leaves_nothing_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, words: bytes
) -> None:
    async def test(lab: Lab) -> None:
        reader, writer = await lab.say(words)
        await reader.readline()
        writer.transport.abort()
        assert "Reset" in await lab.ends.get()
        assert await status_of(await lab.say(WHOLE)) == 200

    caplog.set_level(logging.INFO)
    run(tmp_path, PATIENT, test)
    assert caplog.messages == []


def test_followers_that_hang_up_make_room_although_they_are_sent_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(lab: Lab) -> None:
        for _ in range(2 * PATIENT.of_one):
            reader, writer = await lab.say(FOLLOWED)
            assert await status_of((reader, writer)) == 200
            writer.close()
            assert await lab.ends.get() == "cancelled"
        assert await status_of(await lab.say(WHOLE)) == 200

    caplog.set_level(logging.INFO)
    run(tmp_path, PATIENT, test)
    assert caplog.messages == []


def test_a_client_that_leaves_before_its_user_is_looked_up_leaves_nothing_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(lab: Lab) -> None:
        _, writer = await lab.say(NAMED_LATE)
        async with lab.changed:
            await lab.changed.wait_for(lambda: lab.held)
        writer.transport.abort()
        # It is answered after the module has seen the end of the connection before.
        assert await status_of(await lab.say(WHOLE)) == 200
        lab.release.set()
        assert await lab.ends.get() == "ConnectionResetError"

    caplog.set_level(logging.INFO)
    run(tmp_path, PATIENT, test)
    assert caplog.messages == []


def test_one_account_has_only_a_few_large_bodies_in_memory_and_small_requests_wait_for_none_of_them(
    tmp_path: Path,
) -> None:
    head = b"PUT /quick HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % LARGE_BYTES

    async def test(lab: Lab) -> None:
        held = [await lab.say(head) for _ in range(2)]
        await lab.until_read(2)
        later = asyncio.ensure_future(lab.say(head + bytes(LARGE_BYTES - 1)))
        for _ in range(20):
            assert await status_of(await lab.say(WHOLE)) == 200
        assert not later.done()
        held[0][1].write(bytes(LARGE_BYTES))
        assert await status_of(held[0]) == 200
        reader, writer = await later
        writer.write(b"x")
        assert await status_of((reader, writer)) == 200

    run(tmp_path, replace(PATIENT, bodies=2), test)


def test_of_the_large_requests_of_one_account_one_is_handled_after_the_other(tmp_path: Path) -> None:
    head = b"PUT /alone HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"

    async def test(lab: Lab) -> None:
        large = [await lab.say(head % 100_000 + bytes(100_000)) for _ in range(3)]
        await lab.until_read(3)
        assert await status_of(await lab.say(WHOLE)) == 200
        assert lab.held == 1
        small = await lab.say(head % 9 + bytes(9))
        await lab.until_read(5)
        assert await status_of(await lab.say(WHOLE)) == 200
        assert lab.held == 2
        lab.release.set()
        for each in (*large, small):
            assert await status_of(each) == 200
        assert lab.held == 0

    run(tmp_path, PATIENT, test)


def test_a_body_that_is_not_utf_8_is_an_ordinary_mistake(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        streams = await lab.say(WHOLE.replace(b"GET /quick", b"PUT /named").replace(b"\r\n\r\n", NO_UTF_8))
        assert await status_of(streams) == 400
        assert b"it is not UTF-8" in await streams[0].readuntil(b"}")

    run(tmp_path, PATIENT, test)


def test_unreadable_rows_are_reported_with_a_clear_message(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        streams = await lab.say(WHOLE.replace(b"quick", b"damaged"))
        assert await status_of(streams) == 500
        assert b"a row is damaged: restore it" in await streams[0].readuntil(b"}")

    run(tmp_path, PATIENT, test)


def test_most_files_are_left_to_everything_else() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        limits = limits_of_this_process()
        assert limits.of_one < limits.of_all <= 512 // 4
        assert raise_file_limit() == 512
        assert limits_of_this_process().of_one > limits.of_one or before[1] <= 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("count", [1, 100])
def test_one_connection_after_the_other_is_served(tmp_path: Path, count: int) -> None:
    async def test(lab: Lab) -> None:
        for _ in range(count):
            reader, writer = await lab.say(WHOLE)
            assert await status_of((reader, writer)) == 200
            writer.close()

    run(tmp_path, PATIENT, test)
