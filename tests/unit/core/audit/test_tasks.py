"""The audit log counts each attempt that crosses a link with another site once: at origins, hops and executors."""

from dataclasses import replace

import pytest

from messiahs.core.audit import rows as audited_rows
from messiahs.core.audit import tasks as audited_tasks
from messiahs.core.audit.rows import ROW_LIMIT
from messiahs.core.audit.storing import STORED_AFTER_NS
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.events import AnswerTo, ShutOffRequested, TransferReceived
from messiahs.core.interface.messages import SchedAccept, SchedRequest, TaskKill, TaskState
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import MINUTE
from messiahs.core.recovery import Remains
from tests.unit.core.border.gate import HOME, OUTSIDE_CLAIM, gate, granted_outside, inside, shown, toward
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    PARENT,
    SIBLING,
    Rig,
    accept,
    attempt,
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


@pytest.fixture
def rig() -> Rig:
    """Return a module whose parent belongs to another site."""
    rig = Rig(make_module(apart=(PARENT,)))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    rig.see(PARENT)
    return rig


def rows(actions: tuple[Action, ...]) -> tuple[AuditRow, ...]:
    return tuple(each.row for each in only(actions, Store) if isinstance(each.row, AuditRow))


def tasks_of(rig: Rig) -> AuditRow:
    (row,) = rig.state.audit.tasks.values()
    return row.present()


def counts(row: AuditRow) -> tuple[int, dict[TaskState, int]]:
    assert row.tasks is not None
    return row.count, dict(row.tasks.ended)


def test_own_tasks_that_go_there_are_one_row_with_their_user_and_ends(rig: Rig) -> None:
    rig.hear(PARENT, accept(message_in(rig.submit(members=3), SchedRequest).id, places=3))
    row = tasks_of(rig)
    assert row.tasks is not None
    assert (row.neighbor, row.is_outward, row.what, row.tasks.user) == (PARENT, True, Crossed.TASKS, "ann")
    assert counts(row) == (3, {})
    first = status(attempt(member=1), TaskState.FINISHED)
    rig.hear(PARENT, statuses(first, status(attempt(member=2), TaskState.ABORTED, cause="not_found")))
    # Reports are repeated until they are acknowledged.
    rig.hear(PARENT, statuses(first, status(attempt(member=3), TaskState.EXECUTING)))
    assert counts(tasks_of(rig)) == (3, {TaskState.FINISHED: 1, TaskState.ABORTED: 1})


def test_tasks_from_there_that_run_here_are_counted_when_they_come_and_when_their_end_is_reported(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    message = transfer(granted.claim, granted.ticket, remote(member=1), remote(member=2))
    for _ in range(2):
        rig.handle(TransferReceived(sender=PARENT, message=message))
    row = tasks_of(rig)
    assert (row.is_outward, counts(row)) == (False, (2, {}))
    stranger = transfer(granted.claim, type(granted.ticket)(b"x" * 16), remote(member=3))
    rig.handle(TransferReceived(sender=PARENT, message=stranger))
    assert counts(tasks_of(rig)) == (2, {})


def test_a_hop_counts_attempts_that_were_brought_straight_by_their_reports(rig: Rig) -> None:
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    rig.hear(PARENT, statuses(status(remote())))
    assert counts(tasks_of(rig)) == (1, {TaskState.FINISHED: 1})


def test_reports_on_claims_and_attempts_of_others_count_nothing(rig: Rig) -> None:
    rig.hear(PARENT, accept(message_in(rig.submit(), SchedRequest).id))
    before = counts(tasks_of(rig))
    rig.hear(PARENT, statuses(status(attempt(member=7))))
    rig.hear(PARENT, statuses(status(remote()), claim=CLAIM._replace(number=99)))
    assert counts(tasks_of(rig)) == before


def test_a_restart_in_the_middle_counts_nothing_twice(rig: Rig) -> None:
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    rig.hear(PARENT, statuses(status(remote())))
    (passed,) = rig.state.hop.passed.values()
    again = Rig(make_module(apart=(PARENT,)))
    again.resume(Remains(rows=(rig.state.counters, passed, tasks_of(rig))))
    again.greet(CHILD, PARENT)
    # The report was stored, and not passed on: the executor repeats it.
    again.hear(PARENT, statuses(status(remote()), status(remote(member=1))))
    assert counts(tasks_of(again)) == (2, {TaskState.FINISHED: 2})


def test_a_hundred_thousand_members_are_one_row_of_bounded_size(rig: Rig) -> None:
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    for first in range(1, 100_001, 500):
        members = range(first, first + 500)
        rig.hear(PARENT, statuses(*(status(remote(member=member)) for member in members)))
    row = tasks_of(rig)
    assert counts(row) == (100_000, {TaskState.FINISHED: 100_000})
    assert row.tasks is not None
    assert (len(row.tasks.running), len(row.tasks.latest)) == (0, 1_024)
    assert rig.state.counters.audited == 1


def test_no_attempt_is_counted_twice_however_many_run_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_tasks, "_RUNNING_LIMIT", 2)
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    running = statuses(*(status(remote(member=member), TaskState.EXECUTING) for member in range(5)))
    for _ in range(3):
        rig.hear(PARENT, running)
    assert counts(tasks_of(rig)) == (2, {})
    rig.hear(PARENT, statuses(*(status(remote(member=member)) for member in range(5))))
    assert counts(tasks_of(rig)) == (5, {TaskState.FINISHED: 5})


