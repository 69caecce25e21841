"""Users of one host share the room for inputs: whoever takes all they get, others still bring theirs."""

import os
from collections.abc import Iterator

import pytest

from tests.live.shared_host import Host, shared_installation
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")
SMALL = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: process, slots: 1}}
"""
_BRINGING = """
head -c $((RANDOM % 1000 + 6000000)) /dev/urandom > ~/input
messiahs submit --module site --input ~/input --after-ok {after} -- true
"""
_HARDLY_SENDING = """
import http.client, socket, sys

connection = http.client.HTTPConnection("module")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.putrequest("PUT", "/v1/files/" + 64 * "a")
connection.putheader("Content-Length", str(70_000_000))
connection.endheaders()
connection.send(b"x")
print("begun", flush=True)
connection.getresponse()
"""


@pytest.fixture
def small_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Make a host on which inputs have a disk of 100 MB."""
    folder = tmp_path_factory.mktemp("host")
    with shared_installation(folder, SMALL, prepare="mount -t tmpfs -o size=100m,mode=1777 none /var/tmp") as made:
        yield made


def test_a_user_whose_waiting_tasks_take_all_the_room_they_get_leaves_some_for_others(small_host: Host) -> None:
    holding = small_host.run("ann", "submit", "--module", "site", "--quiet", "--", "sleep", "1000").stdout.strip()
    answers = [small_host.shell("ann", _BRINGING.format(after=holding)) for _ in range(16)]
    refused = [answer.stderr for answer in answers if answer.returncode]
    assert len(refused) < len(answers)
    assert "no_space: the disk of this module has no room for 600" in refused[0]
    assert "that you have there" in refused[0]
    assert brought(small_host, "eve", size_bytes=4_000_000)
    cancelled = small_host.run("ann", "cancel", holding)
    assert cancelled.returncode == 0, cancelled.stderr + small_host.run("ann", "explain", holding).stdout


def test_an_upload_that_announces_much_and_hardly_comes_leaves_its_room_to_others(small_host: Host) -> None:
    small_host.path("/home/ann/hardly.py").write_text(_HARDLY_SENDING)
    (socket,) = small_host.shell("ann", "ls /run/messiahs/*/site*").stdout.split()
    begun = small_host.shell("ann", f"python ~/hardly.py {socket} >~/out 2>&1 & echo $!")
    eventually(lambda: small_host.path("/home/ann/out").read_text() == "begun\n")
    try:
        assert brought(small_host, "eve", size_bytes=4_000_000)
        eventually(lambda: brought(small_host, "eve", size_bytes=50_000_000))
    finally:
        small_host.shell("ann", f"kill {begun.stdout}")


def brought(host: Host, account: str, *, size_bytes: int) -> bool:
    """Whether a task of an account can bring an input of this size."""
    done = host.shell(
        account,
        f"head -c {size_bytes} /dev/zero > ~/input; messiahs submit --module site --input ~/input -- wc -c input",
    )
    assert done.returncode == 0 or "no_space" in done.stderr, done.stderr
    return done.returncode == 0
