"""How many tasks one submission has."""

import pytest

from messiahs.client.members import SINGLE, Members
from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.errors import ClientError


def test_a_single_task_has_no_items() -> None:
    assert (SINGLE.count, SINGLE.texts()) == (0, ())


def test_members_from_one_on_are_their_own_items() -> None:
    assert Members.of_numbers(range(1, 4)) == Members(count=3)
    assert Members.of_numbers(range(1, 4)).texts() == ("1", "2", "3")


def test_a_range_that_begins_later_has_its_numbers_as_items() -> None:
    assert Members.of_numbers(range(7, 10)) == Members(count=3, items=("7", "8", "9"), are_numbers=True)


def test_at_most_some_members_of_an_array_run_at_once() -> None:
    assert Members.of_numbers(range(1, 10)).limited(2) == Members(count=9, at_once=2)
    for members, at_once in (
        (SINGLE, 2),
        (Members.of_numbers(range(1, 10)), 0),
        (Members.of_numbers(range(1, 10)), MEMBER_LIMIT + 1),
    ):
        with pytest.raises(ClientError, match="members of an array can be allowed at once"):
            members.limited(at_once)


def test_each_item_is_a_member() -> None:
    assert Members.of_items(["b", "a", "b"]).texts() == ("b", "a", "b")


def test_there_is_at_least_one_item() -> None:
    with pytest.raises(ClientError, match="there would be no task") as raised:
        Members.of_items([])
    assert raised.value.code == ClientError.USAGE


def test_a_million_tasks_are_the_most() -> None:
    assert Members.of_numbers(range(1, MEMBER_LIMIT + 1)).count == MEMBER_LIMIT
    for low, high in ((1, MEMBER_LIMIT + 1), (2, MEMBER_LIMIT + 2), (10**12, 3 * 10**12)):
        with pytest.raises(ClientError, match=f"at most {MEMBER_LIMIT} tasks, not {high - low + 1}"):
            Members.of_numbers(range(low, high + 1))
