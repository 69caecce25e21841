"""A drained module takes no new work, says why, and reports no machine; what runs continues until a deadline."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Answer, EndAttempt, Forget, SendControl, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, DrainRequested, LinkDown, RevokeRequested, TransferReceived
from messiahs.core.interface.membership_rows import DrainRow
from messiahs.core.interface.messages import (
    ClaimEnd,
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskAccept,
    TaskDeny,
    TaskRequest,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, after
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    deny,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    transfer,
)

ASKED = AnswerTo(9)
NEXT = SearchId(b"n" * 16)


def drain(rig: Rig, *, is_on: bool = True, deadline_ns: int | None = None) -> tuple[Action, ...]:
    """Let the administrator drain the module, or end that."""
    return rig.handle(DrainRequested(answer_to=ASKED, is_on=is_on, deadline_ns=deadline_ns, text="new disks"))


def run_one(rig: Rig) -> SchedAccept:
    """Let an attempt of the parent's side run here."""
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    return granted


def test_requests_of_neighbors_are_denied_with_the_reason_and_nothing_new_passes(rig: Rig) -> None:
    rig.measure()
    actions = drain(rig)
    assert Store(row=DrainRow(since=rig.now, text="new disks")) in actions
    assert actions[-1] == Answer(answer_to=ASKED)
    ((to, denied),) = sent(rig.hear(PARENT, request(2, count=8)), SchedDeny)
    (reason,) = denied.reasons
    assert (to, reason.code, reason.text) == (PARENT, DenyCode.DRAINING, "this module is drained: new disks")


