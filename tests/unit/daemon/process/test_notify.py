"""Reports to a service manager, read at a real datagram socket."""

import asyncio
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.daemon.process.notify import Notifier


@contextmanager
def _listener(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        made.settimeout(60)
        yield made


def _all_of(manager: socket.socket) -> list[str]:
    manager.setblocking(False)
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


@pytest.fixture(params=["a path", "an abstract name"])
def address(request: pytest.FixtureRequest, short_folder: Path) -> str:
    """Return an address at which nobody listens yet."""
    return str(short_folder / "notify") if request.param == "a path" else f"@messiahs-{secrets.token_hex(8)}"


def test_a_process_reports_each_change_at_the_socket_that_the_environment_names(address: str) -> None:
    environment = {"NOTIFY_SOCKET": address, "HOME": "/"}
    with _listener(address) as manager:
        notifier = Notifier.of_environment(environment)
        notifier.ready()
        notifier.reloading()
        notifier.stopping()
        ready, reloading, stopping = _all_of(manager)
    assert (ready, stopping) == ("READY=1", "STOPPING=1")
    assert reloading.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert environment == {"HOME": "/"}, "processes that it starts would report for it"


def test_a_status_is_one_line_and_is_not_repeated(address: str) -> None:
    with _listener(address) as manager:
        notifier = Notifier(address)
        notifier.status("2 of 3\nREADY=1")
        notifier.status("2 of 3\nREADY=1")
        notifier.status("3 of 3")
        assert _all_of(manager) == ["STATUS=2 of 3 READY=1", "STATUS=3 of 3"]


def test_the_event_loop_reports_at_half_of_the_watchdogs_time(address: str) -> None:
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}

    async def beats(manager: socket.socket) -> list[str]:
        notifier = Notifier.of_environment(environment)
        assert notifier.watchdog_seconds == 0.02
        watching = asyncio.ensure_future(notifier.watch(lambda: "works"))
        manager.setblocking(False)
        loop = asyncio.get_running_loop()
        found = [(await loop.sock_recv(manager, 4096)).decode() for _ in range(4)]
        watching.cancel()
        return found

    with _listener(address) as manager:
        assert asyncio.run(beats(manager)) == ["STATUS=works", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}],
)
def test_without_a_watchdog_for_this_process_the_status_is_reported_once(
    environment: dict[str, str], address: str
) -> None:
    with _listener(address) as manager:
        asyncio.run(Notifier.of_environment({**environment, "NOTIFY_SOCKET": address}).watch(lambda: "works"))
        assert _all_of(manager) == ["STATUS=works"]


def test_without_a_service_manager_nothing_is_sent_and_nothing_fails(address: str) -> None:
    Notifier.of_environment({}).ready()
    Notifier(address).ready()


def test_a_service_manager_that_does_not_read_holds_nobody_up(address: str) -> None:
    with _listener(address) as manager:
        notifier = Notifier(address)
        for number in range(10_000):
            notifier.status(str(number))
        read = _all_of(manager)
    assert read[0] == "STATUS=0"
    assert len(read) < 10_000
