"""Numbers have the plural of their noun."""

import pytest

from messiahs.core.model.counts import counted, left_text


@pytest.mark.parametrize(
    ("count", "what", "text"),
    [(1, "task", "1 task"), (0, "task", "0 tasks"), (2, "claim passed on", "2 claims passed on")],
)
def test_a_number_has_its_noun(count: int, what: str, text: str) -> None:
    assert counted(count, what) == text


def test_what_is_left_is_listed_without_what_has_ended() -> None:
    assert left_text(attempts=1, granted=0, passed=3) == "1 attempt, 3 claims passed on left"
    assert left_text(attempts=0, granted=0, passed=0) == "it is empty"
