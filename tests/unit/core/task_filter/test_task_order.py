"""Whose turn it is by `rank tasks`, and what a policy is told of the tasks that wait."""

import pytest

from messiahs.core.interface.actions import Action, ResumeAttempt, SendVector, SuspendAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import Measured, PolicyChanged, TransferReceived, VectorReceived
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest, StatusVector, TaskStatus, VectorKind
from messiahs.core.model.ids import ClientKey, SearchId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.task_order import is_outranked, waiting_above
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    GIB,
    ORIGIN,
    PARENT,
    Rig,
    deny,
    message_in,
    only,
    remote,
    request,
    sdv,
    sent,
    tdv,
    transfer,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

BY_PRIORITY = "rank tasks by most $task.priority default 0;"
NEIGHBORS = (
    Neighbor(system=CHILD, is_child=True, is_primary_child=True),
    Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),
)


def ruled(module: ModuleFactory, text: str = BY_PRIORITY, *, slots: int = 1) -> Rig:
    """Make a machine whose neighbors are known to have none."""
    rules = parse_policy(text, file="rules.policy")
    rig = module(neighbors=NEIGHBORS, policy=ScriptedPolicy(selection=rules.selection, running=rules.running))
    rig.greet(CHILD, PARENT)
    if slots:
        rig.measure(slots=slots)
    return rig


def submit(rig: Rig, *priorities: int, mem: int = 0) -> tuple[Action, ...]:
    """Let users submit tasks of these priorities, one after the other."""
    said = [tdv(priority=priority, mem=mem) for priority in priorities]
    return tuple(
        action
        for place, each in enumerate(said)
        for action in rig.submit(key=ClientKey(f"{place}/{mem}/{rig.now}"), tdv=each)
    )


def ask(rig: Rig, number: int, *, priority: int = 0, count: int = 1, origin: str = "other") -> tuple[Action, ...]:
    """Let the parent ask for places."""
    search = SearchId(bytes([number] * 16))
    return rig.hear(PARENT, request(number, search=search, tdv=tdv(priority=priority), count=count, origin=origin))


def occupy(rig: Rig, *members: int, priority: int = 1) -> SchedAccept:
    """Let tasks of the parent's take places."""
    granted = message_in(ask(rig, 9, priority=priority, count=len(members), origin=ORIGIN), SchedAccept)
    tasks = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(granted.claim, granted.ticket, *tasks)))
    for task in tasks:
        rig.handle(AttemptStarted(attempt=task))
    return granted


def end(rig: Rig, member: int) -> int:
    """Let an attempt end, and give the window that its origin is told then."""
    return message_in(
        rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, ran_ns=SECOND)), TaskStatus
    ).window


def priorities(actions: tuple[Action, ...]) -> list[object]:
    return [asked.tdv.description()["priority"] for _, asked in sent(actions, SchedRequest)]


def test_when_places_are_seen_those_are_looked_for_first_whose_turn_it_is(module: ModuleFactory) -> None:
    rig = ruled(module, slots=0)
    submit(rig, 1, 3, 2)
    assert priorities(rig.see(CHILD, view())) == [3, 2, 1]


def test_under_a_new_policy_all_look_again_in_its_order(module: ModuleFactory) -> None:
    rig = ruled(module, "", slots=0)
    submit(rig, 1, 3, 2)
    rig.see(CHILD, view())
    for ask_id in tuple(rig.state.hop.asks):
        rig.hear(CHILD, deny(ask_id))
    order = parse_policy(BY_PRIORITY, file="rules.policy").selection
    assert priorities(rig.handle(PolicyChanged(policy=ScriptedPolicy(selection=order)))) == [3, 2, 1]


def test_without_the_block_the_tasks_of_a_user_go_by_priority_and_then_by_arrival(module: ModuleFactory) -> None:
    rig = ruled(module, "", slots=0)
    for mem in (3, 1, 2):
        submit(rig, 1, 2, mem=mem)
    # The first four begin to search at once, the others in steps of their own.
    actions = (*rig.see(CHILD, view()), *rig.wait(MILLISECOND))
    asked = [each.tdv.description() for _, each in sent(actions, SchedRequest)]
    assert [(each["priority"], each["mem"]) for each in asked] == [(2, 3), (2, 1), (2, 2), (1, 3), (1, 1), (1, 2)]