def test_traffic_within_the_site_has_no_rows(rig: Rig) -> None:
    rig.see(CHILD)
    rig.measure()
    assert rows(rig.hear(CHILD, request())) == ()
    assert rig.state.counters.audited == 0


def test_denials_are_one_row_a_minute_for_each_code(rig: Rig) -> None:
    for number in range(3):
        ask = message_in(rig.hear(CHILD, request(number, search=SearchId(bytes([number]) * 16))), SchedRequest)
        rig.hear(PARENT, deny(ask.id))
    (row,) = rig.state.audit.folds.values()
    assert (row.what, row.is_outward, row.count) == (Crossed.DENIED, True, 3)
    rig.wait(MINUTE)
    rig.see(PARENT)
    ask = message_in(rig.hear(CHILD, request(9, search=SearchId(b"z" * 16))), SchedRequest)
    rig.hear(PARENT, deny(ask.id))
    (later,) = rows(rig.wait(STORED_AFTER_NS))
    assert (later.number, later.count) == (row.number + 1, 1)


def test_dropped_messages_are_counted_with_their_code(rig: Rig) -> None:
    for _ in range(2):
        rig.hear(PARENT, TaskKill(claim=CLAIM, attempts=(remote(),)))
    (row,) = rig.state.audit.folds.values()
    assert (row.what, row.code, row.count, row.is_outward) == (Crossed.DROPPED, "no_such_claim", 2, False)


def test_shutting_off_and_readmitting_are_in_the_log_with_their_reasons(rig: Rig) -> None:
    off = rig.handle(ShutOffRequested(answer_to=AnswerTo(1), neighbor=CHILD, text="incident 7"))
    on = rig.handle(ShutOffRequested(answer_to=AnswerTo(2), neighbor=CHILD, is_off=False, text="solved"))
    assert [(row.what, row.text) for row in (*rows(off), *rows(on))] == [
        (Crossed.SHUT_OFF, "incident 7"),
        (Crossed.READMITTED, "solved"),
    ]


def test_a_border_notes_what_the_outside_sees_instead_of_names(rig: Rig) -> None:
    border = gate(toward(PARENT))
    granted_outside(border)
    ticket = border.state.hop.passed[OUTSIDE_CLAIM].ticket
    assert ticket is not None
    border.handle(TransferReceived(sender=CHILD, message=transfer(OUTSIDE_CLAIM, ticket, inside(member=2))))
    row = tasks_of(border)
    assert row.tasks is not None
    assert (row.is_outward, row.tasks.submission.system, row.tasks.user) == (True, HOME, "ann")
    assert row.tasks.shown_submission == shown(border, inside()).task
    assert row.tasks.shown_user.startswith("user-")


def test_the_row_used_least_lately_is_closed_at_the_limit(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_tasks, "OPEN_LIMIT", 1)
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    rig.hear(PARENT, statuses(status(remote())))
    other = remote()._replace(task=remote().task._replace(number=8))
    actions = rig.hear(PARENT, statuses(status(other)))
    assert Forget(key=(RowKind.OPEN_AUDIT, 1)) in actions
    (closed,) = [row for row in rows(actions) if row.is_closed]
    assert (closed.number, closed.count) == (1, 1)
    assert counts(tasks_of(rig)) == (1, {TaskState.FINISHED: 1})


def test_a_row_that_changed_until_it_was_the_oldest_goes_when_it_is_closed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_tasks, "OPEN_LIMIT", 1)
    monkeypatch.setattr(audited_rows, "ROW_LIMIT", 1)
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    rig.hear(PARENT, statuses(status(remote())))
    actions = rig.hear(PARENT, statuses(status(remote()._replace(task=remote().task._replace(number=8)))))
    assert Forget(key=(RowKind.OPEN_AUDIT, 1)) in actions
    assert [row.number for row in rows(actions)] == [2]


def test_the_oldest_row_goes_when_there_are_too_many(rig: Rig) -> None:
    rig.state.counters = replace(rig.state.counters, audited=ROW_LIMIT)
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    rig.hear(PARENT, statuses(status(remote())))
    assert Forget(key=(RowKind.AUDIT, 1)) in rig.wait(STORED_AFTER_NS)
