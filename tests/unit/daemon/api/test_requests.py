"""The user of a request to the local API."""

import asyncio
import http.client
import json
import pwd
from pathlib import Path

import pytest
from aiohttp import web

from messiahs.client.connection import BusyError, Connection, check_not_busy
from messiahs.daemon.api.connection_limits import limits_of_this_process
from messiahs.daemon.api.requests import user_of
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.api.user_names import UserNames, account_of
from tests.descriptors import no_free_descriptor
from tests.unit.daemon.api.free_turns import free_turns


async def name_user(request: web.Request) -> web.Response:
    """Answer with the user of the request."""
    return web.json_response({"user": user_of(request)})


def ask(connection: Connection) -> tuple[int, bytes]:
    response = connection.send("GET", "/user")
    return response.status, response.read()


def test_a_user_whose_account_cannot_be_read_is_asked_to_try_again(tmp_path: Path) -> None:
    # The system may know root and nobody without a file.
    account = next(each for each in pwd.getpwall() if each.pw_uid not in {0, 65534})

    async def main() -> tuple[tuple[int, bytes], ...]:
        runner = await serve(
            [web.get("/user", name_user)],
            SocketAccess(path=tmp_path / "a.sock"),
            limits_of_this_process(),
            free_turns(),
            names=UserNames(lambda _: account_of(account.pw_uid), kept_seconds=0.0),
        )
        connection = Connection(tmp_path / "a.sock")
        try:
            first = await asyncio.to_thread(ask, connection)
            with no_free_descriptor():
                second = await asyncio.to_thread(ask, connection)
            return first, second, await asyncio.to_thread(ask, connection)
        finally:
            connection.close()
            await runner.cleanup()

    before, short, after = asyncio.run(main())
    name = {"user": account.pw_name}
    assert (before[0], json.loads(before[1])) == (after[0], json.loads(after[1])) == (http.client.OK, name)
    # So the client's patience repeats the request.
    with pytest.raises(BusyError, match=r"cannot look up your account \(Too many open files: .*\); try again later$"):
        check_not_busy(*short)
