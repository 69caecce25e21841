"""Two sites behind firewalls that admit nobody meet at the host of a third party, which passes on what it cannot read.

Nobody can dial either module, and both dial the third one. One of the two has private addresses (NAT).
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live.third_sites import NAMES, Three, describe, seen_by, start, three_sites
from tests.netns.walled import PORTS, Wall, Walled, walled

pytestmark = pytest.mark.netns

SIZE_BYTES = 4 << 20
WALLS = {
    "third": Wall(hosts=("pact",), opened="pact"),
    "north": Wall(hosts=("alpha",)),
    "south": Wall(hosts=("beta",), has_nat=True),
}
BESIDE = ("--require", '$site eq "beta"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The three sites, and the network between their firewalls."""

    sites: Three
    network: Walled


@pytest.fixture
def fenced(tmp_path: Path) -> Iterator[Fenced]:
    """Start the three modules, each on a host behind a firewall."""
    with walled(WALLS, tmp_path) as network:
        networks = {name: network.netns(name) for name in NAMES}
        with three_sites(tmp_path, networks=networks) as sites:
            describe(sites, are_introduced=True, address=f"{network.address('pact')}:{PORTS[0]}")
            start(sites)
            yield Fenced(sites=sites, network=network)


def test_bytes_arrive_whole_through_a_host_that_has_read_none_of_them(fenced: Fenced) -> None:
    alpha, network = fenced.sites["alpha"], fenced.network
    secret = os.urandom(32).hex().encode()
    content = secret + os.urandom(SIZE_BYTES)
    (alpha.folder / "input").write_bytes(content)
    before = network.received("third")
    words = (*BESIDE, "--input", str(alpha.folder / "input"), "--output", "copy")
    script = f"cp input copy && head -c {len(secret)} copy"
    task = alpha.run("submit", "--quiet", *words, "--", "sh", "-c", script).stdout.strip()
    assert alpha.run("wait", task).returncode == 0, alpha.run("explain", task).stdout
    assert alpha.executed_on() == "beta"
    assert alpha.run("logs", task).stdout.encode() == secret
    assert alpha.run("fetch", task, "--into", str(alpha.folder / "home")).returncode == 0
    copy = (alpha.folder / "home" / "copy").read_bytes()
    assert hashlib.sha256(copy).digest() == hashlib.sha256(content).digest()
    # All of it came to the host of the third party, there and back; nobody tried to dial the other two.
    assert network.received("third") - before > 2 * SIZE_BYTES
    assert [network.counted(site, "knocked") for site in ("north", "south")] == [0, 0]
    assert seen_by(fenced.sites["pact"], secret) == []
    # The search finds what is there: the origin keeps the output.
    assert seen_by(alpha, secret) != []
