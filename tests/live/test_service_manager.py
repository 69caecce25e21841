"""A daemon under a service manager: what it reports, from its start to its end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.commands import Command
from tests.waiting import PATIENCE_SECONDS

_TOPOLOGY = """
version: 1
federation: alone
systems:
  one: {reach: outbound}
"""


@contextmanager
def _module(folder: Path, manager: socket.socket, *, watchdog_seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Start a module without a machine as a service manager does, and kill it afterwards if it still runs."""
    (folder / "alone.yaml").write_text(_TOPOLOGY)
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": str(manager.getsockname()),
        "WATCHDOG_USEC": str(int(watchdog_seconds * 1e6)),
    }
    words = ("module", "run", "one", "--topology", str(folder / "alone.yaml"), "--state", str(folder / "state"))
    command = [sys.executable, "-m", "messiahs.cli.main", *words]
    with Command(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as daemon:
        yield daemon
        daemon.kill()


@contextmanager
def _listener(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(folder / "notify"))
        made.settimeout(PATIENCE_SECONDS)
        yield made


def _until(manager: socket.socket, wanted: str) -> list[str]:
    """Return the reports up to the wanted one."""
    found: list[str] = []
    while not found or not found[-1].startswith(wanted):
        found.append(manager.recv(4096).decode())
    return found


def test_a_module_reports_that_it_serves_its_users_reloads_lives_and_ends(short_folder: Path) -> None:
    with _listener(short_folder) as manager, _module(short_folder, manager, watchdog_seconds=1) as daemon:
        assert _until(manager, "READY=1") == ["READY=1"]
        with socket.socket(socket.AF_UNIX) as user:
            user.connect(str(short_folder / "state" / "alone" / "one.sock"))
        status, *beats = [manager.recv(4096).decode() for _ in range(4)]
        assert status == "STATUS=one at no address, linked with 0 of 0 neighbors"
        assert beats == ["WATCHDOG=1"] * 3
        daemon.send_signal(signal.SIGHUP)
        _until(manager, "RELOADING=1")
        _until(manager, "READY=1")
        daemon.send_signal(signal.SIGTERM)
        _until(manager, "STOPPING=1")
        assert daemon.wait(PATIENCE_SECONDS) == 0


def test_a_module_that_its_watchdog_aborts_shows_where_it_stood(short_folder: Path) -> None:
    with _listener(short_folder) as manager, _module(short_folder, manager, watchdog_seconds=1) as daemon:
        _until(manager, "WATCHDOG=1")
        daemon.send_signal(signal.SIGABRT)
        _, printed = daemon.communicate(timeout=PATIENCE_SECONDS)
        assert daemon.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in printed
    assert "_run" in printed or "run_daemon" in printed


def test_a_module_says_where_its_log_is_which_has_where_it_serves(short_folder: Path) -> None:
    with _listener(short_folder) as manager, _module(short_folder, manager, watchdog_seconds=60) as daemon:
        _until(manager, "READY=1")
        daemon.terminate()
        _, said = daemon.communicate(timeout=PATIENCE_SECONDS)
        log = short_folder / "state" / "alone" / "one" / "module.log"
        assert f"one starts; {log} says when it serves" in said
        place = short_folder / "state" / "alone" / "one.sock"
        assert f"one serves users at {place}, and neighbors at " in log.read_text()
