"""An announced drain: until it begins the machine takes what ends before, and then it is drained."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Answer, EndAttempt, Forget, SendControl, Store
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.events import AnswerTo, DrainRequested, TransferReceived
from messiahs.core.interface.membership_rows import DrainRow
from messiahs.core.interface.messages import ClaimEnd, DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant, after
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    PARENT,
    SIBLING,
    Rig,
    deny,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
)

ASKED = AnswerTo(9)


def announce(rig: Rig, *, in_ns: int = HOUR, deadline_ns: int | None = None) -> tuple[Action, ...]:
    """Let the administrator announce that the machine will be away."""
    begins = after(rig.now, in_ns)
    return rig.handle(DrainRequested(answer_to=ASKED, deadline_ns=deadline_ns, text="new disks", begins=begins))


def reason_for(rig: Rig, number: int, **stated: int) -> Reason | None:
    """Return why a task of the sibling gets no place; None if it gets one."""
    actions = rig.hear(SIBLING, request(number, search=SearchId(bytes([number]) * 16), tdv=tdv(**stated)))
    if sent(actions, SchedAccept):
        return None
    while forwarded := sent(actions, SchedRequest):
        ((neighbor, asked),) = forwarded
        actions = rig.hear(neighbor, deny(asked.id))
    return message_in(actions, SchedDeny).reasons[0]


@pytest.fixture
def announced(rig: Rig) -> Rig:
    rig.measure(free_slots=4)
    rig.greet(SIBLING)
    announce(rig)
    return rig


def test_a_task_is_taken_only_if_it_ends_before(announced: Rig) -> None:
    assert reason_for(announced, 1, est_time=50 * 60) is None
    late = reason_for(announced, 2, est_time=60 * 60)
    assert late is not None
    assert late.code is DenyCode.DRAINING
    assert "this machine is away for maintenance from" in late.text
    assert "(new disks): it takes tasks that end before, by their --time" in late.text


def test_a_task_without_a_time_is_taken_until_it_begins(announced: Rig) -> None:
    assert reason_for(announced, 1) is None


def test_the_machine_stays_in_vectors_until_it_begins(announced: Rig) -> None:
    assert announced.state.membership.drain is None
    announced.wait(HOUR)
    drain = queries.drain_of(announced.state)
    assert drain is not None
    assert (drain.since, drain.begins, drain.text) == (announced.now, None, "new disks")
    assert queries.announced_of(announced.state) is None


def test_a_claim_takes_no_more_tasks_once_they_would_end_too_late(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request(tdv=tdv(est_time=60))), SchedAccept)
    ended = SendControl(to=PARENT, message=ClaimEnd(claim=granted.claim))
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    assert ended not in announce(rig, in_ns=2 * MINUTE)
    assert ended not in rig.wait(30 * SECOND)
    actions = rig.wait(30 * SECOND)
    assert ended in actions
    assert [each for each in only(actions, EndAttempt) if not each.only_if_queued] == []


def test_the_deadline_counts_from_its_begin(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    announce(rig, in_ns=MINUTE, deadline_ns=MINUTE)
    assert not only(rig.wait(MINUTE), EndAttempt)
    assert [each.attempt for each in only(rig.wait(MINUTE), EndAttempt)] == [remote()]


@pytest.mark.parametrize("is_over", [False, True])
def test_it_is_announced_still_after_a_restart_or_begins_if_its_time_has_come(rig: Rig, *, is_over: bool) -> None:
    rig.measure()
    row = next(each.row for each in only(announce(rig), Store) if isinstance(each.row, DrainRow))
    again = Rig(make_module())
    again.now = Instant(rig.now + (2 * HOUR if is_over else 0))
    again.resume(Remains(rows=(row,)))
    assert (queries.drain_of(again.state) is not None, queries.announced_of(again.state)) == (
        is_over,
        None if is_over else row,
    )


def test_it_is_taken_back_by_undrain(announced: Rig) -> None:
    actions = announced.handle(DrainRequested(answer_to=ASKED, is_on=False))
    assert Forget(key=(RowKind.DRAIN, None)) in actions
    assert reason_for(announced, 1, est_time=9999) is None
    announced.wait(2 * HOUR)
    assert queries.drain_of(announced.state) is None


def test_a_module_that_is_drained_announces_nothing(rig: Rig) -> None:
    rig.handle(DrainRequested(answer_to=ASKED))
    (answer,) = only(announce(rig), Answer)
    assert "is drained already" in answer.problem


def test_a_drain_now_replaces_the_announced_one(announced: Rig) -> None:
    announced.handle(DrainRequested(answer_to=ASKED, text="now"))
    assert queries.announced_of(announced.state) is None
    announced.wait(2 * HOUR + SECOND)
    drain = queries.drain_of(announced.state)
    assert drain is not None
    assert drain.text == "now"
