"""Two sites that were introduced to each other: bytes go straight where hosts reach each other, else along the path."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.sites import MODULES, SITES, on, two_sites
from tests.netns.conftest import LINK, Wired, places_in
from tests.netns.network import network
from tests.netns.traffic import Traffic
from tests.shared_folders import open_to_all
from tests.waiting import eventually

pytestmark = pytest.mark.netns

MIB = 1 << 20
SIZE_BYTES = 4 * MIB
STRAIGHT = ("a1", "b1")
_WIRES = (("gate-a", "group-a"), ("group-a", "a1"), ("group-a", "a2"), LINK, STRAIGHT)


@pytest.fixture(scope="module")
def introduced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    """Start both sites, linked at one place; the wire between two machines is cut until a test joins it."""
    with network(MODULES, wires=_WIRES, switched=SITES["b"]) as made:
        made.cut(*STRAIGHT)
        with two_sites(tmp_path_factory.mktemp("sites"), places_in(made), are_introduced=True) as sites:
            sites.await_links()
            yield Wired(sites=sites, network=made)


def test_bytes_take_the_path_until_the_hosts_reach_each_other_and_then_go_straight(
    introduced: Wired, shared: Path
) -> None:
    here, ways = introduced.sites.at("b1"), (LINK, LINK[::-1], STRAIGHT, STRAIGHT[::-1])
    moved = _moved(introduced, shared / "first", ways)
    assert min(moved[:2]) > SIZE_BYTES, moved
    assert max(moved[2:]) < MIB, moved
    assert "a1 is not reached straight: " in str(here.status(_task(introduced))["history"])
    introduced.network.join(*STRAIGHT)
    # The straight way is tried again after a pause.
    eventually(lambda: "route" not in str(here.status(_task(introduced))["history"]))
    moved = _moved(introduced, shared / "second", ways)
    assert max(moved[:2]) < MIB, moved
    assert min(moved[2:]) > SIZE_BYTES, moved
    introduced.sites.leave_nothing()


def _task(wired: Wired) -> str:
    """Run a task of b1 at a1, and return it."""
    here = wired.sites.at("b1")
    task = here.submit(*on("a1"), "--", "true")
    assert here.run("wait", task).returncode == 0
    return task


def _moved(wired: Wired, folder: Path, ways: tuple[tuple[str, str], ...]) -> list[int]:
    """Return how many bytes traffic of every kind from b1 to a1 has moved on some wires."""
    folder.mkdir()
    open_to_all(folder)
    before = [wired.network.received(*way) for way in ways]
    traffic = Traffic(sites=wired.sites, folder=folder, origin="b1", machine="a1", size_bytes=SIZE_BYTES)
    traffic.begin()
    traffic.end()
    return [wired.network.received(*way) - start for way, start in zip(ways, before, strict=True)]
