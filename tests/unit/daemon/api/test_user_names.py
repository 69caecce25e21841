"""Names of local users: threads ask for them, and no turn of a user passes while they wait."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from aiohttp import web

from messiahs.client.connection import Connection
from messiahs.daemon.api.connection_limits import limits_of_this_process
from messiahs.daemon.api.requests import user_of
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.api.user_names import UserNames, account_of
from messiahs.daemon.host.turns import Work
from messiahs.daemon.host.user_turns import SLICE_NS, UserTurns
from tests.waiting import PATIENCE_SECONDS


class Directory:
    """A directory service that answers when `release` is set (mutable)."""

    def __init__(self, name: str | None = "ada") -> None:
        self.name, self.asked, self.release = name, 0, threading.Event()
        self.begun = threading.Event()

    def look_up(self, _: int) -> str | None:
        """Return the name once it may be told."""
        self.asked += 1
        self.begun.set()
        assert self.release.wait(PATIENCE_SECONDS), "the event loop waits, too"
        return self.name


class NotedTurns(UserTurns):
    """Turns of users that pass at once, and are counted (mutable)."""

    def __init__(self) -> None:
        super().__init__(on_waiting=lambda: None, on_active=lambda: None)
        self.slices = 0

    def turn_of(self, uid: int, *, cost_ns: int = SLICE_NS) -> Work[int] | None:
        """Count a slice."""
        self.slices += 1
        self.begin_step()
        return super().turn_of(uid, cost_ns=cost_ns)


@pytest.mark.parametrize(("found", "name"), [("ada", "ada"), (None, "uid-7")])
def test_the_event_loop_goes_on_while_a_name_is_asked_for_once_for_all_who_wait(found: str | None, name: str) -> None:
    directory = Directory(found)

    async def main() -> list[str]:
        names = UserNames(directory.look_up)
        waiting = [asyncio.create_task(names.name_of(7)) for _ in range(3)]
        await asyncio.to_thread(directory.begun.wait, PATIENCE_SECONDS)
        waiting.pop().cancel()
        directory.release.set()
        return [*await asyncio.gather(*waiting), await names.name_of(7)]

    assert asyncio.run(main()) == [name] * 3
    assert directory.asked == 1


def test_a_name_is_asked_for_again_when_it_was_kept_for_its_time() -> None:
    directory = Directory()
    directory.release.set()

    async def main() -> list[str]:
        names = UserNames(directory.look_up, kept_seconds=0.0)
        first = await names.name_of(7)
        directory.name = "countess"
        return [first, await names.name_of(7)]

    assert asyncio.run(main()) == ["ada", "countess"]


def test_accounts_that_cannot_be_read_are_asked_for_again() -> None:
    problems = [OSError(24, "Too many open files", "/etc/passwd")]

    def look_up(uid: int) -> str | None:
        if problems:
            raise problems.pop()
        return account_of(uid)

    async def main() -> str:
        names = UserNames(look_up)
        with pytest.raises(OSError, match="Too many open files"):
            await names.name_of(0)
        return await names.name_of(0)

    assert asyncio.run(main()) == "root"


def test_a_name_is_asked_for_again_when_no_thread_could_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> str:
        names = UserNames(account_of)
        with monkeypatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", refuse)
            with pytest.raises(OSError, match="can't start new thread"):
                await names.name_of(0)
        return await asyncio.wait_for(names.name_of(0), PATIENCE_SECONDS)

    assert asyncio.run(main()) == "root"


def test_no_turn_of_a_user_passes_while_the_name_is_asked_for(tmp_path: Path) -> None:
    directory, turns = Directory(), NotedTurns()

    async def name_user(request: web.Request) -> web.Response:
        return web.json_response({"user": user_of(request)})

    def ask(connection: Connection) -> bytes:
        return connection.send("GET", "/user").read()

    async def main() -> tuple[int, bytes, int]:
        access = SocketAccess(path=tmp_path / "a.sock")
        names = UserNames(directory.look_up)
        runner = await serve([web.get("/user", name_user)], access, limits_of_this_process(), turns, names=names)
        connection = Connection(tmp_path / "a.sock")
        try:
            asking = asyncio.create_task(asyncio.to_thread(ask, connection))
            await asyncio.to_thread(directory.begun.wait, PATIENCE_SECONDS)
            before = turns.slices
            directory.release.set()
            return before, await asking, turns.slices
        finally:
            connection.close()
            await runner.cleanup()

    before, answer, after = asyncio.run(main())
    assert (before, answer) == (0, b'{"user": "ada"}')
    # The handler is one slice, and so it is for those whose names are known.
    assert after == 1
    assert turns.queue.throttled_at(os.geteuid(), 0) is None
