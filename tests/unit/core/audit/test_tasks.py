"""The audit log counts each attempt that crosses a link with another site once: at origins, hops and executors."""

from dataclasses import replace

import pytest

from messiahs.core.audit import rows as audited_rows
from messiahs.core.audit import tasks as audited_tasks
from messiahs.core.audit.storing import STORED_AFTER_NS
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.events import AnswerTo, ShutOffRequested, StoreChanged, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedAccept,
    SchedRequest,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.ids import AttemptId, SearchId, SystemId
from messiahs.core.model.instants import MINUTE
from messiahs.core.model.task_files import InputFile, Output
from messiahs.core.recovery import Remains
from messiahs.core.state.origin import Delivery
from messiahs.trace.format.rows import encode_row
from tests.unit.core.border.gate import HOME, OUTSIDE_CLAIM, gate, granted_outside, inside, shown, toward
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    OTHER_CHILD,
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
    rig.state.origin.deliveries[PARENT, CLAIM.executor.encode()] = Delivery(results=2, grew_at=rig.now)
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


def test_sizes_that_are_more_than_64_bits_together_are_stored_as_the_most(rig: Rig) -> None:
    ask = message_in(rig.hear(CHILD, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(PARENT, accept(ask.id))
    output = Output(name="stdout", size_bytes=INTEGER_HIGHEST)
    for member in range(3):
        rig.hear(PARENT, statuses(status(remote(member=member), outputs=(output,))))
    (went,) = rows(rig.wait(STORED_AFTER_NS))
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    message = transfer(granted.claim, granted.ticket, remote())
    inputs = tuple(InputFile(name=name, sha256=b"d" * 32, size_bytes=INTEGER_HIGHEST) for name in "abc")
    task = replace(message.tasks[0], command=replace(COMMAND, inputs=inputs))
    (came,) = rows(rig.handle(TransferReceived(sender=PARENT, message=replace(message, tasks=(task,)))))
    assert [row.tasks and (row.tasks.input_bytes, row.tasks.output_bytes) for row in (came, went)] == [
        (INTEGER_HIGHEST, 0),
        (0, INTEGER_HIGHEST),
    ]
    assert all(map(encode_row, (came, went)))


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
    actions = rig.hear(PARENT, statuses(status(of_submission(8))))
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
    actions = rig.hear(PARENT, statuses(status(of_submission(8))))
    assert Forget(key=(RowKind.OPEN_AUDIT, 1)) in actions
    assert [row.number for row in rows(actions)] == [2]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Return a hop that keeps ten rows, between a child and two neighbors of other sites."""
    monkeypatch.setattr(audited_rows, "ROW_LIMIT", 10)
    made = Rig(make_module(apart=(PARENT, SIBLING)))
    made.resume()
    made.greet(CHILD, SIBLING, PARENT)
    made.see(PARENT)
    return made


def through(rig: Rig, neighbor: SystemId, number: int, /) -> None:
    """Let a claim of another site pass from the child to a neighbor."""
    rig.see(neighbor)
    ask = message_in(rig.hear(CHILD, request(number, search=SearchId(bytes([number]) * 16))), SchedRequest)
    while (asked := rig.state.hop.asks[ask.id].asked) != neighbor:
        assert asked is not None
        ask = message_in(rig.hear(asked, deny(ask.id)), SchedRequest)
    rig.hear(neighbor, accept(ask.id, claim=CLAIM._replace(number=number)))


def of_submission(number: int) -> AttemptId:
    return remote()._replace(task=remote().task._replace(number=number))


def test_a_flood_costs_a_neighbor_its_own_rows_and_no_others(between: Rig) -> None:
    act = between.handle(ShutOffRequested(answer_to=AnswerTo(1), neighbor=OTHER_CHILD, text="incident 7"))
    through(between, PARENT, 1)
    through(between, SIBLING, 2)
    for number in range(3):
        between.hear(PARENT, statuses(status(of_submission(number)), claim=CLAIM))
    honest = set(between.state.audit.kept[PARENT])
    actions: list[Action] = []
    for number in range(100, 130):
        heard = between.hear(SIBLING, statuses(status(of_submission(number)), claim=CLAIM._replace(number=2)))
        actions.extend((*heard, *between.wait(STORED_AFTER_NS)))
    (row,) = rows(act)
    gone = {each.key[1] for each in only(actions, Forget)}
    assert len(gone) >= 24
    assert not gone & {row.number, *honest}
    assert sum(map(len, between.state.audit.kept.values())) == 10


def test_the_bound_of_the_log_holds_over_a_restart(between: Rig) -> None:
    through(between, PARENT, 1)
    (passed,) = between.state.hop.passed.values()
    old = [
        AuditRow(number=number, neighbor=neighbor, what=Crossed.DENIED, is_outward=True, began_at=between.now,
                 latest_at=between.now, is_closed=True)
        for number, neighbor in enumerate([SIBLING] * 3 + [PARENT] * 7, start=1)
    ]  # fmt: skip
    again = Rig(make_module(apart=(PARENT, SIBLING)))
    again.resume(Remains(rows=(replace(between.state.counters, audited=10), passed, *old)))
    again.greet(CHILD, PARENT)
    again.hear(PARENT, statuses(status(remote()), claim=CLAIM))
    assert Forget(key=(RowKind.AUDIT, 4)) in again.wait(STORED_AFTER_NS)


def test_the_open_rows_of_a_neighbor_are_not_closed_by_another_one(
    between: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_tasks, "OPEN_LIMIT", 4)
    through(between, PARENT, 1)
    through(between, SIBLING, 2)
    between.hear(PARENT, statuses(status(of_submission(1)), claim=CLAIM))
    for number in range(100, 120):
        between.hear(SIBLING, statuses(status(of_submission(number)), claim=CLAIM._replace(number=2)))
    assert (PARENT, True, of_submission(1).task) in between.state.audit.tasks
    assert len(between.state.audit.tasks) == 4


def test_tasks_of_another_origin_than_the_claims_are_not_counted_at_a_hop(rig: Rig) -> None:
    through(rig, PARENT, 1)
    foreign = attempt()
    rig.hear(PARENT, statuses(status(foreign), claim=CLAIM))
    assert not rig.state.audit.tasks


def test_tasks_that_the_executor_does_not_take_are_not_counted(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    ticket = granted.ticket
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, ticket, attempt())))
    rig.handle(StoreChanged(has_space=False))
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, ticket, remote())))
    assert not rig.state.audit.tasks
    rig.handle(StoreChanged(has_space=True))
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, ticket, remote(2))))
    assert counts(tasks_of(rig)) == (1, {})


def test_tasks_that_never_came_are_not_counted_when_their_origin_asks_for_them(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.hear(PARENT, ClaimEnd(claim=granted.claim))
    assert granted.claim not in rig.state.executor.claims
    asked = TaskStatusQuery(claim=granted.claim, attempts=(remote(member=1),))
    assert message_in(rig.hear(PARENT, asked), TaskStatus).attempts[0].state is TaskState.REVOKED
    assert counts(tasks_of(rig))[0] == 1


def test_tasks_whose_ids_another_claim_has_taken_in_advance_are_counted(rig: Rig) -> None:
    rig.measure()
    for neighbor, search in ((CHILD, b"c" * 16), (PARENT, b"p" * 16)):
        granted = message_in(rig.hear(neighbor, request(search=SearchId(search))), SchedAccept)
        message = transfer(granted.claim, granted.ticket, remote())
        rig.handle(TransferReceived(sender=neighbor, message=message))
    assert counts(tasks_of(rig)) == (1, {})


def test_tasks_that_a_border_drops_are_counted_as_dropped_and_not_as_tasks(rig: Rig) -> None:
    border = gate(toward(PARENT))
    granted_outside(border)
    ticket = border.state.hop.passed[OUTSIDE_CLAIM].ticket
    assert ticket is not None
    border.state.identity = replace(border.state.identity, apart=(CHILD,))
    border.handle(TransferReceived(sender=CHILD, message=transfer(OUTSIDE_CLAIM, ticket, remote())))
    assert not border.state.audit.tasks
    (row,) = border.state.audit.folds.values()
    assert (row.neighbor, row.what, row.code) == (CHILD, Crossed.DROPPED, "out_of_range")
