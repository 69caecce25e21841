"""A site with two borders: while one of them is down, tasks go both ways by the other."""

from collections.abc import Iterator

import pytest

from tests.live.sites import SIDE_BY_SIDE, Place, Sites, on, two_sites
from tests.ports import free_port
from tests.waiting import eventually

BOTH_WAYS = [("ann-a", "in-bob-b"), ("in-bob-b", "ann-a")]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Start both sites."""
    places = {name: Place(address=f"127.0.0.1:{free_port()}") for name in SIDE_BY_SIDE.modules}
    with two_sites(tmp_path_factory.mktemp("sites"), places, plan=SIDE_BY_SIDE) as made:
        made.await_links()
        yield made


@pytest.mark.parametrize(("down", "up"), [("gate-b", "twin-b"), ("twin-b", "gate-b")])
def test_machines_are_counted_once_and_tasks_go_by_the_border_that_is_up(sites: Sites, down: str, up: str) -> None:
    eventually(lambda: _counted_behind(sites) == {"ann-a": 1, "gate-b": 1})
    sites.kill(down)
    try:
        eventually(lambda: _counted_behind(sites) == {"ann-a": 1, up: 1})
        for origin, machine in BOTH_WAYS:
            here = sites.at(origin)
            task = here.submit(*on(machine), "--", "echo", "crossed")
            assert here.run("wait", task).returncode == 0
            assert here.run("logs", task).stdout == "crossed\n"
            assert here.status(task)["executed_on"] == (up if machine == "in-bob-b" else machine)
    finally:
        sites.start(down)
    eventually(lambda: _counted_behind(sites) == {"ann-a": 1, "gate-b": 1})
    sites.leave_nothing()


def _counted_behind(sites: Sites) -> dict[str, int]:
    """Return the machines that the top sees behind each neighbor, if its sum holds all of them once."""
    vectors = sites.at("top-a").vectors()
    views = {name: int(view["machines"]) for name, view in vectors["views"].items() if view["machines"]}
    return views if vectors["up"]["machines"] == sum(views.values()) else {}
