"""The block `reveal`: the part of a vector that each neighbor receives, and the name that it sees."""

import pytest

from messiahs.core.model.attributes import KEY_ATTRIBUTES, Value
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.errors import PolicyError
from tests.unit.language.policy_rig import machines, policy

DECLARED = "attribute $cpu string; attribute $gpus int 0..16;"


def _neighbor(name: str, *relations: str) -> Neighbor:
    return Neighbor(
        system=SystemId(name),
        is_parent="parent" in relations,
        is_child="child" in relations,
        is_sibling="sibling" in relations,
    )


PARENT, CHILD, SIBLING = _neighbor("a", "parent"), _neighbor("b", "child"), _neighbor("c", "sibling")
BOTH = _neighbor("d", "child", "sibling")
FOUR: tuple[dict[str, Value], ...] = (
    {"free_slots": 1, "speed": 10},
    {"free_slots": 1, "speed": 10},
    {"free_slots": 4, "speed": 10},
    {"free_slots": 4, "speed": 12},
)


def _vector(*said: dict[str, Value]) -> Vector:
    return machines(*said, keys=KEY_ATTRIBUTES)


def _names(vector: Vector) -> set[str]:
    return {name for each in vector.classes for name, _ in each.attributes}


def _revealed(block: str, vector: Vector, neighbor: Neighbor = PARENT) -> Vector:
    return policy(f"{DECLARED} reveal to any {{ {block} }}").disclosure.reveal(vector, neighbor)


@pytest.mark.parametrize(
    ("blocks", "revealed_to"),
    [
        ("", "a b c d"),
        ("reveal to any nothing;", ""),
        ("reveal to any { all; }", "a b c d"),
        ("reveal to parent nothing;", "b c d"),
        ("reveal to any nothing; reveal to children { all; }", "b d"),
        ("reveal to children { all; } reveal to siblings nothing;", "a b"),
        ('reveal to children nothing; reveal to "d" { all; }', "a c d"),
        ('reveal to "a", "b" nothing;', "c d"),
    ],
)
def test_the_closest_rule_decides_and_of_several_relations_the_strictest(blocks: str, revealed_to: str) -> None:
    rules, vector = policy(blocks), _vector({})
    revealed = [
        each.system for each in (PARENT, CHILD, SIBLING, BOTH) if rules.disclosure.reveal(vector, each) == vector
    ]
    silent = [each.system for each in (PARENT, CHILD, SIBLING, BOTH) if rules.disclosure.reveal(vector, each) == EMPTY]
    assert " ".join(revealed) == revealed_to
    assert len(revealed) + len(silent) == 4


def test_all_but_some_attributes_are_revealed() -> None:
    vector = _vector({"gpus": 2, "cpu": "sparc"})
    assert _names(vector) - _names(_revealed("all except $load, $gpus;", vector)) == {"load", "gpus"}


def test_only_some_attributes_are_revealed_even_if_no_machine_has_one() -> None:
    assert _names(_revealed("only $arch, $gpus;", _vector({}))) == {"arch"}


def test_classes_that_differ_only_in_withheld_attributes_become_one_with_the_exact_count() -> None:
    (one,) = _revealed("all except $free_slots, $speed;", _vector(*FOUR)).classes
    assert one.count == 4


def test_a_neighbor_with_two_relations_receives_what_both_allow() -> None:
    blocks = (
        "reveal to children { only $arch, $os, $speed; } reveal to siblings { all except $os; hide counts below 2; }"
    )
    revealed = policy(blocks).disclosure.reveal(_vector(*FOUR, {"speed": 1}), BOTH)
    assert _names(revealed) == {"arch", "speed"}
    assert min(each.count for each in revealed.classes) >= 2
    assert revealed.machines == 5


def test_two_lists_of_only_leave_the_attributes_in_both() -> None:
    blocks = "reveal to children { only $arch, $os; } reveal to siblings { only $os, $load; }"
    assert _names(policy(blocks).disclosure.reveal(_vector({}), BOTH)) == {"os"}


def test_no_class_is_smaller_than_the_policy_allows_and_the_nearest_are_merged() -> None:
    revealed = _revealed("hide counts below 2;", _vector(*FOUR))
    assert sorted(each.count for each in revealed.classes) == [2, 2]
    assert _revealed("hide counts below 3;", _vector(*FOUR)).machines == 4
    assert [each.count for each in _revealed("hide counts below 4;", _vector(*FOUR)).classes] == [4]


def test_fewer_machines_than_the_least_class_are_not_revealed() -> None:
    assert _revealed("hide counts below 5;", _vector(*FOUR)) == EMPTY


def test_neighbors_with_the_same_rule_are_one_audience_and_others_are_not() -> None:
    rules = policy('reveal to any { only $arch; } reveal to "c" { all; }')
    assert (
        rules.disclosure.audience_of(PARENT)
        == rules.disclosure.audience_of(CHILD)
        != rules.disclosure.audience_of(SIBLING)
    )


def test_a_name_applies_to_the_peers_of_its_block() -> None:
    rules = policy('reveal to parent { as "site-7.example.org"; } reveal to children { all; }')
    assert (
        rules.disclosure.name_for(PARENT),
        rules.disclosure.name_for(CHILD),
        rules.disclosure.name_for(SIBLING),
    ) == ("site-7.example.org", "", "")
    assert rules.disclosure.reveal(_vector({}), PARENT) == _vector({})


@pytest.mark.parametrize(
    ("blocks", "inside", "outside"),
    [
        ("", "a b c d", ""),
        ("reveal to any { demand; }", "a b c d", "a b c d"),
        ("reveal to any { hide demand; }", "", ""),
        ("reveal to any nothing;", "", ""),
        ("reveal to parent { all; demand; }", "a b c d", "a"),
        ("reveal to children { demand; } reveal to siblings { all; }", "a b c d", "b"),
        ("reveal to children { demand; } reveal to siblings { hide demand; }", "a b", "b"),
        ("reveal to children { demand; } reveal to siblings { demand; }", "a b c d", "b c d"),
    ],
)
def test_unmet_demand_stays_within_the_site_unless_a_rule_says_otherwise(
    blocks: str, inside: str, outside: str
) -> None:
    disclosure = policy(blocks).disclosure
    for is_apart, expected in ((False, inside), (True, outside)):
        told = [
            each.system
            for each in (PARENT, CHILD, SIBLING, BOTH)
            if disclosure.reveals_demand_to(each, is_apart=is_apart)
        ]
        assert told == expected.split()


def test_a_block_says_once_whether_demand_is_revealed() -> None:
    with pytest.raises(PolicyError, match="whether unmet demand is revealed twice"):
        policy("reveal to any { demand; hide demand; }")
