"""Two sites of three levels each with a root of their own, linked at two places: their machines serve both sites."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.sites import MODULES, Place, Sites, on, two_sites
from tests.live.test_two_sites import free_port

ROUTES = [("b1", "a2"), ("a1", "b2"), ("gate-b", "a1"), ("group-a", "b1")]
"""Where a task is submitted, and where it runs."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Start both sites."""
    places = {name: Place(address=f"127.0.0.1:{free_port()}") for name in MODULES}
    with two_sites(tmp_path_factory.mktemp("sites"), places, links=2) as made:
        made.await_links()
        yield made


@pytest.mark.parametrize(("origin", "machine"), ROUTES, ids=map("-".join, ROUTES))
def test_every_module_of_one_site_uses_the_machines_of_the_other(
    sites: Sites, tmp_path: Path, origin: str, machine: str
) -> None:
    (tmp_path / "in").write_text(f"from {origin}\n")
    script = "cat in; cp in out; exit 7"
    here = sites.at(origin)
    done = here.run(
        "submit", "--quiet", *on(machine), "--input", str(tmp_path / "in"), "--output", "out", "--", "sh", "-c", script
    )
    task = done.stdout.strip()
    assert here.run("wait", task).returncode == 7
    assert here.run("logs", task).stdout == f"from {origin}\n"
    assert here.run("fetch", task, "--into", str(tmp_path / "fetched")).returncode == 0
    assert (tmp_path / "fetched" / "out").read_text() == f"from {origin}\n"
    assert here.status(task)["executed_on"] == machine


def test_an_array_is_spread_over_the_machines_of_both_sites_and_leaves_nothing_behind(sites: Sites) -> None:
    here = sites.at("b2")
    array = here.submit("--array", "1-60", "--", "sh", "-c", "sleep 0.2; echo $MESSIAHS_ARRAY_INDEX")
    assert here.run("wait", array).returncode == 0
    members = here.document("status", array, "--members")["tasks"]
    assert {member["attempt"] for member in members} == {1}
    assert {member["executed_on"][0] for member in members} == {"a", "b"}
    assert here.run("logs", f"{array}.60").stdout == "60\n"
    sites.leave_nothing()
