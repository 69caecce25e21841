"""The block `rank candidates by ...`: keys one after the other, over the classes that could hold the task."""

import pytest

from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Relation
from tests.unit.language.policy_rig import Draws, candidate, policy, ranked, ranking, tdv


def _order(keys: str, *candidates: object, draws: tuple[int, ...] = ()) -> str:
    rules = policy(f"attribute $gpus int optional; rank candidates by {keys};")
    return " ".join(ranked(rules, ranking(*candidates), Draws(*draws)))  # type: ignore[arg-type]  # candidates alone


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("least $load", "b c a"),
        ("most $load", "a c b"),
        ("most $avail_mem", "a b c"),
        ("most $avail_mem, least $load", "b c a"),
        ("most $free_slots", "b a c"),
        ("most $free_slots, least $load", "b c a"),
        ('first where $cand.relation eq "sibling"', "c a b"),
        ('first where $cand.name eq "c", least $load', "c b a"),
        ("first where $load < 30% and $load > 5%", "c a b"),
        ("most $cand.count, least $load", "b c a"),
        ("least $load - 5000", "b c a"),
        ("most 0 - $load", "b c a"),
        ("most (1 + $load) * 2 / 3", "a c b"),
        ("least $load / 100000", "a b c"),
        ("most $gpus", "c a b"),
        ("most $gpus default 3", "a b c"),
        ("most $gpus default 1", "c a b"),
        ("most $cand.age", "a c b"),
        ("most $load * 9223372036854775807, least $load", "b c a"),
    ],
)
def test_candidates_come_in_the_order_of_the_keys_and_ties_in_that_of_their_names(keys: str, order: str) -> None:
    candidates = (
        candidate("c", {"load": 2000, "gpus": 2, "free_slots": 4}, relation=Relation.SIBLING, age_ns=2 * SECOND),
        candidate("b", {"load": 0, "free_slots": 8}),
        candidate("a", {"load": 9000, "free_slots": 4}, age_ns=3 * SECOND),
    )
    assert _order(keys, *candidates) == order


def test_the_best_class_that_could_hold_the_task_counts() -> None:
    full = {"free_slots": 0, "load": 0}
    one = candidate("one", full, {"free_slots": 1, "load": 8000})
    two = candidate("two", {"free_slots": 1, "load": 9000}, {"free_slots": 2, "load": 4000})
    assert _order("least $load", one, two) == "two one"


def test_a_candidate_that_could_not_hold_the_task_is_left_out() -> None:
    rules = policy("rank candidates by least $load;")
    query = ranking(
        candidate("full", {"free_slots": 0}), candidate("small", {"avail_mem": 1 << 20}), task=tdv(mem=1 << 30)
    )
    assert ranked(rules, query, Draws()) == ()


def test_certain_comes_before_possible_and_possible_before_impossible() -> None:
    sure = candidate("sure", {"load": 1000}, {"load": 2000})
    possible = candidate("possible", {"load": 1000}, {"load": 9000})
    impossible = candidate("impossible", {"load": 9000})
    assert _order("first where $load < 50%", impossible, possible, sure) == "sure possible impossible"


def test_a_candidate_through_which_tasks_were_lost_recently_is_last() -> None:
    assert (
        _order("least $load", candidate("lost", {"load": 0}, lost=True), candidate("well", {"load": 9000}))
        == "well lost"
    )


def test_random_draws_for_each_in_order_of_name() -> None:
    candidates = [candidate(name) for name in "cab"]
    assert _order("random", *candidates, draws=(3, 1, 2)) == "b c a"
    assert _order('first where $cand.name eq "a", random', *candidates, draws=(3, 2, 1)) == "a c b"


@pytest.mark.parametrize(("draw", "order"), [(0, "a b c"), (1, "b c a"), (2, "c a b"), (3, "a b c")])
def test_round_robin_begins_with_each_as_often(draw: int, order: str) -> None:
    assert _order("round robin", *(candidate(name) for name in "cab"), draws=(draw,)) == order


def test_a_ranking_may_depend_on_the_task_and_the_time() -> None:
    rules = policy(
        "rank candidates by first where $task.mem >= 1GiB and $avail_mem >= 16GiB, most $load * $task.cpus, random;"
    )
    small, large = candidate("small", {"avail_mem": 4 << 30, "load": 9000}), candidate("large", {"load": 0})
    assert ranked(rules, ranking(small, large, task=tdv(mem=2 << 30)), Draws(0, 0)) == ("large", "small")
    assert ranked(rules, ranking(small, large), Draws(0, 0)) == ("small", "large")


def test_without_a_block_free_slots_decide() -> None:
    rules = policy("")
    many, few = candidate("many", {"free_slots": 8}), candidate("few", {"free_slots": 2})
    assert ranked(rules, ranking(many, few), Draws(0)) == ("many", "few")
    assert ranked(rules, ranking(many, few), Draws(8)) == ("few", "many")
