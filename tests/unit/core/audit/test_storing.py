"""What the audit log counts is stored with other rows, and no report is acknowledged before (core/audit/storing.py)."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.audit.storing import STORED_AFTER_NS, WAITING_LIMIT
from messiahs.core.interface.actions import Action, Forget, SendControl, SendTasks, Store
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import ClaimEnd, SchedRequest, TaskStatusAck
from messiahs.core.interface.rows import CountersRow, RowKind
from messiahs.core.model.ids import SearchId, Ticket
from messiahs.core.model.task_files import InputFile
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
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
    status,
    statuses,
    transfer,
)

ACK = TaskStatusAck(claim=CLAIM, taken=(remote(),))


@pytest.fixture
def hop() -> Rig:
    """Return a module with a claim that passes from its child to a parent of another site."""
    hop = Rig(make_module(apart=(PARENT,)))
    hop.resume()
    hop.greet(CHILD, SIBLING, PARENT)
    hop.see(PARENT)
    ask = message_in(hop.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    hop.hear(PARENT, accept(ask.id))
    return hop


def stored(actions: tuple[Action, ...]) -> list[AuditRow]:
    return [each.row for each in only(actions, Store) if isinstance(each.row, AuditRow)]


def acks_in(actions: tuple[Action, ...]) -> list[TaskStatusAck]:
    return [each.message for each in only(actions, SendControl) if isinstance(each.message, TaskStatusAck)]


def test_tasks_and_reports_pass_a_hop_without_a_transaction(hop: Rig) -> None:
    brought = hop.handle(TransferReceived(sender=CHILD, message=transfer(CLAIM, ticket_of(hop), remote())))
    reported = hop.hear(PARENT, statuses(status(remote())))
    assert [type(each) for each in (*brought, *reported)] == [SendTasks, SendControl]
    (row,) = stored(hop.wait(STORED_AFTER_NS))
    assert row.count == 1
    assert not only(hop.wait(4 * STORED_AFTER_NS), Store)


def test_an_acknowledgment_passes_after_the_row_is_stored(hop: Rig) -> None:
    hop.hear(PARENT, statuses(status(remote())))
    assert hop.hear(CHILD, ACK) == ()
    later = hop.wait(STORED_AFTER_NS)
    assert [row.count for row in stored(later)] == [1]
    assert acks_in(later) == [ACK]
    assert acks_in(hop.hear(CHILD, ACK)) == [ACK]


def test_a_crash_before_the_row_is_stored_loses_no_end(hop: Rig) -> None:
    kept = [each.row for each in only(hop.wait(STORED_AFTER_NS), Store)]
    (passed,) = hop.state.hop.passed.values()
    hop.hear(PARENT, statuses(status(remote())))
    assert hop.hear(CHILD, ACK) == ()
    again = Rig(make_module(apart=(PARENT,)))
    again.resume(Remains(rows=(*kept, passed)))
    again.greet(CHILD, PARENT)
    # It was not acknowledged, so the executor repeats it.
    again.hear(PARENT, statuses(status(remote())))
    assert [row.count for row in stored(again.wait(STORED_AFTER_NS))] == [1]


def test_the_end_of_the_claim_stores_the_row_and_follows_the_acknowledgment(hop: Rig) -> None:
    hop.hear(PARENT, statuses(status(remote())))
    hop.hear(CHILD, ACK)
    actions = hop.hear(CHILD, ClaimEnd(claim=CLAIM))
    assert Forget(key=(RowKind.PASSED_CLAIM, CLAIM)) in actions
    assert [row.count for row in stored(actions)] == [1]
    assert [each.message for each in only(actions, SendControl)] == [ACK, ClaimEnd(claim=CLAIM)]


@pytest.mark.parametrize("ack", [replace(ACK, renewal=3), replace(ACK, taken=(remote(),) * (WAITING_LIMIT + 1))])
def test_an_answer_to_a_renewal_and_a_large_acknowledgment_do_not_wait(hop: Rig, ack: TaskStatusAck) -> None:
    hop.hear(PARENT, statuses(status(remote())))
    actions = hop.hear(CHILD, ack)
    assert [row.count for row in stored(actions)] == [1]
    assert acks_in(actions) == [ack]


def test_no_more_acknowledgments_wait_than_the_limit(hop: Rig) -> None:
    hop.hear(PARENT, statuses(status(remote())))
    sent = [len(acks_in(hop.hear(CHILD, ACK))) for _ in range(WAITING_LIMIT)]
    assert 0 < sum(sent) <= WAITING_LIMIT
    assert len(hop.state.audit.waiting) < WAITING_LIMIT


def test_tasks_with_inputs_are_stored_before_they_pass(hop: Rig) -> None:
    given = InputFile(name="given", sha256=b"d" * 32, size_bytes=5)
    message = transfer(CLAIM, ticket_of(hop), remote())
    (task,) = message.tasks
    task = replace(task, command=replace(COMMAND, inputs=(given,)))
    actions = hop.handle(TransferReceived(sender=CHILD, message=replace(message, tasks=(task,))))
    (row,) = stored(actions)
    assert row.tasks is not None
    assert (row.count, row.tasks.input_bytes) == (1, 5)
    assert any(isinstance(each.row, CountersRow) and each.row.audited == 1 for each in only(actions, Store))


def test_denials_wait_too_and_readers_see_what_is_not_stored_yet(hop: Rig) -> None:
    hop.hear(PARENT, statuses(status(remote())))
    ask = message_in(hop.hear(CHILD, request(9, search=SearchId(b"z" * 16))), SchedRequest)
    hop.hear(PARENT, deny(ask.id))
    shown = queries.unstored_audit_rows(hop.state)
    assert [(number, row.count) for number, row in shown.items()] == [(1, 1), (2, 1)]
    assert stored(hop.wait(STORED_AFTER_NS)) == list(shown.values())
    assert not queries.unstored_audit_rows(hop.state)


def ticket_of(hop: Rig) -> Ticket:
    ticket = hop.state.hop.passed[CLAIM].ticket
    assert ticket is not None
    return ticket
