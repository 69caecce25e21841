"""The table of tasks as a tree: each task below one for which it waits."""

from messiahs.cli.task.tree import tree_of
from messiahs.client.connection import Document


def waiting(task: str, *on: str) -> Document:
    return {"id": task, "after": [{"on": each, "when": "ok", "is_met": True} for each in on]}


def shown(*tasks: Document) -> list[str]:
    return [f"{indent}{document['id']}" for document, indent in tree_of(tasks)]


def test_tasks_are_below_those_for_which_they_wait() -> None:
    chain = waiting("a.1"), waiting("a.2"), waiting("a.3", "a.1"), waiting("a.4", "a.3"), waiting("a.5", "a.1")
    assert shown(*chain) == ["a.1", "  a.3", "    a.4", "  a.5", "a.2"]


def test_a_task_that_waits_for_several_is_below_the_last_one() -> None:
    assert shown(waiting("a.1"), waiting("a.2"), waiting("a.3", "a.1", "a.2")) == ["a.1", "a.2", "  a.3"]


def test_a_task_whose_other_one_is_not_shown_is_not_indented() -> None:
    assert shown(waiting("a.2", "a.1"), {"id": "a.3"}) == ["a.2", "a.3"]


def test_an_array_stands_for_its_members_and_its_last_member_for_an_array() -> None:
    assert shown(waiting("a.1"), waiting("a.2"), waiting("a.3", "a.1.7")) == ["a.1", "  a.3", "a.2"]
    members = waiting("a.1.1"), waiting("a.1.2"), waiting("a.2.1", "a.1.1"), waiting("a.3", "a.1")
    assert shown(*members) == ["a.1.1", "  a.2.1", "a.1.2", "  a.3"]


def test_a_task_that_is_named_twice_has_what_is_below_it_once() -> None:
    assert shown(waiting("a.1"), waiting("a.1"), waiting("a.2", "a.1")) == ["a.1", "  a.2", "a.1"]


def test_a_long_chain_is_shown_whole_and_not_indented_without_end() -> None:
    chain = [waiting("a.1"), *(waiting(f"a.{number}", f"a.{number - 1}") for number in range(2, 2_000))]
    lines = shown(*chain)
    assert [line.strip() for line in lines] == [each["id"] for each in chain]
    assert len(lines[-1]) - len(lines[-1].strip()) == 16
