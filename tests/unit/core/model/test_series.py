"""The history of one number: what counts, for how long, and how exactly (MESSIAHS 5.1)."""

import pytest

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST, MACHINE_ATTRIBUTES, Unit
from messiahs.core.model.instants import DAY, MINUTE, SECOND, Instant
from messiahs.core.model.series import PANES, Kept, Series, Statistic, attributes_in_history
from tests.history_by_definition import Heard, by_definition

LENGTH_NS = 8 * MINUTE


def series_of(*heard: Heard, length_ns: int = LENGTH_NS) -> Series:
    """Return the history after some values."""
    series = Series(length_ns=length_ns, since=Instant(heard[0][0]))
    for at, value in heard:
        series = series.then(value, Instant(at))
    return series


def told(*heard: Heard, now: int, length_ns: int = LENGTH_NS) -> dict[str, int]:
    """Return the statistics at `now`; they are as defined."""
    statistics = series_of(*heard, length_ns=length_ns).statistics(Instant(now))
    assert statistics == by_definition(heard, length_ns, now)
    return {statistic.value: value for statistic, value in statistics.items()}


def test_nothing_is_known_of_a_value_that_has_not_held_yet() -> None:
    assert told((MINUTE, 7), now=MINUTE) == {}


def test_a_value_that_never_changes_is_the_mean_has_no_deviation_and_holds_since_it_was_first_heard() -> None:
    heard = [(at * MINUTE, 40) for at in range(4)]
    assert told(*heard, now=5 * MINUTE) == {"count": 4, "mean": 40, "sd": 0, "permanence": 300}


def test_values_count_for_as_long_as_they_held_and_not_for_how_often_they_were_heard() -> None:
    # Nine tenths of the time at 10, one tenth at 110: a mean of 20, and a deviation of 30.
    heard = [(0, 10), (SECOND, 10), (2 * SECOND, 10), (54 * SECOND, 110)]
    assert told(*heard, now=60 * SECOND) == {"count": 4, "mean": 20, "sd": 30, "permanence": 30}


def test_a_mean_is_rounded_to_the_nearest_and_half_up_also_below_zero() -> None:
    assert told((0, 1), (SECOND, 2), now=2 * SECOND)["mean"] == 2
    assert told((0, -1), (SECOND, -2), now=2 * SECOND)["mean"] == -1
    assert told((0, -1), (SECOND, -2), now=3 * SECOND)["mean"] == -2


def test_what_was_longer_ago_than_the_length_and_a_pane_counts_no_more() -> None:
    heard = [(0, 1_000), (MINUTE, 10)]
    means = {minutes: told(*heard, now=minutes * MINUTE)["mean"] for minutes in range(2, 30)}
    assert all(mean > 10 for minutes, mean in means.items() if minutes * MINUTE <= LENGTH_NS + MINUTE)
    is_over = LENGTH_NS + LENGTH_NS // PANES + MINUTE
    assert all(mean == 10 for minutes, mean in means.items() if minutes * MINUTE >= is_over)


def test_time_without_a_value_counts_for_nothing() -> None:
    heard = [(0, 10), (MINUTE, None), (4 * MINUTE, 10)]
    assert told(*heard, now=5 * MINUTE) == {"count": 2, "mean": 10, "sd": 0, "permanence": 60}


def test_after_a_silence_longer_than_the_length_nothing_is_known() -> None:
    assert told((0, 10), (MINUTE, None), now=DAY) == {}


def test_a_value_that_has_held_for_years_is_found_at_once() -> None:
    series = series_of((0, 10))
    later = series.at(Instant(10_000 * DAY))
    assert len(later.marks) == PANES + 1
    assert later.statistics(Instant(10_000 * DAY))[Statistic.MEAN] == 10


def test_the_largest_and_smallest_values_are_exact() -> None:
    heard = [(0, INTEGER_LOWEST), (SECOND, INTEGER_HIGHEST)]
    found = told(*heard, now=2 * SECOND, length_ns=30 * DAY)
    assert (found["mean"], found["sd"]) == (0, INTEGER_HIGHEST)


def test_an_earlier_instant_changes_nothing() -> None:
    series = series_of((MINUTE, 10))
    assert series.at(Instant(0)) is series


@pytest.mark.parametrize(("value", "kept"), [(-1, 0), (0, 0), (10_000, 10_000), (10**18, 10_000)])
def test_a_value_beyond_its_range_is_brought_into_it(value: int, kept: int) -> None:
    assert Kept("load", MINUTE, low=0, high=10_000).bounded(value) == kept


def test_a_history_has_the_unit_of_its_number_and_a_permanence_in_seconds() -> None:
    units = {each.name: (each.unit, each.low, each.high) for each in attributes_in_history(MACHINE_ATTRIBUTES["load"])}
    assert units == {
        "load_count": (Unit.NONE, 0, None),
        "load_mean": (Unit.SHARE, 0, 10_000),
        "load_sd": (Unit.SHARE, 0, None),
        "load_permanence": (Unit.SECONDS, 0, None),
    }
