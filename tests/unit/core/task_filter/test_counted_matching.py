"""Counted things in searches: machines that have enough, and enough free, before those of which that is not known."""

from collections.abc import Mapping

from messiahs.core.interface.predicates import BadPredicate, Predicate
from messiahs.core.model.attributes import KEY_ATTRIBUTES, Value
from messiahs.core.model.counted import counted_in, problem_of_name, requirement_for, uses_in
from messiahs.core.model.descriptions import sorted_pairs
from messiahs.core.task_filter.matching import fitting, has_room, need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import coalesce, vector_of
from messiahs.language.predicate.predicates import predicate_parser
from tests.unit.core.rig import sdv, tdv


def fits(*machines: Mapping[str, Value], requirement: str = "", **wish: Value) -> list[tuple[bool, bool]]:
    """Return for each machine whether it surely and whether it possibly holds the task."""
    parsed = predicate_parser(requirement)
    assert not isinstance(parsed, BadPredicate)
    need = need_of(tdv(**wish), parsed)
    found = []
    for machine in machines:
        surely, could = fitting(need, IndexedVector(vector_of(sdv(free_slots=4, **machine))))
        found.append((bool(surely), bool(could)))
    return found


def test_a_machine_has_room_if_enough_is_free() -> None:
    full, busy = {"gpus": 2, "free_gpus": 0}, {"gpus": 4, "free_gpus": 2}
    assert fits(full, busy, gpus=1) == [(False, False), (True, True)]
    assert fits(full, busy, gpus=3) == [(False, False), (False, False)]


def test_a_machine_that_counts_no_such_things_is_asked_last_by_a_task_that_needs_them() -> None:
    wish = requirement_for((("gpus", 1),))
    assert wish == "$gpus >= 1 and $free_gpus >= 0"
    assert fits({}, {"gpus": 1, "free_gpus": 1}, requirement=wish, gpus=1) == [(False, True), (True, True)]


def test_an_attribute_that_nobody_counts_changes_nothing() -> None:
    assert fits({}, {"level": 2}, level=7) == [(True, True), (True, True)]


def test_machines_with_other_free_gpus_stay_apart_in_a_sum() -> None:
    machines = [vector_of(sdv(gpus=2, free_gpus=free)) for free in (0, 2, 2)]
    summed = coalesce(machines, keys=KEY_ATTRIBUTES)
    assert sorted(each.count for each in summed.classes) == [1, 2]


def test_only_positive_integers_that_are_no_attributes_are_wishes() -> None:
    pairs = sorted_pairs({"cpus": 2, "slots": 3, "mem": 5, "gpus": 1, "none": 0, "word": "x", "less": -1})
    assert uses_in(pairs) == (("gpus", 1),)
    assert counted_in((("gpus", 1), ("x", 2)), {"free_gpus": 0}) == (("gpus", 1),)
    assert has_room(need_of(tdv(gpus=1), _anything()), {"free_slots": 1, "free_gpus": 1})
    assert not has_room(need_of(tdv(gpus=2), _anything()), {"free_slots": 1, "free_gpus": 1})


def test_a_name_is_a_part_of_a_variable_and_of_an_attribute() -> None:
    assert [problem_of_name(name) for name in ("gpus", "licences_of_x", "a1")] == ["", "", ""]
    assert all(problem_of_name(name) for name in ("", "1a", "a-b", "A", "attempt", "speed", "free_x", "queue_length"))


def _anything() -> Predicate:
    parsed = predicate_parser("")
    assert not isinstance(parsed, BadPredicate)
    return parsed
