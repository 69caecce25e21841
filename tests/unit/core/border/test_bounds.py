"""What a border remembers of the tasks that pass it is bounded, whatever passes."""

import pytest

from messiahs.core.border import shown_ids
from messiahs.core.border.messages_of_claims import attempts_in
from messiahs.core.interface.actions import Forget, SendTasks, Store
from messiahs.core.interface.messages import (
    ClaimEnd,
    TaskKill,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import HiddenSubmissionRow
from messiahs.core.queries import attempt_beyond, is_attempt_of
from tests.unit.core.border.gate import (
    HOME,
    INSIDE_TASK,
    OUTSIDE_CLAIM,
    asked,
    bring,
    granted_outside,
    inside,
    shown,
)
from tests.unit.core.rig import (
    CHILD,
    OTHER_CHILD,
    PARENT,
    Rig,
    accept,
    besides_audit,
    message_in,
    only,
    status,
    statuses,
)


def test_one_row_stands_for_all_members_of_a_submission_and_all_claims_that_used_it(out: Rig) -> None:
    second = OUTSIDE_CLAIM._replace(number=10)
    granted_outside(out, 2, claim=second)
    members = range(1, 100_001, 1_000)
    first = [bring(out, *(inside(1, member=start + each) for each in range(1_000))) for start in members]
    assert sum(isinstance(each, Store) for actions in first for each in besides_audit(actions)) == 1
    stored = besides_audit(bring(out, inside(2, member=1), claim=second))[0]
    assert isinstance(stored, Store)
    assert isinstance(stored.row, HiddenSubmissionRow)
    assert stored.row.claims == (OUTSIDE_CLAIM, second)
    assert len(out.state.border.submissions) == 1


def test_the_submission_used_least_lately_is_forgotten_at_the_limit_and_gets_its_id_again(
    out: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_ids, "USE_LIMIT", 2)
    tasks = [INSIDE_TASK._replace(number=number) for number in (1, 2, 3)]
    before = [shown(out, inside(task=task)) for task in tasks]
    for task in (tasks[0], tasks[1], tasks[0], tasks[2]):
        bring(out, inside(task=task))
    assert set(out.state.border.submissions) == {tasks[0], tasks[2]}
    heard = statuses(status(before[1]), claim=OUTSIDE_CLAIM)
    assert message_in(out.hear(PARENT, heard), TaskStatus).attempts == ()
    asked = out.hear(CHILD, TaskStatusQuery(claim=OUTSIDE_CLAIM, attempts=(inside(task=tasks[1]),)))
    assert message_in(asked, TaskStatusQuery).attempts == (before[1],)
    assert message_in(out.hear(PARENT, heard), TaskStatus).attempts[0].attempt == inside(task=tasks[1])


def test_outputs_of_a_forgotten_submission_can_still_be_read(out: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_ids, "USE_LIMIT", 1)
    forgotten = inside(task=INSIDE_TASK._replace(number=1))
    bring(out, forgotten)
    bring(out, inside(task=INSIDE_TASK._replace(number=2)))
    assert forgotten.task not in out.state.border.submissions
    assert is_attempt_of(out.state, forgotten, claim=OUTSIDE_CLAIM)
    assert attempt_beyond(out.state, forgotten, claim=OUTSIDE_CLAIM) == shown(out, forgotten)


def test_a_flood_of_submissions_in_many_claims_takes_no_more_than_its_share(
    out: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_ids, "USE_LIMIT", 30)
    claims = [OUTSIDE_CLAIM, *(OUTSIDE_CLAIM._replace(number=number) for number in range(10, 15))]
    for number, claim in enumerate(claims[1:], start=2):
        granted_outside(out, number, claim=claim)
    border, stored = out.state.border, 0
    for number in range(60):
        task = INSIDE_TASK._replace(number=number)
        for claim in claims[: 1 + number % len(claims)]:
            actions = bring(out, inside(task=task), claim=claim)
            stored += len(only(actions, Store)) - len(only(actions, Forget))
            assert only(actions, SendTasks)
            assert sum(map(len, border.uses.values())) <= 30
    for claim in claims:
        out.hear(CHILD, ClaimEnd(claim=claim))
    assert not any((border.submissions, border.shown, border.brought, border.uses))


def test_a_flood_of_submissions_costs_the_neighbor_that_brings_them_and_no_other(
    out: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_ids, "USE_LIMIT", 10)
    out.greet(OTHER_CHILD)
    second = OUTSIDE_CLAIM._replace(number=10)
    ask = asked(out, OTHER_CHILD, 2, origin=HOME)
    out.hear(PARENT, accept(ask.id, claim=second))
    honest = [inside(task=INSIDE_TASK._replace(number=number)) for number in range(5)]
    bring(out, *honest)
    for number in range(100, 120):
        bring(out, inside(task=INSIDE_TASK._replace(number=number)), claim=second, sender=OTHER_CHILD)
    assert {each.task for each in honest} <= set(out.state.border.submissions)
    assert len(out.state.border.submissions) == 10
    ended = statuses(*(status(shown(out, each)) for each in honest), claim=OUTSIDE_CLAIM)
    assert [each.attempt for each in message_in(out.hear(PARENT, ended), TaskStatus).attempts] == honest


@pytest.mark.parametrize("kind", [TaskKill, TaskStatusAck])
def test_attempts_that_are_only_named_leave_nothing_behind(out: Rig, kind: type[TaskKill | TaskStatusAck]) -> None:
    named = inside(task=INSIDE_TASK._replace(number=9))
    message = (
        TaskKill(claim=OUTSIDE_CLAIM, attempts=(named,))
        if kind is TaskKill
        else TaskStatusAck(claim=OUTSIDE_CLAIM, taken=(named,))
    )
    actions = out.hear(CHILD, message)
    assert attempts_in(message_in(actions, kind)) == (shown(out, named),)
    assert only(actions, Store) == ()
    assert not out.state.border.submissions
