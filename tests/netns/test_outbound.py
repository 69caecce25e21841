"""A machine with `network: outbound`: its tasks open connections, and nobody opens one to them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.netns.network import network

pytestmark = pytest.mark.netns

Answers = dict[str, Any]

_PREPARED = """
mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && mount --bind "$0" /etc/resolv.conf && exec "$@"
"""
"""A view of the host with the usual mode of /dev/net/tun, and a server of names on its loopback."""


@pytest.fixture(scope="module", params=["sandbox", "bubblewrap"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    if shutil.which("slirp4netns") is None:
        pytest.skip("needs the package slirp4netns")
    folder = tmp_path_factory.mktemp("outbound")
    resolver = folder / "resolv.conf"
    resolver.write_text("search example\nnameserver 127.0.0.53\n")
    with network(("site", "world"), wires=[("site", "world")], switched=()) as made:
        scene = [sys.executable, "-m", "tests.netns.outbound_scene", str(folder), request.param]
        scene += [made.netns("world"), made.addresses["world"]]
        entering = ["nsenter", f"--net=/run/netns/{made.netns('site')}", "unshare", "--mount"]
        command = [*entering, "sh", "-c", _PREPARED, str(resolver), *scene]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)


def test_a_task_reaches_servers_outside(answers: Answers) -> None:
    assert (answers["tcp"], answers["udp"]) == ("world", "?")


def test_a_task_asks_for_names_though_the_machines_server_of_names_is_on_its_loopback(answers: Answers) -> None:
    assert answers["by name"] == "world"


def test_a_task_does_not_reach_what_listens_on_the_loopback_of_the_machine(answers: Answers) -> None:
    assert "host" not in answers["loopback"]
    assert answers["abstract"] == "ConnectionRefusedError"
    assert answers["host itself"] == ["?", "host", "host"]


def test_a_task_that_binds_its_sockets_to_the_device_reaches_the_world_and_not_the_loopback_of_the_machine(
    answers: Answers,
) -> None:
    # What it reached, and what the servers on the loopback got: each one thing, from the machine itself.
    assert answers["bound"] == [2, 1, 1]


def test_nobody_reaches_what_listens_in_a_task(answers: Answers) -> None:
    assert answers["into a task"] == ["ConnectionRefusedError"] * 3
    assert answers["listener"] == ["listens"]


def test_a_task_has_no_right_in_its_network(answers: Answers) -> None:
    assert answers["raw"] == ["cannot", "cannot"]


def test_a_task_has_fewer_than_1024_connections_at_once_and_the_next_one_has_its_own(answers: Answers) -> None:
    assert 500 < answers["at once"] < 1024
    assert answers["afterwards"] == "world"


def test_many_tasks_at_once_have_each_a_network_and_all_run(answers: Answers) -> None:
    assert set(answers["tasks"]) == {0}
    assert answers["losses"] == []


def test_a_task_whose_network_ends_is_lost_and_the_next_one_has_a_network(answers: Answers) -> None:
    cause, text = answers["lost"]
    assert (cause, text.partition(":")[0]) == ("lost", "the network of the sandbox ended")
    assert answers["next"] == "world"


@pytest.fixture
def in_an_image(answers: Answers) -> Answers:
    if "in an image" not in answers:
        pytest.skip("no box of bubblewrap has an image")
    found: Answers = answers["in an image"]
    return found


def test_no_network_of_a_task_outlives_a_starter_that_is_killed(answers: Answers) -> None:
    assert answers["left"] == []


def test_a_task_in_an_image_has_the_same_network_and_asks_the_same_server_of_names(in_an_image: Answers) -> None:
    found = in_an_image
    assert (found["tcp"], found["udp"], found["by name"]) == ("world", "?", "world")
    seen = found["root"].split()
    # The machine's own root has it.
    assert "boot" not in seen
    assert seen[-4:] == ["nameserver", "10.0.2.3", "search", "example"]


def test_a_task_in_an_image_reaches_nothing_on_the_machine_either(in_an_image: Answers) -> None:
    found = in_an_image
    assert "host" not in found["loopback"]
    assert (found["abstract"], found["raw"]) == ("ConnectionRefusedError", ["cannot", "cannot"])


def test_a_task_in_an_image_whose_network_ends_is_lost_and_the_next_one_has_image_and_network(
    in_an_image: Answers,
) -> None:
    cause, text = in_an_image["lost"]
    assert (cause, text.partition(":")[0]) == ("lost", "the network of the sandbox ended")
    assert in_an_image["next"] == "world"


def test_a_rule_of_the_host_for_the_accounts_of_tasks_bounds_what_they_reach(answers: Answers) -> None:
    assert answers["ruled out"] != "world"
    assert answers["host not ruled out"] == "world"
