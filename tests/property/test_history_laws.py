"""Laws of histories: they are as defined, whatever the values, the instants and the moments at which one looks."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST
from messiahs.core.model.instants import Instant
from messiahs.core.model.series import PANES, Series, Statistic
from messiahs.core.state.histories import Histories
from messiahs.trace.format.kinds import kinds_in
from messiahs.trace.format.values import decode, encode
from tests.history_by_definition import Heard, by_definition, window_start

LENGTHS = st.integers(PANES, 60)
VALUES = st.one_of(st.none(), st.integers(-3, 3), st.integers(INTEGER_LOWEST, INTEGER_HIGHEST))


@st.composite
def courses(draw: st.DrawFn) -> tuple[list[Heard], int]:
    """Return values in the order of their instants, of which several may be equal, and a later instant."""
    at = draw(st.integers(0, 50))
    heard: list[Heard] = []
    for _ in range(draw(st.integers(1, 12))):
        heard.append((at, draw(VALUES)))
        at += draw(st.integers(0, 30))
    return heard, at + draw(st.integers(0, 100))


def series_of(heard: list[Heard], length_ns: int) -> Series:
    """Return the history after some values."""
    series = Series(length_ns=length_ns, since=Instant(heard[0][0]))
    for at, value in heard:
        series = series.then(value, Instant(at))
    return series


def distinct(heard: list[Heard]) -> list[Heard]:
    """Return the last value of each instant: with two of one instant, the first held for no time at all."""
    return list(dict(heard).items())


@given(course=courses(), length_ns=LENGTHS)
def test_count_mean_deviation_and_permanence_are_as_defined(course: tuple[list[Heard], int], length_ns: int) -> None:
    heard, now = distinct(course[0]), course[1]
    assert series_of(heard, length_ns).statistics(Instant(now)) == by_definition(heard, length_ns, now)


@given(course=courses(), length_ns=LENGTHS, looks=st.lists(st.integers(0, 500), max_size=8))
def test_looking_in_between_changes_nothing(course: tuple[list[Heard], int], length_ns: int, looks: list[int]) -> None:
    heard, now = course
    series = Series(length_ns=length_ns, since=Instant(heard[0][0]))
    for at, value in heard:
        for look in sorted(looks):
            if series.since <= look <= at:
                series = series.at(Instant(look))
        series = series.then(value, Instant(at))
    assert series.statistics(Instant(now)) == series_of(heard, length_ns).statistics(Instant(now))


@given(course=courses(), length_ns=LENGTHS, data=st.data())
def test_a_value_that_is_repeated_only_counts_once_more(
    course: tuple[list[Heard], int], length_ns: int, data: st.DataObject
) -> None:
    heard, now = course
    place = data.draw(st.integers(0, len(heard) - 1))
    end = heard[place + 1][0] if place + 1 < len(heard) else now
    again = (data.draw(st.integers(heard[place][0], end)), heard[place][1])
    before = series_of(heard, length_ns).statistics(Instant(now))
    after = series_of([*heard[: place + 1], again, *heard[place + 1 :]], length_ns).statistics(Instant(now))
    begin = window_start(heard, length_ns, now)
    counts = again[1] is not None and (begin is None or again[0] > begin)
    if before:
        assert after.pop(Statistic.COUNT) == before.pop(Statistic.COUNT) + counts
    assert after == before


@given(course=courses(), length_ns=LENGTHS)
def test_memory_is_bounded_and_the_mean_lies_among_the_values(course: tuple[list[Heard], int], length_ns: int) -> None:
    heard, now = course
    series = series_of(heard, length_ns).at(Instant(now))
    assert len(series.marks) <= PANES + 1
    values = [value for _, value in heard if value is not None]
    statistics = series.statistics(Instant(now))
    if statistics:
        assert min(values) <= statistics[Statistic.MEAN] <= max(values)
        assert 0 <= statistics[Statistic.DEVIATION] <= max(values) - min(values)
        assert statistics[Statistic.PERMANENCE] * statistics[Statistic.COUNT] >= 0


@given(course=courses(), length_ns=LENGTHS)
def test_a_trace_holds_a_history_exactly(course: tuple[list[Heard], int], length_ns: int) -> None:
    series = series_of(course[0], length_ns).at(Instant(course[1]))
    kinds = kinds_in(Histories)
    histories = Histories({})
    histories.series["x"] = {"load": series}  # type: ignore[index]
    assert decode(encode(histories, kinds), kinds, {}) == histories
