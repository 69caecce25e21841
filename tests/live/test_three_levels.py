"""Two sites of three levels each with a root of their own, linked at two places: their machines serve both sites."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation
from tests.live.sites import MODULES, Place, Sites, on, two_sites
from tests.live.workload import HARMLESS, seeded, what_befell
from tests.ports import free_port
from tests.waiting import eventually, let_pass

ROUTES = [("b1", "a2"), ("a1", "b2"), ("gate-b", "a1"), ("group-a", "b1")]
"""Where a task is submitted, and where it runs."""
MEMBERS = 30
KILLS = 6
WAITING = 200
GATES = ("gate-a", "gate-b")


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
    members = here.members(array)
    assert {member["attempt"] for member in members} == {1}
    assert {member["executed_on"][0] for member in members} == {"a", "b"}
    assert here.run("logs", f"{array}.60").stdout == "60\n"
    sites.leave_nothing()


def test_daemons_of_both_sites_that_are_killed_lose_and_repeat_nothing(
    sites: Sites, shared: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.write_bytes(os.urandom(1 << 20))
    script = f"cp in out; sha256sum in; sleep 0.3; echo $MESSIAHS_TASK_ID >> {shared}/ran"
    arrays = [
        _submitted(sites.at(origin), script, source, machines=machines)
        for origin, machines in (("b1", ("a1", "a2")), ("a2", ("b1", "b2")))
    ]
    with seeded(12) as dice:
        for _ in range(KILLS):
            sites.restart(dice.choice(MODULES))
            # At any moment after the start, not only right after it.
            let_pass(dice.uniform(0, 0.5))
        for here, array in arrays:
            assert here.run("wait", array).returncode == 0
            assert {member["state"] for member in here.members(array)} == {"finished"}
            assert what_befell(here, array) <= HARMLESS
            fetched = tmp_path / here.module
            assert here.run("fetch", array, "--into", str(fetched)).returncode == 0
            contents = {path.read_bytes() for path in fetched.rglob("out")}
            assert (contents, len(list(fetched.rglob("out")))) == ({source.read_bytes()}, MEMBERS)
    ran = (shared / "ran").read_text().split()
    assert len(ran) == len(set(ran)) == 2 * MEMBERS
    sites.leave_nothing()


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_waiting_tasks_go_on_within_seconds_after_both_gates_start_again(sites: Sites, by: signal.Signals) -> None:
    arrays = []
    for origin, machine in (("b1", "a2"), ("a2", "b1")):
        here = sites.at(origin)
        arrays.append((here, here.submit(*on(machine), "--array", f"1-{WAITING}", "--", "true")))
    for here, array in arrays:
        eventually(lambda here=here, array=array: here.status(array)["counts"].get("finished"))  # type: ignore[misc]
    for gate in GATES:
        sites.kill(gate, by=by)
    sites.start(*GATES)
    # The commands below have a minute each.
    for here, array in arrays:
        assert here.run("wait", array).returncode == 0
        members = here.members(array)
        assert not [each for each in members if (each["state"], each["attempt"]) != ("finished", 1)]
    sites.leave_nothing()


def test_while_a_gate_is_down_its_machines_are_counted_once_and_reached_over_the_second_link(sites: Sites) -> None:
    eventually(lambda: _known_to_gate_a(sites) == {"group-a": 2, "gate-b": 2})
    sites.kill("gate-b")
    try:
        eventually(lambda: _known_to_gate_a(sites) == {"group-a": 4})
        for origin, machine in (("a1", "b2"), ("gate-a", "b1"), ("b1", "a2")):
            assert sites.at(origin).run("run", *on(machine), "--", "true").returncode == 0
    finally:
        sites.start("gate-b")
    eventually(lambda: _known_to_gate_a(sites) == {"group-a": 2, "gate-b": 2})
    sites.leave_nothing()


def _known_to_gate_a(sites: Sites) -> dict[str, int]:
    """Return the machines that the upper gate sees behind each neighbor, if its sum holds all of them once."""
    vectors = sites.at("gate-a").vectors()
    views = {name: int(view["machines"]) for name, view in vectors["views"].items()}
    return views if vectors["up"]["machines"] == sum(views.values()) else {}


def _submitted(here: Federation, script: str, source: Path, *, machines: tuple[str, str]) -> tuple[Federation, str]:
    files = ("--input", str(source), "--output", "out")
    return here, here.submit(*on(*machines), *files, "--array", f"1-{MEMBERS}", "--", "sh", "-c", script)
