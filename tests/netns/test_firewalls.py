"""Trouble between two sites, each behind a border and a firewall.

Site a has private addresses (NAT), and opens two ports of one host; site b admits nothing. During each trouble, bytes
of every kind are on their way in one direction. Afterwards every task has ended once, in its first attempt; every
module knows all machines again before its second update period has ended; and the core repeats what each module did.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from tests.commands import Command
from tests.live.reissued import hidden, reissued
from tests.live.relay import heard_by
from tests.live.sites import OPEN, SLOTS, Place, Plan, Sites, on, two_sites
from tests.netns.recordings import recorded
from tests.netns.traffic import Traffic
from tests.netns.walled import PORTS, Wall, Walled, Way, walled
from tests.waiting import PATIENCE_SECONDS, eventually, let_pass

pytestmark = pytest.mark.netns

KIB = 1 << 10
PLAN = Plan(
    sites={"a": ("top-a", "gate-a", "group-a", "a1", "a2"), "b": ("door-b", "gate-b", "group-b", "b1", "b2")},
    parents={**OPEN.parents, "gate-a": "top-a", "gate-b": "door-b", "door-b": "top-a"},
    machines=OPEN.machines,
    linked={"a": ("door-b",), "b": ("top-a",)},
    borders=("gate-a", "gate-b"),
    outbound=("door-b",),
    period="1s",
)
"""As in sites.py, but both sites meet at `top-a`, which `door-b` dials. The period is longer than machines are busy."""
WALLS = {
    "a": Wall(hosts=PLAN.sites["a"], opened="top-a", has_nat=True),
    "b": Wall(hosts=PLAN.sites["b"]),
}
LINK = ("top-a", "door-b")
PERIODS = 2
IDLE_SECONDS = 5
DAY_SECONDS = 86_400
AHEAD = timedelta(minutes=90)
SHORT_LEASES = 'policy "short leases" version 1; accept from any {} accept from users {} timeouts { lease 3s; }'


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """Both sites, and the network between their firewalls."""

    sites: Sites
    network: Walled


@pytest.fixture(scope="module")
def fenced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fenced]:
    """Start both sites behind their firewalls."""
    with walled(WALLS, tmp_path_factory.mktemp("names")) as made:
        places = {
            host: Place(
                address=f"{made.name(host)}:{PORTS[0]}",
                bulk_port=PORTS[1],
                netns=made.netns(host),
                hosts=str(made.hosts_file(site)),
            )
            for site, wall in WALLS.items()
            for host in wall.hosts
        }
        with two_sites(tmp_path_factory.mktemp("sites"), places, plan=PLAN) as sites:
            sites.await_links()
            yield Fenced(sites=sites, network=made)
            # In none of the tests did anybody try to begin a connection with the site that admits none.
            assert made.counted("b", "knocked") == 0
            assert made.counted("a", "admitted") > 0


@contextmanager
def _underway(
    fenced: Fenced, shared: Path, *, origin: str = "b1", machine: str = "a1", size_bytes: int = 256 * KIB
) -> Iterator[None]:
    """Have bytes on their way for the block; afterwards all has arrived, views are right, and traces replay."""
    with recorded(fenced.sites) as recording:
        traffic = Traffic(sites=fenced.sites, folder=shared, origin=origin, machine=machine, size_bytes=size_bytes)
        traffic.begin()
        yield
        traffic.end()
        fenced.sites.await_links()
        fenced.sites.leave_nothing()
    recording.check()
    heard_at = max(recording.heard_at(here, there) for here, there in (LINK, LINK[::-1]))
    for module in PLAN.machines:
        assert recording.periods_until_right(module, heard_at) <= PERIODS, module


def _await_loss(fenced: Fenced) -> None:
    """Return once both ends of the link between the sites have given it up."""
    for here, there in (LINK, LINK[::-1]):
        eventually(lambda here=here, there=there: there not in heard_by(fenced.sites.at(here), here))  # type: ignore[misc]


def test_a_partition_that_heals(fenced: Fenced, shared: Path) -> None:
    with _underway(fenced, shared):
        fenced.network.partition("a")
        _await_loss(fenced)
        fenced.network.heal("a")


def test_an_attempt_that_is_repeated_beyond_a_firewall_reads_a_pipe_again(fenced: Fenced) -> None:
    here, pipe = fenced.sites.at("b1"), subprocess.PIPE
    script = "wc -c; [ $MESSIAHS_ATTEMPT -gt 1 ] || exec sleep 600"
    command = [sys.executable, "-m", "messiahs.cli.main", "run", *on("a1"), "--", "sh", "-c", script]
    with (
        Command[bytes](command, stdin=pipe, stdout=pipe, stderr=pipe, env=here.environment) as run,
        fenced.sites.client("b1") as client,
    ):
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"content")
        run.stdin.close()
        assert run.stdout.readline() == b"7\n"
        task = client.tasks()["tasks"][-1]["id"]
        client.act_by_hand(task, "revoke")
        assert run.stdout.read() == b"7\n"
        assert run.wait(PATIENCE_SECONDS) == 0
        (ended,) = client.tasks(task)["tasks"]
    assert ended["attempt"] == 2


@pytest.mark.parametrize("way", Way)
def test_one_direction_that_is_lost_for_a_while(fenced: Fenced, shared: Path, way: Way) -> None:
    with _underway(fenced, shared):
        fenced.network.partition("a", way)
        _await_loss(fenced)
        fenced.network.heal("a")


@pytest.mark.parametrize("ways", [(), (Way.INWARD,)], ids=["both", "one"])
def test_a_third_of_all_packets_is_lost(fenced: Fenced, shared: Path, ways: tuple[Way, ...]) -> None:
    fenced.network.lose("a", *ways, percent=30)
    try:
        with _underway(fenced, shared, size_bytes=32 * KIB):
            pass
    finally:
        fenced.network.heal("a")


def test_a_delay_of_100_ms(fenced: Fenced, shared: Path) -> None:
    with fenced.network.delayed("a", seconds=0.1), _underway(fenced, shared):
        pass


def test_a_firewall_that_forgets_its_connections(fenced: Fenced, shared: Path) -> None:
    with _underway(fenced, shared):
        before = fenced.network.counted("a", "admitted")
        fenced.network.forget("a")
        # The new connections are there for good; that the old ones were given up shows only for a moment.
        eventually(lambda: fenced.network.counted("a", "admitted") > before)
    fenced.network.remember("a")


def test_a_connection_of_which_one_end_has_died(fenced: Fenced, shared: Path) -> None:
    with _underway(fenced, shared):
        fenced.network.partition("b")
        fenced.sites.restart("door-b")
        fenced.network.heal("b")


def test_a_public_address_that_changes_is_followed_once_its_name_is(fenced: Fenced, shared: Path) -> None:
    with _underway(fenced, shared):
        fenced.network.renumber("a", "198.51.100.77")
        _await_loss(fenced)
        fenced.network.publish()


@contextmanager
def _short_leases(sites: Sites) -> Iterator[None]:
    """Let leases end soon for the block."""
    for text in (SHORT_LEASES, None):
        for module in PLAN.modules:
            with sites.client(module) as client:
                assert not client.load_policy(text)["problems"]
        if text:
            yield


def test_the_tasks_of_a_host_that_vanishes_run_at_another_one(fenced: Fenced, shared: Path) -> None:
    sites, here = fenced.sites, fenced.sites.at("b1")
    run = "echo $MESSIAHS_TASK_ID >> {0}/began; until [ -e {0}/{1} ]; do sleep 0.05; done; echo >> {0}/ended"

    def began() -> int:
        return len((shared / "began").read_text().split()) if (shared / "began").exists() else 0

    with _short_leases(sites):
        # The other host is full until the first one has vanished.
        full = here.submit("--array", f"1-{SLOTS}", *on("a2"), "--", "sh", "-c", run.format(shared, "free"))
        eventually(lambda: began() == SLOTS)
        lost = here.submit("--array", f"1-{SLOTS}", *on("a1", "a2"), "--", "sh", "-c", run.format(shared, "go"))
        eventually(lambda: began() == 2 * SLOTS)
        fenced.network.vanish("a1")
        sites.kill("a1")
        os.kill(sites.at("a1").pid("a1", "starter"), signal.SIGKILL)
        (shared / "free").touch()
        eventually(lambda: began() == 3 * SLOTS)
        (shared / "go").touch()
        for task, attempt in ((full, 1), (lost, 2)):
            assert here.run("wait", task).returncode == 0
            ended = here.members(task)
            assert {(each["state"], each["attempt"], each["executed_on"]) for each in ended} == {
                ("finished", attempt, "gate-a")
            }
        assert len((shared / "ended").read_text().splitlines()) == 2 * SLOTS
        fenced.network.appear("a1")
        sites.start("a1")
        sites.await_links()
    sites.leave_nothing()


@pytest.mark.parametrize("ahead", [AHEAD, -AHEAD], ids=["ahead", "behind"])
def test_a_neighbor_whose_clock_is_wrong(fenced: Fenced, shared: Path, ahead: timedelta) -> None:
    sites, neighbor = fenced.sites, "door-b"
    file, root = sites.settings(neighbor).certificate_file, sites.settings(neighbor).trust_file
    begins_at = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_before_utc + ahead
    with hidden(root.with_suffix(".key")) as root_key, _wrong_clocks(sites, ahead):
        sites.kill(neighbor)
        file.write_bytes(reissued(file.read_bytes(), root_key, begins_at=begins_at))
        sites.start(neighbor)
        sites.await_links()
        with _underway(fenced, shared):
            pass
    sites.restart(neighbor)
    sites.await_links()


@contextmanager
def _wrong_clocks(sites: Sites, ahead: timedelta) -> Iterator[None]:
    for seconds in (round(ahead.total_seconds()), 0):
        for module in PLAN.sites["b"]:
            sites.set_wall(module, seconds)
        if seconds:
            yield


def test_a_firewall_that_forgets_idle_connections(fenced: Fenced, shared: Path) -> None:
    fenced.network.forget_when_idle("a", seconds=2)
    try:
        here = fenced.sites.at("b1")
        # Its input, output and log have come home long before it ends; the next one needs the same connections.
        script = f"until [ -e {shared}/go ]; do sleep 0.1; done"
        task = here.submit(*on("a1"), "--", "sh", "-c", script)
        eventually(lambda: here.status(task)["substate"] == "running")
        let_pass(IDLE_SECONDS)
        with _underway(fenced, shared):
            pass
        (shared / "go").touch()
        assert here.run("wait", task).returncode == 0
    finally:
        fenced.network.forget_when_idle("a", seconds=DAY_SECONDS)
    fenced.sites.leave_nothing()
