"""Turns of users at their origin: a claim gives way to a user without a place."""

from messiahs.core.interface.ledger_rows import Parties
from messiahs.core.interface.messages import ClaimEnd, SchedRequest, TaskTransfer
from messiahs.core.ledger.accounts import enter
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import ClientKey, MessageId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.origin.giving_way import PATIENCE_NS, TURN_NS
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, CLAIM, ME, Rig, accept, deny, sent, status, statuses, tdv, view

ONLY_CHILD = (Neighbor(system=CHILD, is_child=True, is_primary_child=True),)
OPEN = "accept from any { limit 100 tasks; }"


def with_ann(module: ModuleFactory, *, policy_text: str = OPEN, **said: Value) -> Rig:
    """Make a module whose only neighbor has granted its only place for tasks of ann; more of them wait."""
    rig = module(ONLY_CHILD, parse_policy(policy_text, file="own.policy"))
    rig.greet(CHILD)
    rig.see(CHILD, view(free_slots=1))
    ((_, ask),) = sent(rig.submit(members=100, tdv=tdv(**said)), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, deny(ask.id))
    rig.see(CHILD, view(free_slots=0))
    return rig


def also(rig: Rig, **said: Value) -> None:
    """Submit another task, for which there is no place."""
    rig.see(CHILD, view(free_slots=0))
    rig.submit(key=ClientKey(repr(said)), tdv=tdv(**{"user": "bob", **said}))


def wait(rig: Rig, duration_ns: int) -> None:
    """Let time pass, in which the neighbor reports that its place is taken."""
    for _ in range(duration_ns // (2 * SECOND)):
        rig.see(CHILD, view(free_slots=0))
        rig.wait(2 * SECOND)


def gives_way(rig: Rig) -> bool:
    """Let the task in the place end, and return whether the claim ends; else it has the next task."""
    (bound,) = rig.state.origin.claims[CLAIM].bound
    actions = rig.hear(CHILD, statuses(status(bound), window=1))
    has_ended = [end.claim for _, end in sent(actions, ClaimEnd)] == [CLAIM]
    assert has_ended != bool(sent(actions, TaskTransfer))
    return has_ended


def searching(rig: Rig) -> dict[MessageId, str]:
    return {request: shape.user for request, shape in rig.state.origin.requests.items()}


def test_a_claim_gives_its_next_place_to_a_user_without_one_who_then_asks_first(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig)
    rig.wait(TURN_NS)
    assert gives_way(rig)
    rig.see(CHILD, view(free_slots=1))
    assert list(searching(rig).values()) == ["bob"]
    rig.wait(SECOND)
    assert list(searching(rig).values()) == ["bob", "ann"]


def test_a_claim_takes_tasks_for_a_moment_before_it_gives_way(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig)
    rig.wait(TURN_NS // 2)
    assert not gives_way(rig)


def test_a_denied_round_lets_one_claim_give_way(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig)
    rig.wait(TURN_NS)
    rig.state.origin.unserved.clear()
    assert not gives_way(rig)
    wait(rig, 6 * SECOND)
    assert gives_way(rig)


def test_no_claim_gives_way_to_a_task_that_fits_nowhere(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig, mem=1 << 60)
    wait(rig, 2 * PATIENCE_NS)
    assert not gives_way(rig)


def test_no_claim_gives_way_to_a_task_that_its_place_is_too_small_for(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig, cpus=2)
    wait(rig, 2 * PATIENCE_NS)
    assert not gives_way(rig)


def test_a_user_who_used_more_waits_for_a_bounded_time(module: ModuleFactory) -> None:
    rig = with_ann(module)
    enter(rig.state, Parties(source=CHILD, sink=ME, origin=ME, user="bob"), SECOND, rig.now)
    also(rig)
    rig.wait(TURN_NS)
    assert not gives_way(rig)
    wait(rig, PATIENCE_NS)
    assert gives_way(rig)


def test_the_order_of_the_policy_comes_first(module: ModuleFactory) -> None:
    rig = with_ann(module, policy_text=f"{OPEN} rank tasks by most $est_time default 0;", est_time=10)
    also(rig)
    rig.wait(TURN_NS)
    assert not gives_way(rig)
    wait(rig, PATIENCE_NS)
    assert gives_way(rig)


def test_a_priority_is_for_the_tasks_of_one_user(module: ModuleFactory) -> None:
    rig = with_ann(module)
    also(rig, user="ann", est_time=1)
    wait(rig, 2 * PATIENCE_NS)
    assert not gives_way(rig)
    also(rig, user="ann", priority=1)
    assert gives_way(rig)


def test_a_user_with_a_running_task_waits_for_the_quantum_of_others(module: ModuleFactory) -> None:
    rig = with_ann(module)
    rig.see(CHILD, view(free_slots=1))
    ((_, ask),) = sent(rig.submit(key=ClientKey("first"), tdv=tdv(user="bob", est_time=5)), SchedRequest)
    rig.hear(CHILD, accept(ask.id, claim=CLAIM._replace(number=9)))
    rig.see(CHILD, view(free_slots=0))
    also(rig)
    wait(rig, 2 * PATIENCE_NS)
    assert not gives_way(rig)
