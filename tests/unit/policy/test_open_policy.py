"""The policy of a module without a policy file."""

from messiahs.core.interface.policies import Accepted
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.policy.open_policy import OpenPolicy
from tests.unit.language.policy_rig import NOON, Draws, candidate, machines, ranked, ranking, request, sdv, tdv


def test_it_accepts_every_task() -> None:
    full = sdv(free_slots=0, load=10_000)
    asked = [request(relation=each, here=full) for each in Relation]
    assert all(OpenPolicy().acceptance.decide(each, (), Draws()) == (Accepted(), ()) for each in asked)


def test_it_asks_by_free_slots_and_leaves_out_candidates_that_could_not_hold_the_task() -> None:
    few, many = candidate("few", {"free_slots": 2}), candidate("many", {"free_slots": 8})
    none = candidate("none", {"free_slots": 0})
    query = ranking(few, none, many, task=tdv())
    assert ranked(OpenPolicy(), query, Draws(1)) == ("few", "many")
    assert ranked(OpenPolicy(), query, Draws(2)) == ("many", "few")


def test_willing_machines_are_asked_first_more_often_and_unwilling_ones_are_still_asked() -> None:
    willing = candidate("willing", {"free_slots": 1, "willingness": 7})
    unwilling = candidate("unwilling", {"free_slots": 4, "willingness": 0})
    query = ranking(unwilling, willing, task=tdv())
    orders = [ranked(OpenPolicy(), query, Draws(draw)) for draw in range(12)]
    assert [order[0] for order in orders] == ["unwilling"] * 4 + ["willing"] * 8
    assert {frozenset(order) for order in orders} == {frozenset(("willing", "unwilling"))}


def test_it_advertises_and_passes_on_everything() -> None:
    described, vector = sdv(cpu="sparc"), machines({"cpu": "sparc"})
    assert OpenPolicy().disclosure.describe_here(described, NOON) == described
    assert OpenPolicy().disclosure.pass_on(vector) == vector
    neighbor = Neighbor(system=SystemId("any"), is_parent=True)
    assert OpenPolicy().disclosure.reveal(vector, neighbor) == vector
    assert OpenPolicy().disclosure.name_for(neighbor) == ""
