"""Outputs of tasks that are named as inputs of others."""

import pytest

from messiahs.client.task_outputs import TaskOutput, task_output_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@left.7/sum.txt", TaskOutput(task="left.7", name="sum.txt")),
        ("@left.7.3/d/e:to", TaskOutput(task="left.7.3", name="d/e", to="to")),
        ("@a-b.c.7/d/:to/", TaskOutput(task="a-b.c.7", name="d", to="to/")),
        ("@left.7", TaskOutput(task="left.7", name="")),
        ("@left.7/", TaskOutput(task="left.7", name="")),
    ],
)
def test_an_id_and_a_name_are_an_output(text: str, expected: TaskOutput) -> None:
    assert task_output_of(text) == expected


@pytest.mark.parametrize("text", ["left.7/sum.txt", "@notes", "./@left.7/sum.txt", "@left/7", "@left.07/a", "@left.7x"])
def test_anything_else_is_a_path(text: str) -> None:
    assert task_output_of(text) is None


def test_marks_stand_for_the_item_of_a_member() -> None:
    given = TaskOutput(task="left.7", name="{}.csv", to="in/{}")
    assert given.of_item("a") == TaskOutput(task="left.7", name="a.csv", to="in/a")
