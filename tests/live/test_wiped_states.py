"""A module that has lost all that it knew: what becomes of the tasks that it owned or ran."""

from collections.abc import Iterator

import pytest

from tests.live.conftest import eventually
from tests.live.lab import Lab, short_lease_lab
from tests.live.test_leases import Beating, beating_task

_SYSTEMS = """
  home: {}
  middle: {parent: home}
  one: {parent: middle, machine: {slots: 1}}
  two: {parent: home, machine: {slots: 1}}
"""


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Give a module with users, a machine below it and one behind a hop, all with a short lease."""
    with short_lease_lab(tmp_path_factory.mktemp("wiped"), _SYSTEMS) as made:
        yield made


@pytest.fixture
def beating(short: Lab) -> Iterator[Beating]:
    """Give a task that runs behind the hop."""
    short.kill("two")
    with beating_task(short.federation) as made:
        short.start("two")
        assert made.executor() == "one"
        yield made


def test_what_ran_at_a_wiped_executor_ends_and_begins_anew(short: Lab, beating: Beating) -> None:
    short.kill("one", starter=True)
    short.wipe("one")
    short.start("one")
    eventually(lambda: beating.is_gone(1))
    beating.await_beats(2)
    beating.check_second()


def test_what_ran_for_a_wiped_origin_is_ended_and_its_id_is_unknown(short: Lab, beating: Beating) -> None:
    federation = short.federation
    short.kill("home")
    short.wipe("home")
    short.start("home")
    eventually(lambda: beating.is_gone(1))
    asked = federation.run("status", beating.task)
    assert asked.returncode == 1
    assert beating.task in asked.stderr
    # Its number is given out again, and means the new task alone.
    again = [federation.submit("--", "sh", "-c", f"echo {number}") for number in range(5)]
    assert beating.task in again
    assert [federation.run("wait", task).returncode for task in again] == [0] * len(again)
    assert [federation.run("logs", task).stdout for task in again] == [f"{number}\n" for number in range(5)]
