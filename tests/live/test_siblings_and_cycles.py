"""Siblings and cycles of parents that come about at run time: real daemons, certificates and tasks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.joiners import JOINED_BY_POLICY, Campus, Newcomer, campus
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.live


@pytest.fixture
def open_campus(tmp_path: Path) -> Iterator[Campus]:
    with campus(tmp_path, join=JOINED_BY_POLICY) as made:
        yield made


def siblings(newcomer: Newcomer) -> object:
    with newcomer.client() as client:
        return client.module()["siblings"]


def parents(newcomer: Newcomer) -> object:
    with newcomer.client() as client:
        return client.module()["parents"]


def become_child(child: Newcomer, parent: Newcomer) -> None:
    """Add a parent that joined as the child did, with a token of it."""
    token = child.folder / f"token-of-{parent.name}"
    token.write_text(parent.run("join", "token").stdout)
    with parent.client() as client:
        address = client.module()["address"]
    added = child.run("module", "parent", "add", address, "--token", str(token))
    assert added.stdout == f"{parent.name} is a parent of {child.name}\n", added.stderr


def test_two_that_joined_are_siblings_and_tasks_run_over_their_link_without_the_parent(open_campus: Campus) -> None:
    blays, xinu = open_campus.newcomer("blays"), open_campus.newcomer("xinu")
    for each in (blays, xinu):
        each.joined(open_campus.token(), open_campus.address, "--listen", f"127.0.0.1:{free_port()}")
    eventually(lambda: (siblings(blays), siblings(xinu)) == (["xinu"], ["blays"]))
    open_campus.federation.down()
    eventually(lambda: blays.machines("down") == 2)
    done = blays.run("run", "--require", '$site eq "xinu"', "--", "true")
    assert done.returncode == 0, done.stderr
    open_campus.federation.up()
    left = xinu.run("module", "leave", "cs")
    assert left.returncode == 0, left.stderr
    eventually(lambda: siblings(blays) == [])


def test_a_cycle_of_three_that_joined_is_reported_and_left_by_the_one_that_closed_it(open_campus: Campus) -> None:
    low, middle, high = three = [open_campus.newcomer(name) for name in ("low", "middle", "high")]
    policy = str(open_campus.folder / "campus.policy")
    for each in three:
        listens = ("--listen", f"127.0.0.1:{free_port()}")
        each.joined(open_campus.token(), open_campus.address, "--policy", policy, *listens)
    eventually(lambda: open_campus.machines("up") == 4)
    become_child(low, middle)
    become_child(middle, high)
    eventually(lambda: (parents(low), parents(middle)) == (["cs", "middle"], ["cs", "high"]))
    become_child(high, low)
    eventually(lambda: parents(high) == ["cs"], lambda: high.told)
    log = (high.directory / "module.log").read_text()
    assert "cycle low is above high, and below it by its child middle: low is left" in log
    # The other two relations are no cycle any more, and each machine is counted once.
    assert (parents(low), parents(middle)) == (["cs", "middle"], ["cs", "high"])
    eventually(lambda: open_campus.machines("up") == 4)
