"""A local user of a shared installation who asks for all they can: others are served, and nothing is lost."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from http import HTTPStatus
from itertools import count
from pathlib import Path
from secrets import token_hex

import pytest

from tests.live.shared_host import Host, shared_installation
from tests.waiting import PATIENCE_SECONDS, let_pass_in_loop

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
_TOPOLOGY = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: process, slots: 2}}
"""
_SOCKETS = "/run/messiahs/shared"
_AT_ONCE = 1_000
_SERVED = 20
_PAUSE_SECONDS = 0.1
_LISTED = 100
_PREDICATE_BYTES = 4_000


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with shared_installation(tmp_path, _TOPOLOGY) as made:
        yield made


class Person:
    """A user of the module, who counts the answers that they got (mutable)."""

    def __init__(self, host: Host, name: str) -> None:
        accounts = (line.split(":") for line in host.path("/etc/passwd").read_text().splitlines())
        self._uid = next(int(uid) for account, _, uid, *_ in accounts if account == name)
        self.answered = 0
        self._numbers = count(1)

    async def submit(self, *, predicate_bytes: int = 0) -> str:
        """Submit a task that no machine can run, and that does not wait for one, with a predicate never seen before."""
        terms = [f'$slots >= 1000000 and $arch ne "{token_hex(8)}"']
        while len(text := " or ".join(terms)) < predicate_bytes:
            terms.append(f'$slots >= 1000000 and $os eq "{token_hex(8)}"')
        body = {"key": str(next(self._numbers)), "argv": ["true"], "requirement": text, "waits": False}
        return str((await self._asked("POST", "/v1/tasks", json.dumps(body).encode()))["id"])

    async def list_tasks(self) -> None:
        """Read the status of all tasks of the module."""
        await self._asked("GET", "/v1/tasks", b"")

    async def _asked(self, method: str, path: str, body: bytes) -> dict[str, object]:
        reader, writer = await asyncio.open_unix_connection(sock=self._connected())
        head = f"{method} {path} HTTP/1.1\r\nHost: site\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status = (await reader.readline()).split()
        rest = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert int(status[1]) == HTTPStatus.OK, rest
        self.answered += 1
        return {} if method == "GET" else dict(json.loads(rest.partition(b"\r\n\r\n")[2]))

    def _connected(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        # The kernel shows the account that connects.
        os.seteuid(self._uid)
        try:
            made.connect("site.sock")
        finally:
            os.seteuid(0)
        made.setblocking(False)
        return made


def _log(host: Host) -> str:
    return host.path("/var/lib/messiahs/shared/site/module.log").read_text()


@pytest.mark.parametrize("what", ["submits", "listings"])
def test_a_user_is_served_while_a_thousand_requests_of_another_one_wait_and_none_of_them_is_lost(
    host: Host, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sockets of this host have paths that only root can walk from here.
    monkeypatch.chdir(host.path(_SOCKETS))
    ann, eve = Person(host, "ann"), Person(host, "eve")
    named = "(ann): it asks for more than its share and is throttled"

    async def flood(is_over: asyncio.Event) -> list[str]:
        submitted = []
        while not is_over.is_set():
            if what == "submits":
                submitted.append(await ann.submit(predicate_bytes=_PREDICATE_BYTES))
            else:
                await ann.list_tasks()
        return submitted

    async def served_beside() -> list[str]:
        is_over, overtaken = asyncio.Event(), []
        for _ in range(_LISTED if what == "listings" else 0):
            await ann.submit()
        async with asyncio.TaskGroup() as floods:
            flooding = [floods.create_task(flood(is_over)) for _ in range(_AT_ONCE)]
            async with asyncio.timeout(PATIENCE_SECONDS):
                while eve.answered < _SERVED or named not in _log(host):
                    before = ann.answered
                    await eve.submit()
                    overtaken.append(ann.answered - before)
                    # She stays within her share, also where the module is slow.
                    await let_pass_in_loop(_PAUSE_SECONDS)
            is_over.set()
        # Had they been served in the order in which they came, each of eve's would have waited for all of ann's.
        assert max(overtaken) < _AT_ONCE // 2, overtaken
        return [task for each in flooding for task in each.result()]

    submitted = asyncio.run(served_beside())
    assert len(set(submitted)) == len(submitted)
    assert "(eve)" not in _log(host)
