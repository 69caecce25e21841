"""Streams that a system opens: a burst at once, then so many a second, whatever others do."""

import pytest

from messiahs.channel.opening_rate import BURST_SECONDS, LONGEST_SECONDS, STREAMS_PER_SECOND, OpeningRate
from messiahs.core.model.ids import SystemId

EVIL, FRIEND = SystemId("evil"), SystemId("friend")
BURST = int(BURST_SECONDS * STREAMS_PER_SECOND)


def test_a_burst_does_not_wait() -> None:
    rate = OpeningRate()
    assert {rate.delay(EVIL, 100.0) for _ in range(BURST)} == {0.0}


def test_what_follows_waits_for_as_long_as_the_rate_says() -> None:
    rate = OpeningRate()
    delays = [rate.delay(EVIL, 100.0) for _ in range(BURST + STREAMS_PER_SECOND)]
    assert delays[-1] == pytest.approx(1.0)
    assert rate.delay(EVIL, 101.0) == pytest.approx(1 / STREAMS_PER_SECOND)


def test_others_do_not_wait() -> None:
    rate = OpeningRate()
    for _ in range(100 * BURST):
        rate.delay(EVIL, 100.0)
    assert rate.delay(FRIEND, 100.0) == 0.0


def test_nobody_waits_for_longer_than_the_bound() -> None:
    rate = OpeningRate()
    assert max(rate.delay(EVIL, 100.0) for _ in range(100 * BURST)) <= LONGEST_SECONDS
    assert rate.delay(EVIL, 100.0 + LONGEST_SECONDS + BURST_SECONDS) == 0.0


def test_systems_that_were_quiet_are_forgotten() -> None:
    rate = OpeningRate()
    for number in range(5_000):
        rate.delay(SystemId(f"s{number}"), float(number))
    assert rate.known <= 1_024
