"""Two sites in network namespaces, shared by all tests of this folder, which leave them unharmed.

In site a, a host is wired to its parent and its siblings only; in site b every host can talk to every other one.
Between the sites there are two wires, gate to gate and group to group; the second one is cut until a test joins it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.live.conftest import shared_folder
from tests.live.sites import MODULES, SITES, Place, Sites, two_sites
from tests.netns.network import Network, network

LINK: Final = ("gate-a", "gate-b")
SECOND_LINK: Final = ("group-a", "group-b")
_WIRES: Final = (("gate-a", "group-a"), ("group-a", "a1"), ("group-a", "a2"), ("a1", "a2"), LINK, SECOND_LINK)
_PORT: Final = 7000


def places_in(made: Network) -> dict[str, Place]:
    """Return where the modules listen: each on the host of its name."""
    return {
        name: Place(address=f"{address}:{_PORT}", netns=made.netns(name)) for name, address in made.addresses.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """Both sites, and the network between their hosts."""

    sites: Sites
    network: Network


@pytest.fixture(scope="session")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    """Start both sites, linked at one place."""
    with network(MODULES, wires=_WIRES, switched=SITES["b"]) as made:
        made.cut(*SECOND_LINK)
        with two_sites(tmp_path_factory.mktemp("sites"), places_in(made), links=2) as sites:
            sites.await_links()
            yield Wired(sites=sites, network=made)


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that tasks of any account can read and write."""
    return shared_folder(tmp_path_factory)


@pytest.fixture
def slow_link(wired: Wired) -> Iterator[None]:
    """Slow the link between the sites down, so that transfers of megabytes can be interrupted."""
    with _slowed(wired.network, up_mbit=40, down_mbit=40):
        yield


@pytest.fixture
def uneven_link(wired: Wired) -> Iterator[None]:
    """Slow the link between the sites down; it is faster from site a to site b."""
    with _slowed(wired.network, up_mbit=40, down_mbit=160):
        yield


@contextmanager
def _slowed(made: Network, *, up_mbit: int, down_mbit: int) -> Iterator[None]:
    above, below = LINK
    made.slow(below, above, mbit=up_mbit)
    made.slow(above, below, mbit=down_mbit)
    yield
    made.hasten(below, above)
    made.hasten(above, below)
