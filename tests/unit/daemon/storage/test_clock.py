"""The clock in several processes of a daemon: within one boot, the wall clock is read once."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.model.instants import HOUR, SECOND, Instant
from messiahs.daemon.storage.clock import BootOffset, Clock, offset_between
from messiahs.daemon.storage.store import RowStore

NEVER = Instant(0)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wall_clock_that_was_set_while_the_daemon_was_down_changes_nothing(hours: int) -> None:
    # As if the wall clock had been behind or ahead when the first process started.
    first = Clock(NEVER).boot_offset()
    first = replace(first, offset_ns=first.offset_ns + hours * HOUR)
    assert Clock(NEVER, first).boot_offset() == first


def test_in_another_run_of_the_machine_the_wall_clock_counts() -> None:
    earlier = BootOffset(boot="another", offset_ns=Clock(NEVER).offset_ns - HOUR)
    assert Clock(NEVER, earlier).offset_ns > earlier.offset_ns


@pytest.mark.parametrize("interrupted", [1, 2])
def test_a_daemon_that_is_interrupted_as_it_reads_the_clocks_is_not_behind_the_others(interrupted: int) -> None:
    passes = iter([13_000_000 if reading == interrupted else 100 for reading in range(100)])
    elapsed = 0

    def boot_clock() -> int:
        nonlocal elapsed
        elapsed += next(passes)
        return elapsed

    def wall_clock() -> int:
        return boot_clock() + HOUR

    assert abs(offset_between(boot_clock, wall_clock) - HOUR) <= 200


def test_no_instant_is_before_one_that_is_stored() -> None:
    ahead = Instant(Clock(NEVER).now() + HOUR)
    assert Clock(ahead).now() >= ahead
    assert Clock(ahead, Clock(NEVER).boot_offset()).now() >= ahead


def test_the_next_life_is_told_how_instants_are_counted_by_the_first_commit(tmp_path: Path) -> None:
    stored = BootOffset(boot="a-b", offset_ns=-5)
    store = RowStore(tmp_path / "module.db")
    assert store.boot_offset() is None
    store.write_with_next(stored)
    assert store.boot_offset() is None
    store.commit((), Instant(1))
    store.close()
    again = RowStore(tmp_path / "module.db")
    assert (again.boot_offset(), again.newest()) == (stored, Instant(1))
    again.close()


def test_the_distance_to_the_wall_clock_is_that_of_the_same_moment() -> None:
    clock = Clock(NEVER)
    assert abs(clock.now() + clock.wall_offset_ns() - time.time_ns()) < SECOND
    ahead = Clock(newest_stored=Instant(time.time_ns() + HOUR))
    assert abs(ahead.wall_offset_ns() + HOUR) < SECOND
