"""Two sites of two modules each (tests/live/small_sites.py) run each other's tasks, straight or through their gates."""

from typing import Any

import pytest

from messiahs.core.relay.byte_route import ANOTHER_SERVER
from tests.live.small_sites import Site, Sites, described, on, started

__all__ = ["described"]


@pytest.fixture
def sites(described: Sites) -> Sites:
    """Start all four, each site with its own root."""
    return started(described)


def task_at(site: Site) -> dict[str, Any]:
    """Return the last task of a module."""
    return dict(site.document("status")["tasks"][-1])


def test_tasks_of_one_site_run_at_every_machine_of_the_other_and_their_history_says_through_which_system(
    sites: Sites,
) -> None:
    for origin, machine, via in (("phys", "lab", "uni"), ("lab", "phys", "chem"), ("uni", "lab", "chem")):
        done = sites[origin].run("run", *on(machine), "--", "echo", f"from {machine}")
        assert (done.returncode, done.stdout) == (0, f"from {machine}\n")
        task = task_at(sites[origin])
        assert (task["executed_on"], task["attempt"]) == (machine, 1)
        ways = [entry["text"] for entry in task["history"] if entry["event"] == "route"]
        assert ways == [f"through {via}; {machine} is not reached straight: {ANOTHER_SERVER}"]


def test_neighbors_of_two_sites_run_tasks_for_each_other_straight(sites: Sites) -> None:
    done = sites["uni"].run("run", *on("chem"), "--", "echo", "from afar")
    assert (done.returncode, done.stdout) == (0, "from afar\n")
    assert "route" not in [entry["event"] for entry in task_at(sites["uni"])["history"]]


def test_sites_whose_modules_trust_both_roots_run_each_others_tasks(described: Sites) -> None:
    roots = [described[name].root for name in ("uni", "chem")]
    ours, theirs = (root.read_bytes() for root in roots)
    roots[0].write_bytes(ours + theirs)
    roots[1].write_bytes(theirs + ours)
    sites = started(described)
    done = sites["phys"].run("run", *on("lab"), "--", "echo", "from afar")
    assert (done.returncode, done.stdout) == (0, "from afar\n")
    assert sites["lab"].run("run", *on("phys"), "--", "true").returncode == 0


def test_sites_that_were_introduced_to_each_other_send_bytes_straight(described: Sites) -> None:
    introduce(described["uni"], "chem, lab")
    introduce(described["chem"], "uni, phys")
    sites = started(described)
    for origin, machine in (("phys", "lab"), ("lab", "phys")):
        done = sites[origin].run("run", *on(machine), "--", "echo", "from afar")
        assert (done.returncode, done.stdout) == (0, "from afar\n")
        task = task_at(sites[origin])
        assert task["executed_on"] == machine
        assert "route" not in [entry["event"] for entry in task["history"]]


def test_a_name_that_an_introduction_leaves_out_is_not_reached_straight_and_the_history_says_why(
    described: Sites,
) -> None:
    introduce(described["uni"], "chem")
    introduce(described["chem"], "uni, phys")
    sites = started(described)
    done = sites["phys"].run("run", *on("lab"), "--", "echo", "from afar")
    assert (done.returncode, done.stdout) == (0, "from afar\n")
    task = task_at(sites["phys"])
    assert task["executed_on"] == "lab"
    (way,) = [entry["text"] for entry in task["history"] if entry["event"] == "route"]
    assert way.startswith("through uni; lab is not reached straight: its certificate is signed by no root recorded")


def introduce(site: Site, names: str) -> None:
    """Introduce the other site to the modules of a site, for some of its systems."""
    topology = site.folder / "site.yaml"
    introduced = f"introductions: [{{file: theirs.pem, names: [{names}]}}]\nsystems:\n"
    topology.write_text(topology.read_text().replace("systems:\n", introduced))
