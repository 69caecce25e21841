"""The block `rank tasks by ...`: the order in which tasks are served."""

from collections.abc import Mapping

import pytest

from messiahs.core.interface.policies import TaskOrderQuery
from messiahs.core.model.attributes import Value
from messiahs.errors import PolicyError
from messiahs.language.runtime.candidate_ranking import Ranking
from tests.unit.language.policy_rig import NOON, Draws, policy, served
from tests.unit.language.test_policy_examples import HOSTING

A, B, C = {"bid": 1, "waited": 30}, {"bid": 5, "waited": 10}, {"waited": 20}


def _order(keys: str, *tasks: Mapping[str, Value], draws: tuple[int, ...] = ()) -> str:
    rules = policy(f"attribute $bid int optional; rank tasks by {keys};")
    places = served(rules, TaskOrderQuery(tasks=tasks, here={"load": 5000}, now=NOON), Draws(*draws))
    return " ".join("ABC"[place] for place in places)


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("most $task.bid", "B A C"),
        ("most $bid", "B A C"),
        ("least $bid", "A B C"),
        ("least $bid default 0", "C A B"),
        ("most $task.waited", "A C B"),
        ("first where $task.bid >= 5, most $waited", "B A C"),
        ("first where $task.bid default 0 < 5", "A C B"),
        ("first where $here.load > 60%", "A B C"),
        ("most $waited * 9223372036854775807, least $waited", "B C A"),
    ],
)
def test_tasks_come_in_the_order_of_the_keys_and_equal_ones_as_they_came(keys: str, order: str) -> None:
    assert _order(keys, A, B, C) == order


def test_random_draws_once_for_each_task() -> None:
    assert _order("random", A, B, C, draws=(3, 1, 2)) == "B C A"


def test_without_a_block_nothing_is_ordered() -> None:
    assert policy("").selection.keeps_arrival
    assert not policy("rank tasks by random;").selection.keeps_arrival


def test_a_file_may_contain_each_ranking_once() -> None:
    both = "rank tasks by most $task.waited; rank candidates by least $load;"
    assert isinstance(policy(both).location, Ranking)
    with pytest.raises(PolicyError, match="`rank tasks` occurs twice"):
        policy(f"{both} rank tasks by random;")


def test_tasks_cannot_be_ranked_by_candidates() -> None:
    with pytest.raises(PolicyError, match=r"`rank tasks` does not know \$cand."):
        policy("rank tasks by most $cand.count;")


def test_the_paying_partner_comes_first_and_then_the_highest_bid() -> None:
    tasks: tuple[Mapping[str, Value], ...] = (
        {"from": "x", "bid": 10, "waited": 1},
        {"from": "x", "bid": 20, "waited": 1},
        {"from": "acme.example", "account": "acme-2031", "waited": 1},
        {"from": "x", "account": "acme-2031", "waited": 1},
    )
    assert served(policy(HOSTING), TaskOrderQuery(tasks=tasks, here={}, now=NOON), Draws()) == (2, 1, 0, 3)