def test_the_own_machine_is_in_no_vector_and_those_behind_still_are(rig: Rig) -> None:
    rig.measure()
    assert queries.own_sums(rig.state).up.machines == 2
    drain(rig)
    rig.wait(SECOND // 10)
    assert queries.own_sums(rig.state).up.machines == 1
    assert rig.state.updates.up.machines == 1
    drain(rig, is_on=False)
    rig.wait(SECOND // 10)
    assert queries.own_sums(rig.state).up.machines == 2


def test_own_users_tasks_are_placed_elsewhere_and_without_a_place_they_learn_why(rig: Rig) -> None:
    rig.measure()
    drain(rig)
    actions = rig.submit()
    asks = 0
    while asked := sent(actions, SchedRequest):
        asks += 1
        actions = rig.hear(asked[0][0], deny(asked[0][1].id))
    assert asks == 3
    (shape,) = rig.state.origin.shapes.values()
    assert [(each.code, each.text) for each in shape.reasons] == [
        (DenyCode.DRAINING, "this module is drained: new disks")
    ]


def test_a_module_that_nobody_else_can_replace_says_that_it_is_drained() -> None:
    alone = Rig(make_module(neighbors=()))
    alone.resume()
    alone.measure()
    drain(alone)
    alone.submit()
    (shape,) = alone.state.origin.shapes.values()
    assert [each.code for each in shape.reasons] == [DenyCode.DRAINING]
    drain(alone, is_on=False)
    assert [claim.row.via for claim in alone.state.origin.claims.values()] == [alone.state.system]


def test_what_runs_continues_and_its_claim_takes_no_more_tasks(rig: Rig) -> None:
    granted = run_one(rig)
    actions = drain(rig)
    assert SendControl(to=PARENT, message=ClaimEnd(claim=granted.claim)) in actions
    assert only(actions, EndAttempt) == ()
    rig.wait(MINUTE)
    left = queries.remaining(rig.state)
    assert (left.granted, left.attempts, left.is_empty) == (1, 1, False)
    rig.end(AttemptEnded(attempt=remote(), exit_code=0))
    rig.hear(PARENT, ClaimEnd(claim=granted.claim))
    assert queries.remaining(rig.state).is_empty


def test_claims_that_pass_take_no_more_tasks_either(rig: Rig) -> None:
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    assert SendControl(to=PARENT, message=ClaimEnd(claim=CLAIM)) in drain(rig)
    assert queries.remaining(rig.state).passed == 1


def test_at_the_deadline_what_still_runs_is_revoked_with_the_reason(rig: Rig) -> None:
    run_one(rig)
    drain(rig, deadline_ns=MINUTE)
    assert only(rig.wait(MINUTE - SECOND), EndAttempt) == ()
    actions = rig.wait(2 * SECOND)
    assert [each.attempt for each in only(actions, EndAttempt)] == [remote()]
    assert [revoke.attempts for _, revoke in sent(actions, TaskRevoke)] in ([], [(remote(),)])
    assert only(rig.wait(4 * SECOND), EndAttempt) == ()


def test_a_claim_that_its_origin_keeps_without_a_task_ends_a_while_after_the_deadline(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    drain(rig, deadline_ns=SECOND)
    rig.wait(30 * SECOND)
    assert queries.remaining(rig.state).granted == 1
    ended = rig.wait(20 * SECOND)
    assert (PARENT, ClaimEnd(claim=granted.claim, is_forgotten=True)) in sent(ended, ClaimEnd)
    assert queries.remaining(rig.state).is_empty
    late = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    assert only(late, StartAttempt) == ()
    asked = TaskStatusQuery(claim=granted.claim, attempts=(remote(),))
    (lost,) = message_in(rig.hear(PARENT, asked), TaskStatus).attempts
    assert lost.state is TaskState.REVOKED


def test_results_that_nobody_takes_hold_a_drain_for_a_day(rig: Rig) -> None:
    run_one(rig)
    drain(rig, deadline_ns=SECOND)
    rig.end(AttemptEnded(attempt=remote(), exit_code=0))
    with rig.checked_at_the_end():
        rig.wait(23 * HOUR)
    assert queries.remaining(rig.state).granted == 1
    with rig.checked_at_the_end():
        rig.wait(2 * HOUR)
    assert queries.remaining(rig.state).is_empty


@pytest.mark.parametrize("silent", [PARENT, CHILD])
def test_after_the_deadline_claims_that_pass_to_a_silent_neighbor_are_forgotten_with_their_lease(
    rig: Rig, silent: SystemId
) -> None:
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    drain(rig, deadline_ns=SECOND)
    rig.wait(LEASE_NS)
    assert queries.remaining(rig.state).passed == 1
    rig.handle(LinkDown(neighbor=silent))
    rig.wait(LEASE_NS - SECOND)
    assert queries.remaining(rig.state).passed == 1
    told = rig.wait(MINUTE)
    assert [to for to, _ in sent(told, ClaimEnd)] == [PARENT if silent == CHILD else CHILD]
    assert queries.remaining(rig.state).is_empty


def test_a_deadline_that_is_taken_back_ends_nothing(rig: Rig) -> None:
    run_one(rig)
    drain(rig, deadline_ns=MINUTE)
    drain(rig)
    assert only(rig.wait(2 * MINUTE), EndAttempt) == ()


def test_own_waiting_tasks_may_still_go_to_those_who_ask_and_requests_for_tasks_do_not_pass(rig: Rig) -> None:
    wanted = TaskRequest(
        id=MessageId(1), search=NEXT, requester=CHILD, wanting="", count=1, hops_left=9, asks_left=9,
        remaining_ns=9 * SECOND,
    )  # fmt: skip
    drain(rig)
    rig.greet(OTHER_CHILD)
    actions = rig.hear(CHILD, wanted)
    assert sent(actions, TaskRequest) == ()
    assert sent(actions, TaskAccept) == ()
    assert [to for to, _ in sent(actions, TaskDeny)] == [CHILD]


def test_it_stays_drained_after_a_restart_and_keeps_its_deadline(rig: Rig) -> None:
    rig.measure()
    asked = rig.hear(PARENT, request())
    actions = drain(rig, deadline_ns=HOUR)
    row = next(each.row for each in only(actions, Store) if isinstance(each.row, DrainRow))
    assert row == DrainRow(since=rig.now, deadline=after(rig.now, HOUR), text="new disks")
    again = Rig(make_module())
    again.resume(Remains(rows=(*(each.row for each in only(asked, Store)), row)))
    assert queries.drain_of(again.state) == row
    again.greet(SIBLING)
    assert [each.reasons[0].code for _, each in sent(again.hear(SIBLING, request(3)), SchedDeny)] == [DenyCode.DRAINING]


def test_undrained_it_takes_tasks_like_those_that_the_drain_has_revoked(rig: Rig) -> None:
    run_one(rig)
    drain(rig, deadline_ns=0)
    rig.wait(SECOND)
    rig.handle(AttemptEnded(attempt=remote(), signal=15, cause=Cause.REVOKED))
    drain(rig, is_on=False)
    assert message_in(rig.hear(PARENT, request(3, search=NEXT)), SchedAccept).places == 1


def test_a_drain_does_not_end_the_bar_of_tasks_that_were_revoked_by_hand(rig: Rig) -> None:
    run_one(rig)
    rig.handle(RevokeRequested(answer_to=ASKED, attempts=(remote(),)))
    rig.handle(AttemptEnded(attempt=remote(), signal=15, cause=Cause.VACATED))
    drain(rig)
    drain(rig, is_on=False)
    assert sent(rig.hear(PARENT, request(3, search=NEXT)), SchedAccept) == ()


def test_undrained_it_takes_work_again(rig: Rig) -> None:
    rig.measure()
    drain(rig)
    assert Forget(key=(RowKind.DRAIN, None)) in drain(rig, is_on=False)
    assert drain(rig, is_on=False) == (Answer(answer_to=ASKED),)
    assert message_in(rig.hear(PARENT, request()), SchedAccept).places == 1
