"""Wall clocks that are set back or forward by an hour, while a daemon is down or running."""

from collections.abc import Iterator

import pytest

from tests.live.lab import Lab, short_lease_lab
from tests.live.test_leases import Beating, beating_task

HOUR_SECONDS = 3_600
LEASE_SECONDS = 20
"""Longer than a daemon is down."""
_SYSTEMS = """
  home: {}
  one: {parent: home, machine: {isolation: process, slots: 1}}
  two: {parent: home, machine: {isolation: process, slots: 1}}
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Share a module with users and two machines below it, all with a short lease."""
    with short_lease_lab(tmp_path_factory.mktemp("clocks"), _SYSTEMS, seconds=LEASE_SECONDS) as made:
        yield made


@pytest.fixture
def beating(short: Lab) -> Iterator[Beating]:
    """Return a running task."""
    with beating_task(short.federation) as made:
        yield made


def check_same(beating: Beating) -> None:
    """End the task, and check that nothing else happened to it, in the order of time."""
    beating.await_beats(1)
    status = beating.finish()
    history = status["history"]
    assert [step["event"] for step in history] == ["bound", "finished"]
    assert history[0]["at"] <= history[1]["at"]


@pytest.mark.parametrize("seconds", [-HOUR_SECONDS, HOUR_SECONDS])
@pytest.mark.parametrize("end", ["origin", "executor"])
def test_a_wall_clock_set_while_a_daemon_is_down_does_not_affect_its_task(
    short: Lab, beating: Beating, end: str, seconds: int
) -> None:
    module = "home" if end == "origin" else beating.executor()
    short.kill(module)
    short.set_wall(module, seconds)
    short.start(module)
    check_same(beating)
    short.set_wall(module, 0)


def test_a_wall_clock_set_while_daemons_run_does_not_affect_a_task(short: Lab, beating: Beating) -> None:
    for module in ("home", beating.executor()):
        for seconds in (-HOUR_SECONDS, HOUR_SECONDS, 0):
            short.set_wall(module, seconds)
            beating.await_beats(1)
    check_same(beating)
