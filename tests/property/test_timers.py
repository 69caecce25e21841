"""Timeouts fire by deadline, kind and key, and rounds of searching after all others that are due."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.timers import TimerKey, TimerKind, Timers
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant

_Change = tuple[tuple[TimerKind, TimerKey], Instant | None]
_PLACES = st.one_of(
    st.tuples(st.sampled_from((TimerKind.ROUND, TimerKind.ASK)), st.integers(0, 2)),
    st.tuples(st.sampled_from((TimerKind.OUTPUT, TimerKind.RETENTION)), st.just(SystemId("me"))),
)
_INSTANTS = st.integers(0, 5).map(Instant)
_CHANGES = st.tuples(_PLACES, st.one_of(st.none(), _INSTANTS))


@given(st.lists(_CHANGES, max_size=300), _INSTANTS)
def test_those_that_are_due_fire_in_their_order(changes: list[_Change], now: Instant) -> None:
    timers, expected = Timers(), dict[tuple[TimerKind, TimerKey], Instant]()
    for (kind, key), at in changes:
        if at is None:
            timers.cancel(kind, key)
            expected.pop((kind, key), None)
        else:
            timers.set(kind, key, at)  # type: ignore[call-overload]
            expected[kind, key] = at
    assert timers.next_deadline() == min(expected.values(), default=None)
    due = sorted((kind is TimerKind.ROUND, at, kind, key) for (kind, key), at in expected.items() if at <= now)
    fired = []
    while (first := timers.first_due(now)) is not None:
        assert timers.take_due(now) == first
        fired.append(first)
    assert fired == [(kind, key) for _, _, kind, key in due]
    left = {(kind, key): at for kind, key, at in timers.waiting()}
    assert left == {place: at for place, at in expected.items() if at > now}
