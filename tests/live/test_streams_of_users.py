"""Users of a module share its streams of running tasks to a machine: whoever follows all they can leaves some."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.shared_host import Host, shared_installation
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
_TOPOLOGY = """
version: 1
federation: shared
systems:
  top: {machine: {isolation: process, slots: 1}}
  far: {parents: [top], machine: {isolation: process, slots: 8}}
  desk: {parents: [top], machine: {isolation: process, slots: 1}}
"""
_ON_FAR = ("--module", "desk", "--require", "$slots >= 8")
_FOLLOWERS, _STREAMS = 80, 64
_FOLLOWING = """
import selectors, socket, sys

path, task, followers = sys.argv[1], sys.argv[2], int(sys.argv[3])
selector, shown = selectors.DefaultSelector(), set()
for number in range(followers):
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    request = f"GET /v1/tasks/{task}/logs?follow=1&stream=stdout HTTP/1.1\\r\\nHost: module\\r\\n\\r\\n"
    made.sendall(request.encode())
    selector.register(made, selectors.EVENT_READ, number)
while True:
    for key, _ in selector.select():
        content = key.fileobj.recv(65536)
        if not content:
            sys.exit(f"follower {key.data} was left alone")
        if b"written" in content:
            assert key.data not in shown, "output was shown twice"
            shown.add(key.data)
            print(len(shown), flush=True)
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with shared_installation(tmp_path, _TOPOLOGY) as made:
        yield made


def test_a_user_whose_followers_take_all_streams_to_a_machine_leaves_some_for_others(host: Host) -> None:
    writing = ("sh", "-c", "echo written; exec sleep 100")
    task = host.run("ann", "submit", *_ON_FAR, "--quiet", "--", *writing).stdout.strip()
    host.path("/home/ann/following.py").write_text(_FOLLOWING)
    (socket,) = host.shell("ann", "ls /run/messiahs/*/desk.sock").stdout.split()
    following = host.shell("ann", f"python ~/following.py {socket} {task} {_FOLLOWERS} >~/out 2>~/err & echo $!")
    eventually(lambda: host.path("/home/ann/out").read_text().endswith(f"{_STREAMS}\n"))

    done = host.shell("eve", f"echo hi | messiahs run {' '.join(map(_quoted, _ON_FAR))} -- cat")
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    assert "standard input waits" not in done.stderr

    # It has not waited for the streams of the other one, whose followers all go on.
    (row,) = json.loads(host.run("ann", "status", "--module", "desk", "--json", task).stdout)["tasks"]
    assert (row["state"], row["executed_on"]) == ("executing", "far")
    assert host.path("/home/ann/err").read_text() == ""
    host.shell("ann", f"kill {following.stdout}")


def _quoted(word: str) -> str:
    return f"'{word}'"
