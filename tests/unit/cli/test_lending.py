"""`messiahs lend`: how the end is written, and what a position means."""

from datetime import datetime

import pytest
from click.testing import CliRunner

from messiahs.cli.lending import dial_text, lend, seconds_of

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
def test_what_is_no_time_is_refused(text: str) -> None:
    assert seconds_of(text, NOW) is None
    done = CliRunner().invoke(lend, ["off", "--until", text])
    assert done.exit_code == 2
    assert "is no time: write 18:00" in done.stderr


def test_a_time_that_has_passed_is_refused() -> None:
    done = CliRunner().invoke(lend, ["off", "--until", "2020-01-01"])
    assert (done.exit_code, "2020-01-01 has passed" in done.stderr) == (2, True)


def test_each_position_says_what_follows() -> None:
    dial = {"position": "on", "until": "2026-01-31T18:00:00.000Z"}
    assert dial_text(dial).endswith(", and then not lent to others")
    assert "messiahs lend on" in dial_text({"position": "off", "until": None})
    assert "its owner has said nothing else" in dial_text({"position": "policy", "until": None})
