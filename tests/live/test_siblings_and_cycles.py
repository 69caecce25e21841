"""Children of one parent become siblings at run time: real daemons, certificates and tasks."""

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
