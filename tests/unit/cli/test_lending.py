"""`messiahs lend`: how the end is written, and what a position means."""

import pytest
from click.testing import CliRunner

from messiahs.cli.lending import dial_text, lend


@pytest.mark.parametrize("text", ["", "6pm", "24:00", "18:60", "18", "2026-13-01", "26-01-01", "18:00:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
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
