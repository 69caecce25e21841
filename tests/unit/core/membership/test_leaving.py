"""The link with a neighbor ends for good when its claims have ended, on both sides; by force it ends at once."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import (
    Action,
    Answer,
    Decision,
    DropLink,
    EndAttempt,
    Forget,
    SendControl,
    SendVector,
    Store,
    Unlink,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import (
    AnswerTo,
    LeaveRequested,
    LinkDown,
    LinkUp,
    MemberRemoved,
    ShutOffRequested,
    TransferReceived,
)
from messiahs.core.interface.ledger_messages import ClaimUsage, UsageReport, UsageReportAck
from messiahs.core.interface.membership_messages import Leave
from messiahs.core.interface.membership_rows import RemovedRow
from messiahs.core.interface.messages import (
    ClaimEnd,
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskState,
    TaskStatusAck,
)
from messiahs.core.interface.rows import Row, RowKind, key_of
from messiahs.core.model.ids import ClaimId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.recovery import Remains
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    STRANGER,
    Rig,
    accept,
    attempt,
    deny,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

ASKED = AnswerTo(9)
DONE = Leave(text="moved away", is_done=True)


def remove(rig: Rig, system: SystemId, *, is_forced: bool = False) -> tuple[Action, ...]:
    """Let the administrator remove a neighbor."""
    return rig.handle(MemberRemoved(answer_to=ASKED, system=system, is_forced=is_forced, text="moved away"))


def stored(*batches: tuple[Action, ...]) -> tuple[Row, ...]:
    """Return the rows that are left after some actions."""
    rows = {}
    for action in (action for batch in batches for action in batch):
        if isinstance(action, Store):
            rows[key_of(action.row)] = action.row
        elif isinstance(action, Forget):
            rows.pop(action.key, None)
    return tuple(rows.values())


def final(claim: ClaimId) -> UsageReport:
    """Return the final sum of a claim whose tasks have used nothing."""
    return UsageReport(usages=(ClaimUsage(claim=claim, processor_ns=0, is_final=True),))


def grant_to(rig: Rig, asker: SystemId) -> SchedAccept:
    """Let a neighbor hold a claim here, in which one attempt runs."""
    rig.measure()
    granted = message_in(rig.hear(asker, request()), SchedAccept)
    rig.handle(TransferReceived(sender=asker, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    return granted


def test_a_neighbor_without_claims_is_told_and_unlinked_when_it_is_done_too(rig: Rig) -> None:
    actions = remove(rig, CHILD)
    assert [leave for _, leave in sent(actions, Leave)] == [Leave(text="moved away"), DONE]
    assert actions[-1] == Answer(answer_to=ASKED)
    assert only(actions, Unlink) == ()
    ended = rig.hear(CHILD, Leave(is_done=True))
    assert Unlink(neighbor=CHILD, text="moved away") in ended
    assert CHILD not in queries.neighbors_of(rig.state)
    row = RemovedRow(system=CHILD, since=rig.now, text="moved away", is_ended=True)
    assert queries.removed_from(rig.state) == {CHILD: row}
    (again,) = only(rig.handle(LinkUp(neighbor=CHILD)), DropLink)
    assert again.text == "child is no neighbor of me"


def test_the_one_that_is_told_does_the_same(rig: Rig) -> None:
    actions = rig.hear(PARENT, DONE)
    assert [leave.is_done for to, leave in sent(actions, Leave) if to == PARENT] == [False, True]
    assert Unlink(neighbor=PARENT, text="parent has ended the link: moved away") in actions
    assert queries.removed_from(rig.state)[PARENT].is_ended
    assert PARENT not in queries.neighbors_of(rig.state)


def test_its_attempts_go_on_and_the_link_lasts_until_its_claim_has_ended(rig: Rig) -> None:
    granted = grant_to(rig, PARENT)
    actions = remove(rig, PARENT)
    assert SendControl(to=PARENT, message=ClaimEnd(claim=granted.claim)) in actions
    assert only(actions, EndAttempt) == ()
    assert not any(leave.is_done for to, leave in sent(actions, Leave) if to == PARENT)
    rig.wait(20 * SECOND)
    left = queries.remaining_with(rig.state, PARENT)
    assert (left.granted, left.attempts, left.is_empty) == (1, 1, False)
    assert sent(rig.hear(PARENT, ClaimEnd(claim=granted.claim)), Leave) == ()
    assert sent(rig.handle(AttemptEnded(attempt=remote(), ran_ns=SECOND)), Leave) == ()
    ended = rig.hear(PARENT, UsageReportAck(claims=(granted.claim,)))
    assert (PARENT, DONE) in sent(ended, Leave)


def test_it_is_in_no_sum_gets_no_vector_and_is_asked_for_nothing(rig: Rig) -> None:
    grant_to(rig, CHILD)
    remove(rig, CHILD)
    rig.see(CHILD)
    assert queries.neighbor_view(rig.state, rig.state.neighbors[CHILD], rig.now) is None
    assert queries.own_sums(rig.state).up.machines == 1
    assert rig.hear(CHILD, SystemStatusQuery()) == ()
    vectors = [each.to for each in only(rig.wait(10 * SECOND), SendVector)]
    assert CHILD not in vectors
    assert PARENT in vectors
    asked = [to for to, _ in sent(rig.submit(members=9), SchedRequest)]
    assert CHILD not in asked
    (refused,) = sent(rig.hear(CHILD, request(2, search=SearchId(b"z" * 16))), SchedDeny)
    assert refused[1].reasons[0].code is DenyCode.DRAINING


def test_searches_that_are_open_with_it_are_dropped_or_go_on_elsewhere(rig: Rig) -> None:
    rig.greet(OTHER_CHILD)
    rig.see(CHILD)
    rig.see(OTHER_CHILD)
    ((asked, _),) = sent(rig.hear(PARENT, request()), SchedRequest)
    ((other, _),) = sent(remove(rig, asked), SchedRequest)
    assert {asked, other} == {CHILD, OTHER_CHILD}
    remove(rig, PARENT)
    assert rig.state.hop.searches == {}


@pytest.mark.parametrize("removed", [PARENT, CHILD])
def test_the_origin_of_a_claim_that_passes_binds_no_more_tasks_to_it(rig: Rig, removed: SystemId) -> None:
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    actions = remove(rig, removed)
    assert SendControl(to=PARENT, message=ClaimEnd(claim=CLAIM)) in actions
    assert CLAIM in rig.state.hop.passed
    # It is repeated, because a message may be lost with its connection.
    rig.handle(LinkDown(neighbor=PARENT))
    assert SendControl(to=PARENT, message=ClaimEnd(claim=CLAIM)) in rig.greet(PARENT)
    assert sent(rig.hear(PARENT, ClaimEnd(claim=CLAIM)), Leave) == ()
    ended = (*rig.hear(CHILD, final(CLAIM)), *rig.hear(PARENT, UsageReportAck(claims=(CLAIM,))))
    assert (removed, True) in [(to, leave.is_done) for to, leave in sent(ended, Leave)]


def test_own_tasks_beyond_it_end_there_and_no_more_are_bound(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(members=3), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.EXECUTING)))
    remove(rig, CHILD)
    ended = rig.hear(CHILD, statuses(status(attempt(member=1))))
    assert message_in(ended, TaskStatusAck).taken == (attempt(member=1),)
    assert [to for to, end in sent(ended, ClaimEnd)] == [CHILD]
    assert sent(ended, Leave) == ()
    assert (CHILD, DONE) in sent(rig.hear(CHILD, final(CLAIM)), Leave)


@pytest.mark.parametrize("chatter", [False, True])
def test_a_neighbor_that_states_no_final_sum_gains_no_time(rig: Rig, *, chatter: bool) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    remove(rig, CHILD)
    rig.hear(CHILD, statuses(status(attempt())))
    done: list[tuple[SystemId, Leave]] = []
    for second in range(9):
        done += sent(rig.wait(SECOND), Leave)
        assert done == ([(CHILD, DONE)] if second >= 4 else []), second
        if chatter:
            rig.hear(CHILD, UsageReport(usages=(ClaimUsage(claim=CLAIM, processor_ns=second),)))
    (decision,) = [each for each in only(rig.wait(SECOND), Decision) if each.what == "neighbor_removed"]
    assert decision.text == "moved away; 1 claim without an agreed final sum: the accounts of both ends may differ"
    assert CHILD not in rig.state.neighbors


def test_a_neighbor_that_connects_again_and_again_without_a_final_sum_is_told_at_once_and_waited_for_a_minute(
    rig: Rig,
) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    remove(rig, CHILD)
    rig.hear(CHILD, statuses(status(attempt())))
    for turn in range(12):
        rig.handle(LinkDown(neighbor=CHILD))
        rig.wait(4 * SECOND)
        said = [leave.is_done for _, leave in sent(rig.greet(CHILD), Leave)]
        assert said == ([False, True] if turn else [False])
    rig.handle(LinkDown(neighbor=CHILD))
    assert Unlink(neighbor=CHILD, text="moved away") in rig.wait(13 * SECOND)


def test_by_force_no_final_sum_is_awaited(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    remove(rig, CHILD)
    assert sent(rig.hear(CHILD, statuses(status(attempt()))), Leave) == ()
    assert (CHILD, DONE) in sent(remove(rig, CHILD, is_forced=True), Leave)


def test_by_force_its_claims_end_at_once_and_own_tasks_wait_for_their_leases(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert (CHILD, DONE) in sent(remove(rig, CHILD, is_forced=True), Leave)
    assert Unlink(neighbor=CHILD, text="moved away") in rig.hear(CHILD, Leave(is_done=True))
    (row,) = rig.state.origin.tasks.values()
    assert (row.state, row.claim) == (TaskState.EXECUTING, CLAIM)
    rig.wait(2 * LEASE_NS)
    (row,) = rig.state.origin.tasks.values()
    assert (row.claim, row.history[-1].event) == (None, "lost")


def test_by_force_its_attempts_end_here_at_once(rig: Rig) -> None:
    granted = grant_to(rig, PARENT)
    remove(rig, PARENT)
    actions = remove(rig, PARENT, is_forced=True)
    assert [each.attempt for each in only(actions, EndAttempt)] == [remote()]
    assert Forget(key=(RowKind.GRANTED_CLAIM, granted.claim)) in actions
    assert (PARENT, DONE) in sent(actions, Leave)


def test_what_a_neighbor_that_is_done_has_not_ended_is_closed(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert only(rig.hear(CHILD, DONE), Unlink) == (Unlink(neighbor=CHILD, text="child has ended the link: moved away"),)
    assert rig.state.origin.claims[CLAIM].row.is_cut_off


def test_a_neighbor_that_does_not_answer_is_waited_for_ten_seconds(rig: Rig) -> None:
    remove(rig, CHILD)
    rig.wait(9 * SECOND)
    assert CHILD in rig.state.neighbors
    assert Unlink(neighbor=CHILD, text="moved away") in rig.wait(2 * SECOND)


def test_by_force_nobody_is_waited_for_who_is_not_connected(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    rig.handle(LinkDown(neighbor=CHILD))
    assert Unlink(neighbor=CHILD, text="moved away") in remove(rig, CHILD, is_forced=True)
    assert CHILD not in rig.state.neighbors


def test_a_neighbor_that_was_killed_before_it_stored_the_end_learns_it_when_it_returns(rig: Rig) -> None:
    remove(rig, CHILD)
    assert not only(rig.handle(LinkDown(neighbor=CHILD)), Unlink)
    assert not only(rig.wait(30 * SECOND), Unlink)
    assert DONE in [leave for _, leave in sent(rig.greet(CHILD), Leave)]
    rig.handle(LinkDown(neighbor=CHILD))
    assert Unlink(neighbor=CHILD, text="moved away") in rig.wait(61 * SECOND)


def test_a_neighbor_that_connects_again_and_again_without_an_answer_is_waited_for_a_minute(rig: Rig) -> None:
    remove(rig, CHILD)
    for _ in range(12):
        rig.handle(LinkDown(neighbor=CHILD))
        assert [leave for _, leave in sent(rig.greet(CHILD), Leave)] == [Leave(text="moved away"), DONE]
        rig.wait(4 * SECOND)
    rig.handle(LinkDown(neighbor=CHILD))
    assert Unlink(neighbor=CHILD, text="moved away") in rig.wait(20 * SECOND)


def test_a_neighbor_that_is_not_connected_learns_it_when_it_is(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=CHILD))
    assert sent(remove(rig, CHILD), Leave) == ()
    assert DONE in [leave for _, leave in sent(rig.greet(CHILD), Leave)]


def test_a_neighbor_that_is_shut_off_is_removed_at_once(rig: Rig) -> None:
    rig.handle(ShutOffRequested(answer_to=ASKED, neighbor=CHILD))
    assert Unlink(neighbor=CHILD, text="moved away") in remove(rig, CHILD)
    assert queries.summary_of(rig.state).shut_off.keys() == {CHILD}


def test_the_link_still_ends_after_a_restart(rig: Rig) -> None:
    rig.measure()
    asked = rig.hear(PARENT, request())
    granted = message_in(asked, SchedAccept)
    again = Rig(make_module())
    again.resume(Remains(rows=stored(asked, remove(rig, PARENT))))
    assert again.state.membership.is_leaving(PARENT)
    assert again.state.executor.claims[granted.claim].is_ending
    assert (PARENT, Leave(text="moved away")) in sent(again.greet(PARENT), Leave)
    again.hear(PARENT, ClaimEnd(claim=granted.claim))
    assert only(again.hear(PARENT, DONE), Unlink) != ()


def test_a_removed_neighbor_of_the_file_stays_away_after_a_restart(rig: Rig) -> None:
    rows = stored(remove(rig, CHILD), rig.hear(CHILD, DONE))
    again = Rig(make_module())
    assert Unlink(neighbor=CHILD, text="moved away") in again.resume(Remains(rows=rows))
    assert CHILD not in again.state.neighbors


def test_a_module_leaves_its_parent_and_the_siblings_that_share_it(rig: Rig) -> None:
    actions = rig.handle(LeaveRequested(answer_to=ASKED, parent=PARENT, text="moved away"))
    assert {to for to, _ in sent(actions, Leave)} == {PARENT, SIBLING}
    assert [actions[-1], *only(actions, Answer)] == [Answer(answer_to=ASKED)] * 2
    rig.hear(PARENT, DONE)
    rig.hear(SIBLING, DONE)
    assert set(rig.state.neighbors) == {CHILD, OTHER_CHILD}


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (MemberRemoved(answer_to=ASKED, system=STRANGER), "stranger is no neighbor of me"),
        (LeaveRequested(answer_to=ASKED, parent=CHILD), "child is no parent of me"),
        (LeaveRequested(answer_to=ASKED, parent=STRANGER), "stranger is no parent of me"),
    ],
)
def test_only_neighbors_are_removed_and_only_parents_are_left(
    rig: Rig, event: MemberRemoved | LeaveRequested, problem: str
) -> None:
    assert rig.handle(event) == (Answer(answer_to=ASKED, problem=problem),)


def test_the_denial_of_a_neighbor_that_was_removed_meanwhile_stays_behind_the_name(module: ModuleFactory) -> None:
    hop = module(policy=ScriptedPolicy(names={PARENT: "site-7"}))
    hop.greet(CHILD, OTHER_CHILD, PARENT)
    hop.see(CHILD)
    hop.see(OTHER_CHILD)
    ((asked, ask),) = sent(hop.hear(PARENT, request()), SchedRequest)
    reason = Reason(module=asked, code=DenyCode.REFUSED_BY_POLICY, text="not for you")
    ((other, next_ask),) = sent(hop.hear(asked, replace(deny(ask.id), reasons=(reason,))), SchedRequest)
    remove(hop, asked)
    hop.hear(asked, DONE)
    assert asked not in hop.state.neighbors
    ((_, denied),) = sent(hop.hear(other, deny(next_ask.id)), SchedDeny)
    assert {each.module for each in (denied.reasons[0], *denied.reasons[0].hops)} == {"site-7"}
    assert "not for you" not in str(denied)
