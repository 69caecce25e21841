"""Virtual time and clocks that drift."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.instants import HOUR, SECOND, Instant
from messiahs.sim.world.agenda import Agenda, DriftingClock


def test_what_is_due_at_one_instant_happens_in_the_order_in_which_it_was_entered() -> None:
    agenda, seen = Agenda(), []
    agenda.later(2, lambda: seen.append("late"))
    agenda.later(1, lambda: seen.append("first"))
    agenda.later(1, lambda: seen.append("second"))
    agenda.run(lambda: False, until=Instant(1))
    assert (seen, agenda.now) == (["first", "second"], 1)


@given(st.integers(-20_000, 20_000), st.integers(0, HOUR), st.integers(-SECOND, HOUR))
def test_a_drifting_clock_reaches_a_reading_after_the_delay_that_it_names_and_no_sooner(
    gain_ppm: int, at: int, ahead: int
) -> None:
    clock, now = DriftingClock(ahead_ns=5, gain_ppm=gain_ppm), Instant(at)
    wanted = Instant(clock.read(now) + ahead)
    delay_ns = clock.delay_until(wanted, now)
    assert clock.read(Instant(now + delay_ns)) >= wanted
    assert not delay_ns or clock.read(Instant(now + delay_ns - 2)) < wanted
