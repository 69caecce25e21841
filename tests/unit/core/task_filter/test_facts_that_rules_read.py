"""What rules read of the own system and of tasks here is known in every block that may ask for it."""

import pytest

from messiahs.core.interface.actions import Action, MeasureAttempts
from messiahs.core.interface.attempts import AttemptsMeasured, AttemptStarted
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest, TaskDeny, TaskRequest, TaskRevoke
from messiahs.core.model.ids import ClientKey, MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.vectors.vectors import Interval
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    GIB,
    ORIGIN,
    PARENT,
    SIBLING,
    Rig,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
    view,
)

OPEN = "accept from any { limit 99 tasks; }"


def machine(module: ModuleFactory, rules: str, *, slots: int = 1) -> Rig:
    """Make a module with a machine and a policy, linked with all."""
    rig = module(policy=parse_policy(f"{OPEN} {rules}", file="rules.policy"))
    rig.greet(CHILD, SIBLING, PARENT)
    if slots:
        rig.measure(slots=slots)
    return rig


def run(rig: Rig, **said: int) -> tuple[Action, ...]:
    """Let a task of a far origin run here, and give what is done in the next second."""
    granted = message_in(rig.hear(PARENT, request(tdv=tdv(**said))), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(granted.claim, granted.ticket, remote())))
    return (*rig.handle(AttemptStarted(attempt=remote())), *rig.wait(2 * SECOND))


def ask_for_tasks(rig: Rig) -> tuple[Action, ...]:
    asked = TaskRequest(
        id=MessageId(7),
        search=SearchId(b"w" * 16),
        requester=SystemId("idle"),
        wanting="",
        count=1,
        hops_left=32,
        asks_left=64,
        remaining_ns=10 * SECOND,
    )
    return rig.hear(CHILD, asked)


@pytest.mark.parametrize(("fact", "before", "after"), [("tasks", 7, 1), ("waiting", 7, 1)])
def test_advertise_knows_how_many_tasks_are_here_and_how_many_wait(
    module: ModuleFactory, fact: str, before: int, after: int
) -> None:
    rules = f"advertise every 2s {{ set $willingness = 7 when $here.{fact} = 0 else 1; }}"
    rig = machine(module, rules)

    def said() -> object:
        rig.wait(2 * SECOND)
        (own,) = rig.state.updates.own.classes
        assert fact not in dict(own.attributes)
        return dict(own.attributes)["willingness"]

    assert said() == Interval(before, before)
    if fact == "tasks":
        run(rig)
    else:
        rig.submit(tdv=tdv(cpus=9), key=ClientKey("w"))
    assert said() == Interval(after, after)


@pytest.mark.parametrize(("isolation", "is_accepted"), [("sandbox", True), ("bubblewrap", False), ("process", False)])
def test_accept_requires_what_contains_the_tasks_of_the_machine(
    module: ModuleFactory, isolation: str, *, is_accepted: bool
) -> None:
    rig = module(policy=parse_policy('accept from any { require $here.isolation eq "sandbox"; }', file="a.policy"))
    rig.greet(CHILD, SIBLING, PARENT)
    rig.measure(isolation=isolation)
    actions = rig.hear(PARENT, request())
    assert [len(sent(actions, kind)) for kind in (SchedAccept, SchedDeny)] == [is_accepted, not is_accepted]


@pytest.mark.parametrize("slots", [4, 0])
def test_rank_candidates_knows_how_many_tasks_are_here_with_a_machine_or_without(
    module: ModuleFactory, slots: int
) -> None:
    rules = 'rank candidates by first where $here.tasks = 0 and $here.waiting = 0 and $cand.name eq "sibling";'
    rig = machine(module, rules, slots=slots)
    for system in (PARENT, SIBLING):
        rig.see(system, view(slots=64, free_slots=64))
    ((to, _),) = sent(rig.hear(CHILD, request(tdv=tdv(cpus=32))), SchedRequest)
    assert to == SIBLING


@pytest.mark.parametrize("rules", ["", "rank tasks by most $priority;"])
def test_nothing_waits_above_a_task_that_does_not_run(module: ModuleFactory, rules: str) -> None:
    rig = machine(module, f"{rules} advertise every 2s {{ set $willingness = 7 when $here.waiting_above = 0 else 1; }}")
    rig.wait(2 * SECOND)
    (own,) = rig.state.updates.own.classes
    assert dict(own.attributes)["willingness"] == Interval(7, 7)


@pytest.mark.parametrize(
    "rules",
    [
        "migrate { offer when $task.mem_used < 1GiB; }",
        "rank tasks by least $mem_used;",
        "running { kill when $task.mem_used > 1TiB; }",
    ],
)
def test_the_memory_of_tasks_is_measured_for_every_rule_that_reads_it(module: ModuleFactory, rules: str) -> None:
    assert MeasureAttempts(attempts=(remote(),)) in run(machine(module, rules))


@pytest.mark.parametrize("rules", ["migrate { offer when $task.ran < 1h; }", "rank tasks by least $priority;", ""])
def test_the_memory_of_tasks_is_measured_for_no_other_rule(module: ModuleFactory, rules: str) -> None:
    assert only(run(machine(module, rules)), MeasureAttempts) == ()


@pytest.mark.parametrize(("used", "is_offered"), [(GIB - 1, True), (GIB, False)])
def test_an_offer_may_depend_on_the_memory_that_a_task_uses(
    module: ModuleFactory, used: int, *, is_offered: bool
) -> None:
    rig = machine(module, "migrate { offer when $task.mem_used < 1GiB; }")
    run(rig)
    rig.handle(AttemptsMeasured(memory=((remote(), used),)))
    actions = ask_for_tasks(rig)
    assert [each.attempts for _, each in sent(actions, TaskRevoke)] == ([(remote(),)] if is_offered else [])
    assert bool(sent(actions, TaskDeny)) is not is_offered


@pytest.mark.parametrize(("priority", "is_offered"), [(1, True), (9, False)])
def test_an_offer_may_depend_on_the_tasks_that_wait_above(
    module: ModuleFactory, priority: int, *, is_offered: bool
) -> None:
    rules = "rank tasks by most $priority default 0; migrate { offer when $here.waiting_above >= 1; }"
    rig = machine(module, rules)
    run(rig, priority=priority)
    # Another neighbor found no room here for a task of middling rank.
    rig.hear(SIBLING, request(2, search=SearchId(b"o" * 16), tdv=tdv(priority=5)))
    assert [each.attempts for _, each in sent(ask_for_tasks(rig), TaskRevoke)] == ([(remote(),)] if is_offered else [])
