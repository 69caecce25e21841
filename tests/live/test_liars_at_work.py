"""Machines of another site that deny, lose, never end or drip their tasks, beside two honest ones of the own site."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from tests.live.lying_daemons import DRIPS, HOLDS_OPEN, LOSES, NEVER_ENDS, RIGHT
from tests.live.sites import Place, Plan, Sites, two_sites
from tests.ports import free_port

pytestmark = pytest.mark.live

_DENIES: Final = "b1"
_LIARS: Final = (_DENIES, LOSES, NEVER_ENDS, DRIPS)
_ALL_LIARS: Final = (*_LIARS, HOLDS_OPEN)
_HONEST: Final = ("a1", "a2")
_TASKS: Final = 40
_PLAN: Final = Plan(
    sites={"a": ("gate-a", *_HONEST), "b": _ALL_LIARS},
    parents=dict.fromkeys((*_HONEST, *_ALL_LIARS), "gate-a"),
    machines=(*_HONEST, *_ALL_LIARS),
    linked={"a": _ALL_LIARS, "b": ("gate-a",)},
    daemons=("tests.live.lying_daemons",),
)
_POLICY: Final = f"""
policy "one machine denies everything" version 1;
attribute $site string optional;
accept from any {{ require $here.site ne "{_DENIES}" else "no"; }}
accept from users {{}}
"""
_MOST_BINDS: Final = 5
"""Of a machine that has one task at a time, and one more for each result, while the honest ones run the others."""


@pytest.fixture(scope="module")
def beside_liars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("liars")
    places = {name: Place(address=f"127.0.0.1:{free_port()}") for name in _PLAN.modules}
    with two_sites(folder, places, plan=_PLAN, policy=_POLICY) as sites:
        sites.await_links()
        yield sites


def test_every_task_ends_once_with_its_result_and_no_liar_gets_many(beside_liars: Sites) -> None:
    home = beside_liars.at("gate-a")
    elsewhere = ("--require", f'$site ne "{HOLDS_OPEN}"')
    array = home.submit("--time", "2s", *elsewhere, "--array", f"1-{_TASKS}", "--", "sh", "-c", "sleep 0.2; echo right")
    assert home.run("wait", array).returncode == 0
    members = home.members(array)
    assert [each["state"] for each in members] == ["finished"] * _TASKS
    ends = Counter(each["executed_on"] for each in members)
    assert set(ends) <= {*_HONEST, DRIPS}
    with home.client() as client:
        assert {b"".join(client.logs(each["id"])) for each in members} == {RIGHT.encode()}
    bound = Counter(
        entry["module"] for each in members for entry in home.status(each["id"])["history"] if entry["event"] == "bound"
    )
    assert bound[_DENIES] == 0
    assert all(bound[name] <= _MOST_BINDS for name in _LIARS), bound
    assert all(bound[name] > 0 for name in (LOSES, NEVER_ENDS, DRIPS)), bound


def test_a_machine_that_keeps_outputs_open_after_their_tasks_keeps_nobody_waiting(beside_liars: Sites) -> None:
    home, there = beside_liars.at("gate-a"), ("--require", f'$site eq "{HOLDS_OPEN}"')
    done = home.run("run", "--time", "60s", *there, "--", "true")
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    array = home.submit("--time", "60s", *there, "--array", "1-3", "--", "true")
    followed = home.run("logs", array, "--follow")
    assert followed.stdout == "".join(f"{array}.{number}: {RIGHT}" for number in (1, 2, 3)), followed.stderr
