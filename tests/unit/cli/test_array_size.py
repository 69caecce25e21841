"""The numbers of an array, in the notation of Slurm."""

import pytest

from messiahs.cli.array_size import numbered


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1-3", ["1", "2", "3"]),
        ("0-2", ["0", "1", "2"]),
        ("7", ["7"]),
        ("1,4,9", ["1", "4", "9"]),
        ("0-19:5", ["0", "5", "10", "15"]),
        ("9,1-3,2", ["1", "2", "3", "9"]),
    ],
)
def test_an_array_has_a_member_for_each_number_in_ascending_order(text: str, numbers: list[str]) -> None:
    assert list(numbered(text).texts()) == numbers
    assert list(numbered(f"{text}%2").texts()) == numbers


def test_numbers_from_one_on_are_those_of_the_members() -> None:
    assert [numbered(text).items for text in ("1-3", "1-3%2", "1")] == [(), (), ()]


def test_after_a_percent_sign_stands_how_many_run_at_once() -> None:
    assert [numbered(text).at_once for text in ("0-499%20", "1,4,9%1", "1-9")] == [20, 1, 0]
