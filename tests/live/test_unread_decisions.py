"""A user who requests the audit log of decisions on hundreds of connections and reads none: a module stays small."""

import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import psutil
import pytest

from messiahs.daemon.audit.entries import Line
from messiahs.daemon.process.pid_files import recorded_process
from tests.live.shared_host import Host, shared_installation
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
_TOPOLOGY = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: process, slots: 2}}
"""
_SOCKETS = "/run/messiahs/shared"
_STATE = "/var/lib/messiahs/shared/site"
_READERS, _ANSWERED, _SOURCES, _OWN_LINES = 300, 64, 60, 5_000
_READ_FILES, _OTHER_FILES = 2 * _SOURCES, 20
"""What one piece has open while it is read, of all answers one at a time; and what else is open now and then."""
_MEMORY_BYTES = 96 << 20
"""What so many answers have in memory: a piece of 256 KiB, and what the socket has not taken of it."""
_ASKED = b"GET /v1/audit/decisions HTTP/1.1\r\nHost: site\r\n\r\n"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with shared_installation(tmp_path, _TOPOLOGY) as made:
        yield made


def _write_log(host: Host) -> None:
    """Write lines of yesterday: many of ann's, and one of each of many other sources before and after them."""
    began = datetime.now(UTC) - timedelta(days=1)
    folder = host.path(f"{_STATE}/audit/{began.date()}")
    folder.mkdir(parents=True, mode=0o700)
    day = f"{began.date()}T"

    def line(time: str, about: int) -> bytes:
        of_ann = Line(at=f"{day}{time}Z", module="site", kind="task", what="submitted", user="ann", origin="site")
        return msgspec.json.encode(msgspec.structs.replace(of_ann, about=str(about))) + b"\n"

    for number in range(_SOURCES):
        (folder / f"other-{number}.jsonl").write_bytes(line("01:00:00", number) + line("03:00:00", number))
    (folder / "own.jsonl").write_bytes(b"".join(line("02:00:00", number) for number in range(_OWN_LINES)))


def _reader(uid: int) -> socket.socket:
    """Return a connection of an account that has requested the log."""
    made = socket.socket(socket.AF_UNIX)
    # The kernel shows the account that connects.
    os.seteuid(uid)
    try:
        made.connect("site.sock")
    finally:
        os.seteuid(0)
    made.sendall(_ASKED)
    return made


def _status(reader: socket.socket) -> bytes:
    """Return the status of an answer, and leave all of it unread."""
    return reader.recv(64, socket.MSG_PEEK).split()[1]


def test_hundreds_of_unread_answers_take_few_files_and_little_memory_and_others_are_served(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sockets of this host have paths that only root can walk from here.
    monkeypatch.chdir(host.path(_SOCKETS))
    _write_log(host)
    module = recorded_process(host.path(f"{_STATE}/daemon.pid"))
    assert module is not None
    process, ann = psutil.Process(module.pid), int(host.shell("ann", "id -u").stdout)
    assert host.run("eve", "run", "--", "true").returncode == 0
    files, memory_bytes = process.num_fds(), process.memory_info().rss
    for _ in range(3):
        with ExitStack() as unread:
            readers = [unread.enter_context(_reader(ann)) for _ in range(_READERS)]
            assert Counter(map(_status, readers)) == {b"200": _ANSWERED, b"503": _READERS - _ANSWERED}
            done = host.run("eve", "run", "--", "echo", "served")
            assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr
            assert process.num_fds() < files + _READERS + _READ_FILES + _OTHER_FILES
            assert process.memory_info().rss < memory_bytes + _MEMORY_BYTES
        eventually(lambda: process.num_fds() < files + _OTHER_FILES)
    shown = host.run("ann", "audit", "decisions", "--json").stdout
    assert len(shown.splitlines()) == _OWN_LINES + 2 * _SOURCES
