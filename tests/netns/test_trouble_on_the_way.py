"""Trouble at each hop in the middle of transfers: a way that is cut or silent, a daemon that is killed or stopped.

An input, an output, a followed log and standard input are on their way between the sites at the same time. Afterwards
each has arrived once and whole, in the first attempt of its task.
"""

from pathlib import Path

import pytest

from tests.live.relay import heard_by
from tests.netns.conftest import LINK, Wired
from tests.netns.network import Network
from tests.netns.traffic import Traffic
from tests.waiting import eventually, let_pass

pytestmark = pytest.mark.netns

ORIGIN, MACHINE = "b1", "a1"
MIB = 1 << 20
SIZE_BYTES = 3 * MIB
HARM_SECONDS = 1.0
HOPS = (LINK, ("gate-a", "group-a"), ("group-a", "a1"))
HARMS = {
    "cut": (Network.cut, Network.join),
    "lose": (Network.lose, Network.mend),
    "refuse": (Network.refuse, Network.admit),
    "crawl": (Network.crawl, Network.admit),
}
"""What begins and what ends a harm to a way; a lost way leaves half-open connections."""
DAEMONS = ("b1", "gate-b", "gate-a", "group-a", "a1")


def in_the_middle(wired: Wired, shared: Path) -> Traffic:
    """Start traffic, and return it when a third of it has passed the link in either direction."""
    before = [wired.network.received(*way) for way in (LINK, LINK[::-1])]
    traffic = Traffic(sites=wired.sites, folder=shared, origin=ORIGIN, machine=MACHINE, size_bytes=SIZE_BYTES)
    traffic.begin()
    for way, start in zip((LINK, LINK[::-1]), before, strict=True):
        _await_bytes(wired, way, more_than=start + SIZE_BYTES // 3)
    return traffic


def _await_bytes(wired: Wired, way: tuple[str, str], *, more_than: int) -> None:
    eventually(lambda: wired.network.received(*way) > more_than)


@pytest.mark.usefixtures("slow_link")
@pytest.mark.parametrize("hop", HOPS, ids="-".join)
@pytest.mark.parametrize("harm", HARMS)
def test_a_way_that_breaks_and_heals(wired: Wired, shared: Path, hop: tuple[str, str], harm: str) -> None:
    traffic = in_the_middle(wired, shared)
    begin, end = HARMS[harm]
    begin(wired.network, *hop)
    let_pass(HARM_SECONDS)
    end(wired.network, *hop)
    traffic.end()


@pytest.mark.usefixtures("slow_link")
@pytest.mark.parametrize("harm", ["lose", "crawl"])
def test_a_way_that_is_silent_or_slow_until_the_link_is_given_up(wired: Wired, shared: Path, harm: str) -> None:
    traffic = in_the_middle(wired, shared)
    above, below = LINK
    begin, end = HARMS[harm]
    begin(wired.network, *LINK)
    eventually(lambda: below not in heard_by(wired.sites.at(above), above))
    eventually(lambda: above not in heard_by(wired.sites.at(below), below))
    end(wired.network, *LINK)
    traffic.end()


@pytest.mark.usefixtures("slow_link")
@pytest.mark.parametrize("module", DAEMONS)
def test_a_daemon_that_is_killed_and_starts_again(wired: Wired, shared: Path, module: str) -> None:
    traffic = in_the_middle(wired, shared)
    wired.sites.restart(module)
    traffic.end()


@pytest.mark.usefixtures("slow_link")
@pytest.mark.parametrize("module", DAEMONS[1:])
def test_a_daemon_that_is_stopped_for_a_while(wired: Wired, shared: Path, module: str) -> None:
    traffic = in_the_middle(wired, shared)
    with wired.sites.stopped(module):
        let_pass(HARM_SECONDS)
    traffic.end()


@pytest.mark.usefixtures("uneven_link")
def test_transfers_go_on_where_a_killed_hop_left_them(wired: Wired, shared: Path) -> None:
    up, down = LINK, LINK[::-1]
    starts = {way: wired.network.received(*way) for way in (up, down)}
    traffic = Traffic(sites=wired.sites, folder=shared, origin=ORIGIN, machine=MACHINE, size_bytes=12 * MIB)
    traffic.begin()
    # The input and what is fed go up; the output and the log go down, the log twice: it is followed, and an output.
    for way, passed in ((up, 14 * MIB), (down, 24 * MIB)):
        _await_bytes(wired, way, more_than=starts[way] + passed)
    wired.sites.restart("gate-a")
    traffic.end()
    sent = {way: wired.network.received(*way) - start for way, start in starts.items()}
    assert sent[up] < 28 * MIB, sent
    assert sent[down] < 45 * MIB, sent
