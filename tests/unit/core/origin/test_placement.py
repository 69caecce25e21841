"""Placing tasks at their origin: rounds of searching, claims, and the binding of tasks to them."""

import sys
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Decision, FetchOutputs, Forget, SendControl, Store, TaskEnded
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ControlReceived, Measured, StoreChanged
from messiahs.core.interface.messages import ClaimEnd, Command, DenyCode, SchedRequest, TaskState, TaskTransfer
from messiahs.core.interface.policies import Limits
from messiahs.core.interface.rows import HeldClaimRow, RowKind, TaskRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND
from messiahs.core.model.task_files import Output
from messiahs.core.vectors.vectors import EMPTY
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    LEG,
    ME,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    TASK,
    TICKET,
    Rig,
    accept,
    attempt,
    deny,
    message_in,
    only,
    sdv,
    sent,
    status,
    statuses,
    tdv,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def search(rig: Rig, members: int = 0, **more: object) -> SchedRequest:
    """Submit, and give what the child, the likeliest, is asked."""
    ((to, ask),) = sent(rig.submit(members, **more), SchedRequest)
    assert to == CHILD
    return ask


def deny_all(rig: Rig, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Let every neighbor deny, one after the other."""
    while asks := sent(actions, SchedRequest):
        ((to, ask),) = asks
        actions = rig.hear(to, deny(ask.id))
    return actions


def ended(actions: tuple[Action, ...]) -> list[tuple[int, str]]:
    return [
        (action.row.id.member, action.row.state)
        for action in only(actions, Store)
        if isinstance(action.row, TaskRow) and action.row.ended_at is not None
    ]


def test_a_search_is_for_as_many_places_as_tasks_wait_with_whole_budgets(rig: Rig) -> None:
    rig.see(CHILD, EMPTY)
    rig.see(SIBLING, EMPTY)
    ((to, ask),) = sent(rig.submit(members=5, requirement="$speed > 1"), SchedRequest)
    assert to == PARENT
    assert (ask.count, ask.requirement, ask.tdv, ask.origin) == (5, "$speed > 1", tdv(), ME)
    assert (ask.hops_left, ask.asks_left) == (31, 63)


def test_the_policy_sets_the_budgets_of_a_search(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.limits = Limits(hops=5, asks=7)
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    assert (ask.hops_left, ask.asks_left) == (4, 6)


def test_a_task_with_room_at_home_stays_at_home(rig: Rig) -> None:
    rig.measure()
    actions = rig.submit()
    assert sent(actions, SchedRequest) == ()
    assert rig.state.origin.tasks[TASK].executed_on == ME


def test_a_claim_is_stored_and_tasks_are_bound_before_they_are_sent(rig: Rig) -> None:
    ask = search(rig, members=3)
    actions = rig.hear(CHILD, accept(ask.id, places=2))
    claim, first, second, transfer = actions
    assert claim == Store(
        row=HeldClaimRow(
            id=CLAIM,
            via=CHILD,
            address="far:1",
            ticket=TICKET,
            lease_ns=LEASE_NS,
            tdv=tdv(),
            requirement="",
            answered_at=rig.now,
            places=2,
            search=rig.state.origin.claims[CLAIM].row.search,
        )
    )
    rows = [action.row for action in (first, second) if isinstance(action, Store)]
    assert [(row.id.member, row.attempt, row.claim) for row in rows if isinstance(row, TaskRow)] == [
        (1, 1, CLAIM),
        (2, 1, CLAIM),
    ]
    message = message_in((transfer,), TaskTransfer)
    assert (message.claim, message.ticket) == (CLAIM, TICKET)
    assert [task.attempt for task in message.tasks] == [attempt(member=1), attempt(member=2)]


def test_no_more_tasks_are_bound_than_the_window_allows_and_the_rest_follow(rig: Rig) -> None:
    ask = search(rig, members=5)
    rig.hear(CHILD, accept(ask.id, places=3, window=2))
    assert len(rig.state.origin.claims[CLAIM].bound) == 2
    actions = rig.hear(CHILD, statuses(status(attempt(member=1)), window=2))
    assert [task.attempt.task.member for task in message_in(actions, TaskTransfer).tasks] == [3]


def test_a_large_window_is_filled_only_as_fast_as_results_are_taken(rig: Rig) -> None:
    ask = search(rig, members=100)
    rig.hear(CHILD, accept(ask.id, places=1, window=1_280))
    claim = rig.state.origin.claims[CLAIM]
    bound = []
    for _ in range(4):
        bound.append(len(claim.bound))
        rig.hear(CHILD, statuses(*(status(each) for each in tuple(claim.bound)), window=1_280))
    assert bound == [1, 2, 4, 8]


def test_attempts_that_an_executor_loses_do_not_widen_its_window(rig: Rig) -> None:
    ask = search(rig, members=100)
    rig.hear(CHILD, accept(ask.id, places=2, window=1_280))
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.REVOKED, cause=Cause.LOST), window=1_280))
    assert len(rig.state.origin.claims[CLAIM].bound) == 1


def test_a_result_costs_the_same_however_many_other_claims_its_shape_has(module: ModuleFactory) -> None:
    assert _calls_for_a_result(module(), claims=200) == _calls_for_a_result(module(), claims=20)


def _calls_for_a_result(rig: Rig, claims: int) -> int:
    """Count the calls that it takes to hear of one result while all claims are full and tasks wait."""
    rig.greet(CHILD)
    rig.see(CHILD)
    ask = search(rig, members=2 * claims)
    held = [CLAIM._replace(number=number) for number in range(1, claims + 1)]
    for claim in held:
        rig.hear(CHILD, accept(ask.id, claim=claim))
    result = ControlReceived(sender=CHILD, message=statuses(status(attempt(member=1)), claim=held[0], window=1))
    calls = []
    sys.setprofile(lambda _frame, event, _what: calls.append(event))
    try:
        actions = rig.module.handle(result, rig.now)
    finally:
        sys.setprofile(None)
    assert [task.attempt.task.member for task in message_in(actions, TaskTransfer).tasks] == [claims + 1]
    return calls.count("call")


def test_no_window_takes_all_tasks_of_a_large_array(rig: Rig) -> None:
    ask = search(rig, members=5_000)
    assert ask.count == 1_024
    rig.hear(CHILD, accept(ask.id, places=1_024, window=1 << 40))
    first = [status(attempt(member=member)) for member in range(1, 1_025)]
    rig.hear(CHILD, statuses(*first, window=1 << 40))
    assert len(rig.state.origin.claims[CLAIM].bound) == 1_280


def test_a_transfer_is_of_bounded_size(rig: Rig) -> None:
    ask = search(rig, members=6, command=Command(argv=("x" * 100_000,)))
    actions = rig.hear(CHILD, accept(ask.id, places=6))
    assert [len(message.tasks) for _, message in sent(actions, TaskTransfer)] == [2, 2, 2]


def test_tasks_with_equal_needs_share_a_search_and_others_have_their_own(rig: Rig) -> None:
    search(rig)
    assert sent(rig.submit(key=ClientKey("2")), SchedRequest) == ()
    assert len(sent(rig.submit(key=ClientKey("3"), requirement="$speed > 0"), SchedRequest)) == 1


def test_a_task_that_is_tried_again_takes_a_place_in_any_claim_that_has_room(rig: Rig) -> None:
    ask = search(rig, members=3)
    roomy = CLAIM._replace(executor=SystemId("roomy"), number=2)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, accept(ask.id, claim=roomy, places=2))
    rig.hear(CHILD, statuses(status(attempt(member=2)), claim=roomy, window=2))
    actions = rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.REVOKED, cause=Cause.LOST)))
    transfer = message_in(actions, TaskTransfer)
    assert (transfer.claim, [task.attempt for task in transfer.tasks]) == (roomy, [attempt(2, member=1)])


def test_a_claim_that_got_no_task_ends_when_the_last_one_is_bound_elsewhere(rig: Rig) -> None:
    ask = search(rig, members=2)
    full = CLAIM._replace(number=2)
    rig.hear(CHILD, accept(ask.id, claim=full, window=0))
    rig.hear(CHILD, accept(ask.id, window=2))
    actions = rig.hear(CHILD, statuses(status(attempt(member=1)), window=2))
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=full)),)


def test_a_claim_without_tasks_ends(rig: Rig) -> None:
    ask = search(rig)
    rig.hear(CHILD, accept(ask.id))
    actions = rig.hear(CHILD, statuses(status(attempt())))
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    assert Forget(key=(RowKind.HELD_CLAIM, CLAIM)) in actions
    rig.wait(2 * SECOND)
    assert not (rig.state.origin.shapes)
    assert not (rig.state.origin.shapes_by_number)


def test_places_for_tasks_that_were_cancelled_meanwhile_are_given_back(rig: Rig) -> None:
    ask = search(rig)
    rig.state.origin.shapes_by_number[1].waiting.clear()
    rig.state.origin.shapes_by_number[1].count = 0
    rig.state.origin.waiting = 0
    rig.state.origin.submissions.clear()
    assert rig.hear(CHILD, accept(ask.id))[-1] == SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM))


def test_what_nobody_takes_waits_and_says_why(rig: Rig) -> None:
    actions = deny_all(rig, rig.submit())
    (decision,) = only(actions, Decision)
    assert (decision.what, decision.task) == ("sched_deny", "1 waiting")
    (shape,) = rig.state.origin.shapes.values()
    assert [reason.code for reason in shape.reasons] == ["no_class"]


def test_rounds_follow_at_doubling_delays_with_jitter_up_to_five_minutes(rig: Rig) -> None:
    rig.see(CHILD, EMPTY)
    deny_all(rig, rig.submit())
    asked_at: list[int] = []
    start = rig.now
    while rig.now - start < 60 * MINUTE:
        deadline = rig.module.next_deadline()
        assert deadline is not None
        actions = rig.wait(max(0, deadline - rig.now))
        for system in (SIBLING, PARENT):
            rig.see(system)
        if sent(actions, SchedRequest):
            asked_at.append(rig.now)
            deny_all(rig, actions)
    delays = [later - earlier for earlier, later in zip([start, *asked_at], asked_at, strict=False)]
    for number, delay in enumerate(delays):
        nominal = min(2**number * SECOND, 5 * MINUTE)
        assert 0.75 * nominal <= delay <= 1.25 * nominal + 1
    assert len(delays) > 12
    assert len({delay / min(2**number, 300) for number, delay in enumerate(delays)}) > 1


def test_a_round_starts_at_once_when_a_view_newly_could_hold_the_task(rig: Rig) -> None:
    rig.see(CHILD, view(free_slots=0))
    deny_all(rig, rig.submit())
    rig.see(CHILD, view(free_slots=0, load=3))
    assert rig.state.origin.requests == {}
    rig.see(CHILD, view(free_slots=1))
    assert len(rig.state.origin.requests) == 1


def test_a_round_starts_at_once_when_the_own_machine_newly_could_hold_the_task(rig: Rig) -> None:
    deny_all(rig, rig.submit())
    rig.handle(Measured(sdv=sdv()))
    rig.wait(SECOND // 10)
    assert rig.state.origin.tasks[TASK].executed_on == ME


def test_a_view_that_could_hold_the_task_before_starts_no_round(rig: Rig) -> None:
    deny_all(rig, rig.submit())
    rig.see(CHILD, view(free_slots=3))
    assert rig.state.origin.requests == {}


def test_a_task_that_does_not_wait_is_denied_with_the_reasons_and_the_links_that_are_down(rig: Rig) -> None:
    actions = deny_all(rig, rig.submit(waits=False))
    (row,) = [action.row for action in only(actions, Store) if isinstance(action.row, TaskRow)]
    found = [(reason.module, reason.code) for reason in row.reasons]
    assert (row.state, found) == ("denied", [(ME, DenyCode.NO_CLASS), (OTHER_CHILD, DenyCode.UNREACHABLE)])
    assert TaskEnded(task=TASK) in actions
    assert rig.state.origin.submissions == {}


def test_a_task_that_does_not_wait_is_denied_also_when_there_was_nobody_to_ask(module: ModuleFactory) -> None:
    rig = module()
    assert ended(rig.submit(waits=False)) == [(0, "denied")]


def test_a_module_with_a_full_disk_searches_again_as_soon_as_it_has_room(rig: Rig) -> None:
    ask = search(rig)
    rig.handle(StoreChanged(has_space=False))
    deny_all(rig, (SendControl(to=CHILD, message=ask),))
    assert sent(rig.wait(2 * SECOND), SchedRequest) == ()
    assert len(sent(rig.handle(StoreChanged(has_space=True)), SchedRequest)) == 1


def test_a_full_disk_at_home_does_not_bind_and_refuse_for_ever(rig: Rig) -> None:
    rig.measure(slots=1)
    rig.submit(members=3)
    (running,) = rig.state.executor.attempts
    rig.handle(StoreChanged(has_space=False))
    rig.end(AttemptEnded(attempt=running, exit_code=0))
    assert max(row.attempt for row in rig.state.origin.tasks.values()) == 1
    (shape,) = rig.state.origin.shapes.values()
    assert shape.count == 2


@pytest.mark.parametrize(("outcome", "cause"), [(TaskState.REVOKED, Cause.REVOKED), (TaskState.DENIED, Cause.REFUSED)])
def test_a_neighbor_that_takes_and_revokes_tasks_again_and_again_is_asked_ever_more_rarely(
    rig: Rig, outcome: TaskState, cause: Cause
) -> None:
    for system in (SIBLING, PARENT):
        rig.see(system, EMPTY)
    actions, claims = rig.submit(), 0
    start = rig.now
    while rig.now - start < 10 * SECOND:
        for _, ask in sent(actions, SchedRequest):
            claims += 1
            name = CLAIM._replace(number=claims)
            bound = message_in(rig.hear(CHILD, accept(ask.id, claim=name)), TaskTransfer).tasks[0].attempt
            rig.hear(CHILD, statuses(status(bound, outcome, cause=cause), claim=name))
        rig.see(CHILD)
        actions = rig.wait(SECOND // 4)
    assert 2 < claims < 7
    assert rig.state.origin.tasks[TASK].attempt == claims


def test_the_life_of_a_task_keeps_only_its_latest_steps(rig: Rig, policy: ScriptedPolicy) -> None:
    # An update every two seconds would cost more than all the rest.
    policy.timeouts = replace(policy.timeouts, update_period_ns=HOUR)
    for system in (SIBLING, PARENT):
        rig.see(system, EMPTY)
    actions = rig.submit()
    for number in range(1, 150):
        while not sent(actions, SchedRequest):
            rig.see(CHILD)
            actions = rig.wait(4 * SECOND)
        # One machine that did so again and again would be avoided.
        name = CLAIM._replace(executor=SystemId(f"m{number}"), number=number)
        rig.hear(CHILD, accept(message_in(actions, SchedRequest).id, claim=name))
        actions = rig.hear(CHILD, statuses(status(attempt(number), TaskState.REVOKED, cause=Cause.REVOKED), claim=name))
    row = rig.state.origin.tasks[TASK]
    assert len(row.history) == 100
    assert (row.history[-1].event, row.history[-1].attempt) == ("revoked", 149)


def test_a_neighbor_through_which_a_task_was_lost_is_asked_last_for_a_minute(rig: Rig) -> None:
    ask = search(rig)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.LOST)))
    actions = rig.wait(2 * SECOND)
    assert sent(actions, SchedRequest)[0][0] == SIBLING


def test_outputs_come_home_through_the_address_and_ticket_of_the_claim(rig: Rig) -> None:
    ask = search(rig)
    rig.hear(CHILD, accept(ask.id))
    outputs = (Output(name="stdout", size_bytes=5),)
    (fetch,) = only(rig.hear(CHILD, statuses(status(attempt(), outputs=outputs))), FetchOutputs)
    assert fetch == FetchOutputs(attempt=attempt(), claim=CLAIM, leg=LEG, outputs=outputs)