def test_a_claim_that_keeps_the_machine_full_ends_as_soon_as_others_come_before_it(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    submit(rig, 2)
    assert end(rig, 1) == 0


def test_equal_tasks_wait_for_the_end_of_the_turn(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    submit(rig, 1)
    assert end(rig, 1) == 1


def test_tasks_that_this_machine_could_never_run_end_no_turn(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    submit(rig, 5, mem=1_000 * GIB)
    assert waiting_above(rig.state, ({"priority": 1},), rig.now) == (0,)
    assert end(rig, 1) == 1


def test_what_a_neighbor_found_no_room_for_counts_as_waiting_for_a_while(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    assert message_in(ask(rig, 1, priority=3, count=4), SchedDeny).reasons[0].code == "no_capacity"
    assert own_facts(rig.state, rig.now)["waiting"] == 4
    assert waiting_above(rig.state, ({"priority": 1},), rig.now) == (4,)
    assert waiting_above(rig.state, ({"priority": 3},), rig.now) == (0,)
    rig.wait(20 * SECOND)
    ask(rig, 2, priority=3, count=2)
    rig.wait(29 * SECOND)
    assert own_facts(rig.state, rig.now)["waiting"] == 2
    rig.wait(SECOND)
    assert own_facts(rig.state, rig.now)["waiting"] == 0


def test_what_is_granted_waits_no_longer(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    ask(rig, 1)
    rig.handle(Measured(sdv=sdv(slots=2)))
    assert message_in(ask(rig, 2), SchedAccept).places == 1
    assert own_facts(rig.state, rig.now)["waiting"] == 0


def test_what_no_machine_here_could_run_is_not_remembered(module: ModuleFactory) -> None:
    rig = ruled(module)
    rig.hear(PARENT, request(tdv=tdv(mem=1_000 * GIB)))
    assert rig.state.hop.demands == {}


def test_one_neighbor_cannot_make_a_module_remember_without_end(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    for number in range(1, 80):
        ask(rig, number, priority=number + 10)
    assert len(rig.state.hop.demands) == 64


def test_a_policy_knows_how_many_tasks_are_here_and_wait(module: ModuleFactory) -> None:
    rig = ruled(module, slots=2)
    occupy(rig, 1, 2)
    submit(rig, 1, 1)
    facts = own_facts(rig.state, rig.now)
    assert (facts["tasks"], facts["waiting"], facts["free_slots"]) == (2, 2, 0)


def test_those_who_asked_are_known_by_their_relation(module: ModuleFactory) -> None:
    rig = ruled(module, 'rank tasks by first where $task.relation eq "parent", first where $task.relation eq "self";')
    occupy(rig, 1)
    submit(rig, 1)
    ask(rig, 1)
    ranked = waiting_above(rig.state, ({"relation": "child"}, {"relation": "self"}, {"relation": "parent"}), rig.now)
    assert ranked == (2, 1, 0)


def test_the_paying_partners_task_takes_the_place_of_one_that_pays_less(module: ModuleFactory) -> None:
    rig = ruled(
        module,
        """let partner = $task.from eq "parent" and $task.priority default 0 > 5;
        rank tasks by first where partner;
        running tasks where not partner {
            suspend when $here.waiting_above >= 1;
            resume when $here.waiting_above = 0 for 2s;
        }""",
    )
    occupy(rig, 1)
    assert message_in(ask(rig, 1, priority=9), SchedDeny).reasons[0].code == "no_capacity"
    assert only(rig.wait(SECOND), SuspendAttempt) == (SuspendAttempt(attempt=remote(member=1)),)
    granted = message_in(ask(rig, 2, priority=9), SchedAccept)
    assert granted.places == 1
    # Its tasks do not come: the claim ends after a while, and what was suspended goes on.
    assert only(rig.wait(60 * SECOND), ResumeAttempt) == (ResumeAttempt(attempt=remote(member=1)),)


def hear_full(rig: Rig, *, makes_room: bool) -> None:
    """Let the child say that nothing is free behind it."""
    message = StatusVector(
        kind=VectorKind.FOR_PARENTS,
        vector=view(free_slots=0),
        period_ns=60 * SECOND,
        age_ns=0,
        makes_room=makes_room,
    )
    rig.handle(VectorReceived(sender=CHILD, message=message))


def room_shown(actions: tuple[Action, ...]) -> dict[str, bool]:
    return {action.to: action.message.makes_room for action in only(actions, SendVector)}


@pytest.mark.parametrize("makes_room", [True, False])
def test_where_nothing_is_free_is_asked_last_and_only_if_room_may_be_made(
    module: ModuleFactory, *, makes_room: bool
) -> None:
    rig = ruled(module, "", slots=0)
    hear_full(rig, makes_room=makes_room)
    rig.see(PARENT)
    ((first, search),) = sent(submit(rig, 1), SchedRequest)
    assert first == PARENT
    assert [to for to, _ in sent(rig.hear(PARENT, deny(search.id)), SchedRequest)] == [CHILD] * makes_room


def test_a_machine_that_could_never_hold_a_task_is_not_asked_to_make_room_for_it(module: ModuleFactory) -> None:
    rig = ruled(module, "", slots=0)
    hear_full(rig, makes_room=True)
    assert sent(submit(rig, 1, mem=1_000 * GIB), SchedRequest) == ()


@pytest.mark.parametrize(
    ("text", "slots", "makes_room"),
    [
        (BY_PRIORITY, 1, True),
        ("running { suspend when $here.waiting_above >= 1; }", 1, True),
        ("running { suspend when $here.load > 50%; }", 1, False),
        (BY_PRIORITY, 0, False),
        ("", 1, False),
    ],
)
def test_who_has_a_machine_and_looks_at_who_waits_says_that_it_may_make_room(
    module: ModuleFactory, text: str, slots: int, *, makes_room: bool
) -> None:
    rig = ruled(module, text, slots=slots)
    assert room_shown(rig.wait(3 * SECOND)) == {CHILD: makes_room, PARENT: makes_room}


def test_that_room_may_be_made_is_passed_on_as_machines_are(module: ModuleFactory) -> None:
    rig = ruled(module, "", slots=0)
    hear_full(rig, makes_room=True)
    assert room_shown(rig.wait(SECOND // 10)) == {CHILD: False, PARENT: True}


def test_whoever_is_told_nothing_does_not_hear_that_room_may_be_made(module: ModuleFactory) -> None:
    rules = parse_policy(BY_PRIORITY, file="rules.policy")
    rig = module(neighbors=NEIGHBORS, policy=ScriptedPolicy(selection=rules.selection, silent_to=(PARENT,)))
    rig.greet(CHILD, PARENT)
    rig.measure()
    assert room_shown(rig.wait(3 * SECOND)) == {CHILD: True, PARENT: False}


def test_each_task_that_runs_has_its_own_count_of_those_that_come_before_it(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    submit(rig, 2, 2, 4)
    running = ({"priority": 1}, {"priority": 2}, {"priority": 3}, {"priority": 5})
    assert waiting_above(rig.state, running, rig.now) == (3, 1, 1, 0)


def test_the_first_task_is_determined_again_only_after_a_while(module: ModuleFactory) -> None:
    rig = ruled(module)
    occupy(rig, 1)
    assert not is_outranked(rig.state, {"priority": 1}, rig.now)
    submit(rig, 2)
    assert not is_outranked(rig.state, {"priority": 1}, rig.now)
    rig.wait(SECOND // 10)
    assert is_outranked(rig.state, {"priority": 1}, rig.now)
    assert not is_outranked(rig.state, {"priority": 2}, rig.now)
