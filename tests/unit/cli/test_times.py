"""Times that users write: what they mean, and what is refused."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from messiahs.cli.times import past_time, seconds_of

NOW = datetime(2026, 1, 31, 17, 30).timestamp()  # noqa: DTZ001 - local, as people write it


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("18:00", (2026, 1, 31, 18, 0)),
        ("7:05", (2026, 2, 1, 7, 5)),
        ("17:30", (2026, 2, 1, 17, 30)),
        ("2026-02-14", (2026, 2, 14, 0, 0)),
        ("2026-02-14T09:30", (2026, 2, 14, 9, 30)),
        ("2026-02-14 09:30", (2026, 2, 14, 9, 30)),
    ],
)
def test_a_time_of_day_is_the_next_one_and_a_date_is_its_beginning(text: str, wanted: tuple[int, ...]) -> None:
    year, month, day, hour, minute = wanted
    assert seconds_of(text, NOW) == int(datetime(year, month, day, hour, minute).timestamp())  # noqa: DTZ001 - likewise


@pytest.mark.parametrize("text", ["", "6pm", "24:00", "18:60", "18", "2026-13-01", "26-01-01", "18:00:00"])
def test_what_is_no_time_has_no_seconds(text: str) -> None:
    assert seconds_of(text, NOW) is None


def test_a_time_that_has_passed_is_so_long_ago_or_a_local_date() -> None:
    before = datetime.now(UTC)
    found = past_time("90min")
    assert before <= found + timedelta(minutes=90) <= datetime.now(UTC)
    assert past_time("2026-02-14") == datetime(2026, 2, 14).astimezone()
    assert past_time("2026-02-14T09:30") == datetime(2026, 2, 14, 9, 30).astimezone()
    assert past_time("2026-02-14").date().isoformat() == "2026-02-14"
    assert past_time("36500d") < datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "7", "18:00", "2026-13-01", "-1d", "9999-99-99", "2026-01-31T24"])
def test_what_is_no_time_that_has_passed_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time: write 90min, 7d, 2026-01-31"):
        past_time(text)


def test_a_date_that_comes_has_not_passed() -> None:
    with pytest.raises(click.BadParameter, match="9000-01-01 has not come yet"):
        past_time("9000-01-01")
