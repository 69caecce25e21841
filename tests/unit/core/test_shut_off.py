"""A neighbor that the administrator has shut off: everything open with it is closed, and nothing passes any more."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import (
    Action,
    Answer,
    EndAttempt,
    Forget,
    Readmit,
    Report,
    SendControl,
    SendTasks,
    ShutOff,
    Store,
)
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.events import AnswerTo, LinkRefused, LinkUp, ShutOffRequested, TransferReceived
from messiahs.core.interface.membership_rows import ShutOffRow
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedRequest, TaskState
from messiahs.core.interface.rows import RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.origin.delays import delay_of
from messiahs.core.queries import Access
from messiahs.core.recovery import Remains
from messiahs.core.shut_off import READMITTED
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    OTHER_CHILD,
    PARENT,
    STRANGER,
    Rig,
    accept,
    attempt,
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

ASKED = AnswerTo(9)


def shut(rig: Rig, neighbor: SystemId, *, is_off: bool = True, text: str = "") -> tuple[Action, ...]:
    """Let the administrator shut a neighbor off, or readmit it."""
    return rig.handle(ShutOffRequested(answer_to=ASKED, neighbor=neighbor, is_off=is_off, text=text))


def test_the_row_is_stored_with_everything_that_is_closed_and_the_answer_follows(rig: Rig) -> None:
    actions = shut(rig, PARENT, text="incident 7")
    assert Store(row=ShutOffRow(system=PARENT, since=rig.now, text="incident 7")) in actions
    assert ShutOff(neighbor=PARENT) in actions
    assert actions[-1] == Answer(answer_to=ASKED)
    assert queries.why_unlinked(rig.state)[PARENT] == "this module's administrator has shut it off: incident 7"


def test_attempts_of_the_neighbor_end_here_at_once(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    actions = shut(rig, PARENT)
    assert [(each.attempt, each.grace_ns) for each in only(actions, EndAttempt)] == [(remote(), 0)]
    assert Forget(key=(RowKind.GRANTED_CLAIM, granted.claim)) in actions


@pytest.mark.parametrize(
    ("off", "told", "end"),
    [(PARENT, CHILD, ClaimEnd(claim=CLAIM)), (CHILD, PARENT, ClaimEnd(claim=CLAIM, is_forgotten=True))],
)
def test_a_claim_that_passes_is_forgotten_and_its_other_neighbor_is_told(
    rig: Rig, off: SystemId, told: SystemId, end: ClaimEnd
) -> None:
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    actions = shut(rig, off)
    assert Forget(key=(RowKind.PASSED_CLAIM, CLAIM)) in actions
    assert SendControl(to=told, message=end) in actions
    assert rig.state.hop.passed == {}


def test_own_tasks_beyond_it_begin_again_only_when_they_have_surely_ended(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    shut(rig, CHILD)
    # What it still says does not count, nor is it worth a report.
    assert rig.hear(CHILD, statuses(status(attempt()))) == ()
    (row,) = rig.state.origin.tasks.values()
    assert (row.state, row.attempt, row.claim) == (TaskState.EXECUTING, 1, CLAIM)
    delay = delay_of(rig.state, row)
    assert delay is not None
    assert delay.text == f"{CHILD} was shut off at this module after the task had gone there"
    shut(rig, CHILD, is_off=False)
    delay = delay_of(rig.state, row)
    assert delay is not None
    assert delay.text.startswith(f"the link with {CHILD} was ended, or it has lost its state, after the task")
    assert delay.until == rig.state.timers.deadline_of(TimerKind.HELD_LEASE, CLAIM)
    rig.wait(LEASE_NS)
    assert next(iter(rig.state.origin.tasks.values())).claim == CLAIM
    rig.wait(LEASE_NS)
    (row,) = rig.state.origin.tasks.values()
    assert (row.claim, row.history[-1].event) == (None, "lost")


def test_searches_do_not_go_there_and_its_own_are_dropped(rig: Rig) -> None:
    rig.greet(OTHER_CHILD)
    rig.see(CHILD)
    rig.see(OTHER_CHILD)
    ((asked, _),) = sent(rig.hear(PARENT, request()), SchedRequest)
    ((other, _),) = sent(shut(rig, asked), SchedRequest)
    assert {asked, other} == {CHILD, OTHER_CHILD}
    assert shut(rig, PARENT)
    assert rig.state.hop.searches == {}


def test_no_connection_no_vector_and_no_task_of_it_counts(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    shut(rig, PARENT)
    rig.see(PARENT)
    assert not any(system == PARENT for system, _ in rig.state.updates.views)
    assert rig.handle(LinkUp(neighbor=PARENT)) == (ShutOff(neighbor=PARENT),)
    assert rig.handle(LinkRefused(neighbor=PARENT, text="it does not answer")) == ()
    brought = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    assert only(brought, SendTasks) == ()
    assert len(only(brought, Report)) == 1
    gone = queries.byte_leg(rig.state, PARENT, key=b"", claim=granted.claim, ticket=granted.ticket)
    assert gone is Access.GONE


def test_a_neighbor_is_shut_off_once_and_readmitted_once(rig: Rig) -> None:
    shut(rig, PARENT, text="incident 7")
    since = rig.now
    rig.wait(LEASE_NS)
    again = Store(row=ShutOffRow(system=PARENT, since=since, text="incident 7"))
    assert shut(rig, PARENT, text="incident 7") == (again, Answer(answer_to=ASKED))
    renamed = only(shut(rig, PARENT, text="incident 8"), Store)
    assert renamed[0].row == ShutOffRow(system=PARENT, since=since, text="incident 8")
    assert [row.row.text for row in renamed if isinstance(row.row, AuditRow)] == ["incident 8"]
    readmitted = shut(rig, PARENT, is_off=False)
    assert queries.why_unlinked(rig.state)[PARENT] == READMITTED
    assert Forget(key=(RowKind.SHUT_OFF, PARENT)) in readmitted
    assert Readmit(neighbor=PARENT) in readmitted
    assert rig.state.shut_off == {}
    assert shut(rig, PARENT, is_off=False) == (Answer(answer_to=ASKED),)
    rig.greet(PARENT)
    assert rig.state.updates.links[PARENT]


def test_only_neighbors_can_be_shut_off(rig: Rig) -> None:
    (answer,) = shut(rig, STRANGER)
    assert answer == Answer(answer_to=ASKED, problem="stranger is no neighbor of me")


def test_it_stays_shut_off_after_a_restart(rig: Rig) -> None:
    (stored,) = [each for each in only(shut(rig, PARENT, text="incident 7"), Store) if isinstance(each.row, ShutOffRow)]
    again = Rig(make_module())
    again.resume(Remains(rows=(stored.row,)))
    assert queries.summary_of(again.state).shut_off == {PARENT: stored.row}
    assert again.handle(LinkUp(neighbor=PARENT)) == (ShutOff(neighbor=PARENT),)
    assert "incident 7" in queries.why_unlinked(again.state)[PARENT]
