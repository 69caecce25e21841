"""Users of one module who share its places, in virtual time: nobody waits for the end of another user's tasks."""

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.origin.giving_way import FREED_NS, PATIENCE_NS, TURN_NS
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.unit.core.rig import sdv, tdv

HOME, HUB, MACHINE = SystemId("home"), SystemId("hub"), SystemId("machine")
MANY = 10_000
SLOTS = 2
OPEN = "accept from any { limit 100 tasks; }"
LIMITED = "accept from any { limit 1 tasks per $origin; } accept from users { limit 1 tasks; }"
"""The machine is never full, so no claim has to end its quantum."""
SEARCH_NS = 1 * SECOND
"""A search over two hops, and the vectors that show a free place: far more than they take."""
BOUND_NS = TURN_NS + FREED_NS + SEARCH_NS
"""Beyond the longest run of a task that was there before."""


def federation_of(seed: int, *, has_own_machine: bool, mean_ns: int, policy_text: str = OPEN) -> SimulatedFederation:
    """Make a module with users and a machine, or one whose users run tasks on a machine two hops away."""
    policy, machine = parse_policy(policy_text, file="all.policy"), sdv(slots=SLOTS)
    up = Neighbor(system=HUB, is_parent=True, is_primary_parent=True)
    below = (HOME,) if has_own_machine else (HOME, MACHINE)
    children = tuple(Neighbor(system=name, is_child=True, is_primary_child=True) for name in below)
    systems = {HUB: SimulatedSystem(name=HUB, neighbors=children, machine=None, policy=policy)}
    for name in below:
        measured = machine if name == below[-1] else None
        systems[name] = SimulatedSystem(name=name, neighbors=(up,), machine=measured, policy=policy)
    checks = Checks({below[-1]: machine.description()}, clocks={name: each.clock for name, each in systems.items()})
    times = RunTimes(seed=seed, mean_ns=mean_ns)
    federation = SimulatedFederation(systems, seed=seed, run_times=times, watcher=checks)
    checks.agenda = federation.agenda
    federation.run(lambda: False, until=Instant(5 * SECOND))
    return federation


def submit(federation: SimulatedFederation, user: str, *, members: int = 0, cpus: int = 1, priority: int = 0) -> None:
    event = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey(f"{user} {priority} {cpus}"),
        tdv=tdv(origin=HOME, user=user, cpus=cpus, **({"priority": priority} if priority else {})),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
    )
    federation.post(HOME, event)


def ran_ns(row: TaskRow) -> int:
    assert row.result is not None
    return row.result.ran_ns


def first_of(federation: SimulatedFederation, number: int) -> TaskRow | None:
    return next((row for task, row in federation.ended.items() if task.number == number), None)


def waited_ns(federation: SimulatedFederation, number: int, *, since: Instant) -> int:
    """Return how long the first task of a submission to end waited from an instant, after the run has shown its end."""
    federation.run(lambda: first_of(federation, number) is not None, until=Instant(federation.now + 10 * MINUTE))
    row = first_of(federation, number)
    assert row is not None
    assert row.ended_at is not None
    return row.ended_at - ran_ns(row) - since


def longest_ns(federation: SimulatedFederation, number: int) -> int:
    return max(ran_ns(row) for task, row in federation.ended.items() if task.number == number)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy_text", [OPEN, LIMITED])
@pytest.mark.parametrize("has_own_machine", [True, False])
def test_ten_thousand_tasks_of_one_user_delay_the_first_of_another_by_one_run(
    policy_text: str, seed: int, *, has_own_machine: bool
) -> None:
    federation = federation_of(seed, has_own_machine=has_own_machine, mean_ns=SECOND // 5, policy_text=policy_text)
    submit(federation, "ann", members=MANY)
    federation.run(lambda: False, until=Instant(federation.now + 60 * SECOND))
    since = federation.now
    submit(federation, "bob")
    assert waited_ns(federation, 2, since=since) <= longest_ns(federation, 1) + BOUND_NS


@pytest.mark.parametrize("policy_text", [OPEN, LIMITED])
@pytest.mark.parametrize("has_own_machine", [True, False])
def test_a_user_who_used_much_waits_for_one_who_used_less_only_for_a_bounded_time(
    policy_text: str, *, has_own_machine: bool
) -> None:
    federation = federation_of(1, has_own_machine=has_own_machine, mean_ns=SECOND // 5, policy_text=policy_text)
    submit(federation, "ann", members=500)
    federation.run(lambda: len(federation.ended) == 500, until=Instant(federation.now + 10 * MINUTE))
    submit(federation, "bob", members=MANY)
    federation.run(lambda: False, until=Instant(federation.now + 5 * SECOND))
    since = federation.now
    submit(federation, "ann", priority=1)
    assert waited_ns(federation, 3, since=since) <= longest_ns(federation, 2) + PATIENCE_NS + BOUND_NS


@pytest.mark.parametrize("has_own_machine", [True, False])
def test_users_with_many_tasks_get_equal_shares_whoever_came_first_and_with_more(*, has_own_machine: bool) -> None:
    federation = federation_of(2, has_own_machine=has_own_machine, mean_ns=SECOND // 2)
    for user, members in (("ann", MANY), ("bob", 2_000), ("eve", 1_000)):
        submit(federation, user, members=members)
        federation.run(lambda: False, until=Instant(federation.now + 5 * SECOND))
    federation.run(lambda: False, until=Instant(federation.now + 3 * MINUTE))
    used = [sum(ran_ns(row) for task, row in federation.ended.items() if task.number == each) for each in (1, 2, 3)]
    assert max(used) < 1.25 * min(used)
    # Taking turns costs little.
    assert sum(used) > 0.9 * SLOTS * 3 * MINUTE


@pytest.mark.parametrize("has_own_machine", [True, False])
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_priority_is_among_the_tasks_of_one_user(cpus: int, *, has_own_machine: bool) -> None:
    federation = federation_of(3, has_own_machine=has_own_machine, mean_ns=SECOND // 5)
    submit(federation, "ann", cpus=2, members=MANY)
    submit(federation, "bob", cpus=2, members=MANY)
    federation.run(lambda: False, until=Instant(federation.now + 60 * SECOND))
    since = federation.now
    submit(federation, "ann", cpus=cpus, members=500, priority=5)
    waited = waited_ns(federation, 3, since=since)
    longest = max(longest_ns(federation, 1), longest_ns(federation, 2))
    assert waited <= longest + PATIENCE_NS + BOUND_NS
    before = [task for task in federation.ended if task.number == 1]
    federation.run(lambda: False, until=Instant(federation.now + 20 * SECOND))
    # None of ann's other tasks began while these waited, and bob got no less than before.
    later = [task for task in federation.ended if task.number == 1 and task not in before]
    assert len(later) < 10
    assert sum(1 for task in federation.ended if task.number == 2) > 100
