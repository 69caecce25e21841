"""The value of each key of `rank`, as used for the order itself."""

from collections.abc import Mapping

import pytest

from messiahs.core.interface.policies import Candidate, TaskOrderQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.neighbors import Relation
from messiahs.language.explaining.ranks import ExplainedOrder, NoChance, explain_candidates, explain_task_order
from tests.unit.language.policy_rig import NOON, candidate, policy, ranked, ranking, tdv

OTHERS = 'first where $cand.relation eq "child", most $willingness * 10, least $load, random'
CANDIDATES = (
    candidate("a", {"willingness": 6, "load": 3}, relation=Relation.PARENT),
    candidate("b", {"willingness": 4, "load": 2}, {"willingness": 7, "load": 5, "free_slots": 0}),
    candidate("c", {"load": 1}, relation=Relation.SIBLING),
    candidate("full", {"free_slots": 0}),
    candidate("lost", {"willingness": 6, "load": 1}, lost=True),
)


def _candidates(keys: str, *found: Candidate, are_known: bool = True, **said: Value) -> ExplainedOrder:
    order = explain_candidates(
        policy(f"rank candidates by {keys};"), ranking(*found, task=tdv(**said)), are_known=are_known
    )
    assert order is not None
    return order


def _tasks(keys: str, task: Mapping[str, Value]) -> ExplainedOrder:
    query = TaskOrderQuery(tasks=(task,), here={"load": 5000}, now=NOON)
    order = explain_task_order(policy(f"rank tasks by {keys};"), query)
    assert order is not None
    return order


def test_candidates_are_in_the_order_of_asking_with_the_value_of_each_key() -> None:
    order = _candidates(OTHERS, *CANDIDATES)
    assert order.ranked is not None
    assert [(each.system, each.relation, [key.text for key in each.keys]) for each in order.ranked] == [
        ("b", "child", ["surely true", "40", "2", "drawn anew each time"]),
        ("a", "parent", ["false", "60", "3", "drawn anew each time"]),
        (
            "c",
            "sibling",
            ["false", "uninitialised, goes last: $willingness has no value", "1", "drawn anew each time"],
        ),
        ("lost", "child", ["surely true", "60", "1", "drawn anew each time"]),
    ]
    assert [each.keys[1].value for each in order.ranked] == [40, 60, None, 60]
    assert order.ranked[2].keys[1].unset == ("$willingness",)
    assert order.unable == ("full",)


@pytest.mark.parametrize(
    "keys", [OTHERS, "least $load", "most $load, round robin", "first where $speed > 5 or $willingness > 5, random"]
)
def test_the_order_is_that_of_the_policy_itself(keys: str) -> None:
    order = _candidates(keys, *CANDIDATES)
    assert order.ranked is not None
    asked = ranked(policy(f"rank candidates by {keys};"), ranking(*CANDIDATES), NoChance())
    assert tuple(each.system for each in order.ranked) == asked


def test_certain_possible_and_unknown_values_of_classes_are_distinguished() -> None:
    mixed = candidate("mixed", {"speed": 1000}, {"speed": 1000, "cpu": "sparc"})
    declared = "attribute $cpu string optional; attribute $gpus int optional;"
    text = f'{declared} rank candidates by first where $cpu eq "sparc",'
    text += "first where $gpus > 1, first where $speed > 1, first where $task.priority > 1;"
    order = explain_candidates(policy(text), ranking(mixed), are_known=True)
    assert order is not None
    assert order.ranked is not None
    assert [key.text for key in order.ranked[0].keys] == [
        "could be true",
        "could be true: $gpus has no value",
        "surely true",
        "false, goes last: $priority has no value",
    ]


def test_without_candidates_the_common_values_are_shown() -> None:
    keys = "least $load, most $task.priority, most $task.priority * $load, first where $task.cpus = 1, random"
    texts = [key.text for key in _candidates(keys, are_known=False).keys]
    assert texts == [
        "differs from candidate to candidate",
        "uninitialised, goes last: $priority has no value",
        "uninitialised, goes last: $priority has no value",
        "true",
        "drawn anew each time",
    ]
    with_it = [key.text for key in _candidates(keys, are_known=False, priority=3).keys]
    assert with_it[1:3] == ["3", "differs from candidate to candidate"]


def test_a_key_of_candidates_whose_task_lacks_an_attribute_puts_all_of_them_last() -> None:
    order = _candidates("most $task.priority * $load", *CANDIDATES[:2])
    assert order.ranked is not None
    assert [each.keys[0].unset for each in order.ranked] == [("$priority",), ("$priority",)]


def test_a_task_is_shown_with_its_value_of_each_key_and_missing_attributes() -> None:
    order = _tasks('first where $user eq "ann" and $mem > 1GiB, most $priority, least $waited - 5s', {"priority": -2})
    first, most, least = order.keys
    assert (first.text, most.text, most.value) == ("false", "-2", -2)
    assert (least.text, least.unset) == ("uninitialised, goes last: $waited has no value", ("$waited",))
    assert first.rule is not None
    assert first.rule.explanation is not None
    assert [term.finding for term in first.rule.explanation.terms] == ["missing", "missing"]
    assert order.ranked is None


def test_a_number_beyond_64_bits_has_no_value_although_nothing_is_missing() -> None:
    (key,) = _tasks("most $waited * 9223372036854775807", {"waited": 2}).keys
    assert (key.text, key.unset, key.value) == ("uninitialised, goes last: no value of it is within 64 bits", (), None)


def test_keys_are_shown_as_written_with_their_position() -> None:
    text = 'policy "x";\nrank tasks by first where $user in ("a", "b"),\n  most ($priority * 2), random;'
    query = TaskOrderQuery(tasks=({},), here={}, now=NOON)
    order = explain_task_order(policy(text), query)
    assert order is not None
    keys = [('first where $user in ("a", "b")', 26), ("most ($priority * 2)", 61), ("random", 83)]
    assert order.written.head == "rank tasks"
    assert order.written.start == text.index("rank")
    assert list(order.written.keys) == keys
    assert all(text.startswith(key.split()[0], start) for key, start in keys)


def test_without_a_block_there_is_no_order() -> None:
    query = TaskOrderQuery(tasks=({},), here={}, now=NOON)
    assert explain_task_order(policy("rank candidates by random;"), query) is None
    assert explain_candidates(policy("rank tasks by random;"), ranking(), are_known=False) is None
