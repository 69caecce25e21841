"""Users who stop following the output of a task that prints nothing: no place of theirs stays taken."""

import socket

from tests.live.conftest import Federation

FOLLOWERS = 1_100
"""More than one account may have connections."""


def test_users_who_stopped_to_follow_a_quiet_task_are_served(pair: Federation) -> None:
    task = pair.submit("--", "sleep", "600")
    asked = f"GET /v1/tasks/{task}/logs?follow=1 HTTP/1.1\r\nHost: messiahs\r\n\r\n".encode()
    for _ in range(FOLLOWERS):
        with socket.socket(socket.AF_UNIX) as follower:
            follower.connect(str(pair.folder(pair.module).with_suffix(".sock")))
            follower.sendall(asked)
            assert follower.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert pair.run("cancel", task).returncode == 0
