"""Users who stop following or reading output: no place of theirs stays taken, and little of it is in memory."""

import socket
from collections import Counter
from contextlib import ExitStack

import psutil

from messiahs.daemon.process.pid_files import recorded_process
from tests.live.conftest import Federation
from tests.waiting import eventually

FOLLOWERS = 1_100
"""More than one account may have connections."""
_READERS, _ANSWERED, _OTHER_FILES = 200, 64, 20
_WRITTEN_BYTES, _MEMORY_BYTES = 4 << 20, 80 << 20
"""What each of two members has written; and 64 times the pieces that wait for a reader, with the buffers of sockets."""


def test_users_who_stopped_to_follow_a_quiet_task_are_served(pair: Federation) -> None:
    task = pair.submit("--", "sleep", "600")
    asked = f"GET /v1/tasks/{task}/logs?follow=1 HTTP/1.1\r\nHost: messiahs\r\n\r\n".encode()
    for _ in range(FOLLOWERS):
        with socket.socket(socket.AF_UNIX) as follower:
            follower.connect(str(pair.folder(pair.module).with_suffix(".sock")))
            follower.sendall(asked)
            assert follower.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert pair.run("cancel", task).returncode == 0


def test_of_what_members_of_an_array_wrote_little_is_in_memory_for_those_who_do_not_read_it(pair: Federation) -> None:
    array = pair.submit("--array", "1-2", "--", "head", "-c", str(_WRITTEN_BYTES), "/dev/zero")
    assert pair.run("wait", array).returncode == 0
    folder = pair.folder(pair.module)
    module = recorded_process(folder / "daemon.pid")
    assert module is not None
    process = psutil.Process(module.pid)
    files, memory_bytes = process.num_fds(), process.memory_info().rss
    asked = f"GET /v1/tasks/{array}/member-logs?follow=1 HTTP/1.1\r\nHost: messiahs\r\n\r\n".encode()
    with ExitStack() as unread:
        readers = [unread.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(_READERS)]
        for reader in readers:
            reader.connect(str(folder.with_suffix(".sock")))
            reader.sendall(asked)
        statuses = Counter(reader.recv(64, socket.MSG_PEEK).split()[1] for reader in readers)
        assert statuses == {b"200": _ANSWERED, b"503": _READERS - _ANSWERED}
        assert pair.run("status", array).returncode == 0
        assert process.memory_info().rss < memory_bytes + _MEMORY_BYTES
    eventually(lambda: process.num_fds() < files + _OTHER_FILES)
    eventually(lambda: len(pair.run("logs", array).stdout) >= 2 * _WRITTEN_BYTES)
