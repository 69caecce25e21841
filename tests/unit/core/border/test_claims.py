"""The messages of a claim and its tasks at a border, in both directions (MESSIAHS 5.3.2, 5.3.3)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Forget, RefuseTransfer, Report, ReportCode, SendTasks, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    ClaimMessage,
    SchedAccept,
    Substate,
    TaskKill,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import HiddenSubmissionRow, PassedClaimRow, RowKind
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SearchId, SystemId, TaskId
from messiahs.core.model.texts import DISK_WAS_FULL
from messiahs.core.model.usage import Containment, Usage
from messiahs.core.queries import Access, attempt_beyond, byte_leg, claim_beyond, is_attempt_of
from messiahs.core.recovery import Remains
from tests.unit.core.border.gate import (
    HOME,
    INSIDE_CLAIM,
    INSIDE_TASK,
    OUTSIDE_CLAIM,
    bring,
    gate,
    granted_outside,
    inside,
    leaks,
    shown,
    toward,
)
from tests.unit.core.rig import (
    CHILD,
    FAR,
    ME,
    PARENT,
    SIBLING,
    Rig,
    attempt,
    besides_audit,
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

ATTEMPT = inside(1, member=3)
OTHER_TASK = TaskId(HOME, Epoch(11), 6)
WITHHELD = f"text withheld by the border {ME}"
Saying = Callable[[AttemptId], ClaimMessage]


def seen_claim(rig: Rig) -> ClaimId:
    """Return the id that the outside got for the claim inside."""
    seen = rig.state.hop.passed[INSIDE_CLAIM].shown
    assert seen is not None
    return seen


def test_tasks_go_out_under_ids_of_the_border_which_are_stored_first(out: Rig) -> None:
    actions = bring(out, ATTEMPT, inside(1, member=4))
    stored, sent_on = besides_audit(actions)
    assert isinstance(stored, Store)
    assert isinstance(sent_on, SendTasks)
    assert isinstance(stored.row, HiddenSubmissionRow)
    assert (stored.row.id, stored.row.claims) == (INSIDE_TASK, (OUTSIDE_CLAIM,))
    assert [task.attempt for task in sent_on.message.tasks] == [shown(out, ATTEMPT), shown(out, inside(1, member=4))]
    assert shown(out, ATTEMPT).task.system == ME
    assert leaks(actions) == []


@pytest.mark.parametrize(
    "saying",
    [
        lambda one: TaskStatusAck(claim=OUTSIDE_CLAIM, taken=(one,), unbound=(one,), renewal=3, moving=(one,)),
        lambda one: TaskStatusQuery(claim=OUTSIDE_CLAIM, attempts=(one,)),
        lambda _: TaskStatusQuery(claim=OUTSIDE_CLAIM, attempts=()),
        lambda one: TaskKill(claim=OUTSIDE_CLAIM, attempts=(one,), is_move=True),
        lambda _: ClaimEnd(claim=OUTSIDE_CLAIM),
    ],
    ids=["ack", "query", "query of all", "kill", "end"],
)
def test_what_an_origin_inside_says_goes_out_with_shown_ids(out: Rig, saying: Saying) -> None:
    bring(out, ATTEMPT)
    actions = out.hear(CHILD, saying(ATTEMPT))
    expected = saying(shown(out, ATTEMPT))
    assert sent(actions, type(expected)) == ((PARENT, expected),)
    assert leaks(actions) == []


def test_a_query_for_an_attempt_that_never_passed_goes_out_too_since_the_executor_must_refuse_it(out: Rig) -> None:
    actions = out.hear(CHILD, TaskStatusQuery(claim=OUTSIDE_CLAIM, attempts=(ATTEMPT,)))
    assert isinstance(actions[0], Store)
    assert message_in(actions, TaskStatusQuery).attempts == (shown(out, ATTEMPT),)


@pytest.mark.parametrize(
    "saying",
    [
        lambda one: statuses(status(one, text="done"), claim=OUTSIDE_CLAIM, renewal=2),
        lambda one: TaskRevoke(claim=OUTSIDE_CLAIM, attempts=(one,), text="the day begins"),
        lambda _: ClaimEnd(claim=OUTSIDE_CLAIM),
    ],
    ids=["status", "revoke", "end"],
)
def test_what_an_executor_outside_says_comes_in_with_the_ids_of_the_inside(out: Rig, saying: Saying) -> None:
    bring(out, ATTEMPT)
    expected = saying(ATTEMPT)
    assert sent(out.hear(PARENT, saying(shown(out, ATTEMPT))), type(expected)) == ((CHILD, expected),)


def test_an_executor_that_names_other_submissions_gets_nothing(out: Rig) -> None:
    second = OUTSIDE_CLAIM._replace(number=10)
    granted_outside(out, 2, claim=second)
    bring(out, ATTEMPT)
    bring(out, inside(task=OTHER_TASK), claim=second)
    strange = (shown(out, inside(task=OTHER_TASK)), ATTEMPT, attempt(), remote())
    heard = statuses(*(status(each) for each in strange), status(shown(out, ATTEMPT)), claim=OUTSIDE_CLAIM)
    actions = out.hear(PARENT, heard)
    assert [each.attempt for each in message_in(actions, TaskStatus).attempts] == [ATTEMPT]
    (report,) = only(actions, Report)
    assert (report.neighbor, report.code) == (PARENT, ReportCode.OUT_OF_RANGE)
    revoke = TaskRevoke(claim=OUTSIDE_CLAIM, attempts=strange[:1])
    assert sent(out.hear(PARENT, revoke), TaskRevoke) == ()


def test_an_origin_that_names_tasks_of_others_is_reported(out: Rig) -> None:
    foreign = AttemptId(TaskId(SystemId("else"), Epoch(1), 1), 1)
    actions = bring(out, foreign, ATTEMPT)
    assert [task.attempt for each in actions if isinstance(each, SendTasks) for task in each.message.tasks] == [
        shown(out, ATTEMPT)
    ]
    (report,) = only(actions, Report)
    assert report.neighbor == CHILD


def test_messages_from_outside_about_a_claim_inside_go_in_with_its_own_id(into: Rig) -> None:
    for message in (
        TaskStatusAck(claim=seen_claim(into), taken=(remote(),)),
        TaskStatusQuery(claim=seen_claim(into), attempts=(remote(),)),
        TaskKill(claim=seen_claim(into), attempts=(remote(),)),
        ClaimEnd(claim=seen_claim(into)),
    ):
        assert sent(into.hear(PARENT, message), type(message)) == ((CHILD, replace(message, claim=INSIDE_CLAIM)),)


def test_states_from_inside_go_out_with_causes_and_with_the_texts_of_rules_alone(into: Rig) -> None:
    vacating = {"substate": Substate.VACATING, "cause": Cause.VACATED}
    heard = statuses(
        status(remote(), TaskState.ABORTED, cause=Cause.NOT_FOUND, text="no /home/ann/far on far"),
        status(remote(2), TaskState.EXECUTING, substate=Substate.SUSPENDED, text="the day begins", is_rule_text=True),
        status(remote(3), TaskState.REVOKED, cause="a word of far", text="far"),
        status(
            remote(4), TaskState.EXECUTING, substate=Substate.VACATING, cause=Cause.MOVED, text="far asked for tasks"
        ),
        status(remote(5), TaskState.EXECUTING, **vacating, text="maintenance of far"),
        status(remote(6), TaskState.REVOKED, cause=Cause.VACATED, text="the day begins", is_rule_text=True),
        status(remote(7)),
        status(remote(8), text=DISK_WAS_FULL),
        status(remote(9), TaskState.ABORTED, cause=Cause.OUTPUT_MISSING, text=f"far has no out; {DISK_WAS_FULL}"),
    )
    actions = into.hear(CHILD, heard)
    said = message_in(actions, TaskStatus)
    assert said.claim == seen_claim(into)
    assert [(each.cause, each.text) for each in said.attempts] == [
        ("not_found", WITHHELD), ("", "the day begins"), ("", WITHHELD), ("moved", WITHHELD), ("vacated", WITHHELD),
        ("vacated", "the day begins"), ("", ""), ("", DISK_WAS_FULL),
        ("output_missing", f"{WITHHELD}; {DISK_WAS_FULL}"),
    ]  # fmt: skip
    assert leaks(actions) == []


def test_a_border_above_says_that_it_withholds_what_one_below_it_withheld(into: Rig) -> None:
    heard = statuses(status(remote(), TaskState.REVOKED, text=WITHHELD.replace(ME, CHILD)))
    assert message_in(into.hear(CHILD, heard), TaskStatus).attempts[0].text == WITHHELD


def test_a_revoke_goes_out_with_the_owners_text_and_an_offer_without_the_name_in_it(into: Rig) -> None:
    revoke = TaskRevoke(claim=INSIDE_CLAIM, attempts=(remote(),), text="the day begins")
    said = message_in(into.hear(CHILD, revoke), TaskRevoke)
    assert (said.claim, said.text) == (seen_claim(into), "the day begins")
    offer = replace(revoke, text=f"{FAR} asked for tasks", answers=SearchId(b"a" * 16))
    actions = into.hear(CHILD, offer)
    assert (message_in(actions, TaskRevoke).text, leaks(actions)) == (WITHHELD, [])


def test_the_end_of_a_claim_from_its_executor_goes_out_with_the_shown_id(into: Rig) -> None:
    actions = into.hear(CHILD, ClaimEnd(claim=INSIDE_CLAIM))
    assert sent(actions, ClaimEnd) == ((PARENT, ClaimEnd(claim=seen_claim(into))),)


@pytest.mark.parametrize("sender", [PARENT, SIBLING])
def test_the_outside_cannot_name_a_claim_by_its_own_id(into: Rig, sender: SystemId) -> None:
    for message in (ClaimEnd(claim=INSIDE_CLAIM), TaskKill(claim=INSIDE_CLAIM, attempts=(remote(),))):
        (report,) = besides_audit(into.hear(sender, message))
        assert isinstance(report, Report)
        assert report.code is ReportCode.NO_SUCH_CLAIM
    assert into.state.hop.passed.keys() == {INSIDE_CLAIM}


def test_another_neighbor_cannot_use_the_shown_id(into: Rig) -> None:
    (report,) = besides_audit(into.hear(SIBLING, ClaimEnd(claim=seen_claim(into))))
    assert isinstance(report, Report)


def test_a_border_never_states_the_fate_of_attempts_in_a_claim_that_it_does_not_hold(into: Rig) -> None:
    seen = seen_claim(into)
    into.hear(PARENT, ClaimEnd(claim=seen))
    assert sent(into.hear(PARENT, TaskStatusQuery(claim=seen, attempts=(remote(),))), TaskStatus) == ()
    answer = into.hear(PARENT, TaskStatusQuery(claim=seen, attempts=()))
    assert sent(answer, ClaimEnd) == ((PARENT, ClaimEnd(claim=seen, is_forgotten=True)),)


def test_the_end_of_a_claim_forgets_it_and_the_submissions_that_no_other_claim_uses(out: Rig) -> None:
    second = OUTSIDE_CLAIM._replace(number=10)
    granted_outside(out, 2, claim=second)
    bring(out, ATTEMPT)
    bring(out, inside(task=OTHER_TASK))
    bring(out, inside(2, member=3), claim=second)
    ended = out.hear(CHILD, ClaimEnd(claim=OUTSIDE_CLAIM))
    assert {each.key for each in only(ended, Forget)} == {
        (RowKind.PASSED_CLAIM, OUTSIDE_CLAIM),
        (RowKind.HIDDEN_SUBMISSION, OTHER_TASK),
    }
    ended = out.hear(CHILD, ClaimEnd(claim=second))
    assert (RowKind.HIDDEN_SUBMISSION, INSIDE_TASK) in {each.key for each in only(ended, Forget)}
    assert not any((out.state.border.submissions, out.state.border.shown, out.state.border.brought))


def test_when_all_tasks_are_of_another_origin_nothing_is_sent_on(out: Rig) -> None:
    actions = bring(out, remote())
    assert [report.neighbor for report in only(actions, Report)] == [CHILD]
    assert only(actions, SendTasks) == ()


def test_tasks_from_outside_go_in_under_the_claims_own_id(into: Rig) -> None:
    row = into.state.hop.passed[INSIDE_CLAIM]
    assert row.ticket is not None
    message = transfer(seen_claim(into), row.ticket, remote())
    (sent_on,) = besides_audit(into.handle(TransferReceived(sender=PARENT, message=message)))
    assert isinstance(sent_on, SendTasks)
    assert (sent_on.message.claim, [task.attempt for task in sent_on.message.tasks]) == (INSIDE_CLAIM, [remote()])


def test_tasks_under_the_hidden_id_of_a_claim_are_dropped_and_reported(into: Rig) -> None:
    row = into.state.hop.passed[INSIDE_CLAIM]
    assert row.ticket is not None
    message = transfer(INSIDE_CLAIM, row.ticket, remote())
    (report,) = besides_audit(into.handle(TransferReceived(sender=PARENT, message=message)))
    assert isinstance(report, Report)


def test_a_failure_inside_is_answered_outside_without_its_text(into: Rig) -> None:
    row = into.state.hop.passed[INSIDE_CLAIM]
    assert row.ticket is not None
    into.handle(TransferReceived(sender=PARENT, message=transfer(seen_claim(into), row.ticket, remote())))
    failed = TransferFailed(claim=INSIDE_CLAIM, text="far:1 does not answer", kind=TransferFailure.BROKEN)
    (answer,) = only(into.handle(failed), RefuseTransfer)
    assert (answer.to, answer.claim) == (PARENT, seen_claim(into))
    assert "far" not in answer.text


def test_hosts_learn_the_ids_that_the_next_system_knows(into: Rig, out: Rig) -> None:
    seen, row = seen_claim(into), into.state.hop.passed[INSIDE_CLAIM]
    assert row.ticket is not None
    assert row.route is not None
    assert byte_leg(into.state, PARENT, key=b"", claim=seen, ticket=row.ticket) == row.route.path
    assert byte_leg(into.state, PARENT, key=b"", claim=INSIDE_CLAIM, ticket=row.ticket) is Access.GONE
    assert claim_beyond(into.state, seen) == INSIDE_CLAIM
    assert attempt_beyond(into.state, remote(), claim=INSIDE_CLAIM) == remote()
    bring(out, ATTEMPT)
    assert claim_beyond(out.state, OUTSIDE_CLAIM) == OUTSIDE_CLAIM
    assert attempt_beyond(out.state, ATTEMPT, claim=OUTSIDE_CLAIM) == shown(out, ATTEMPT)
    assert attempt_beyond(out.state, remote(), claim=OUTSIDE_CLAIM) is None
    assert is_attempt_of(out.state, ATTEMPT, claim=OUTSIDE_CLAIM)
    assert not is_attempt_of(out.state, remote(), claim=OUTSIDE_CLAIM)


def rows_of(rig: Rig) -> tuple[PassedClaimRow | HiddenSubmissionRow, ...]:
    return (*rig.state.hop.passed.values(), *rig.state.border.submissions.values())


def restarted(rig: Rig, *rows: PassedClaimRow | HiddenSubmissionRow, key: bytes | None = None) -> Rig:
    """Return the module after a restart with these rows."""
    module = make_module(policy=toward(PARENT))
    identity = rig.state.identity
    module.state.identity = identity if key is None else replace(identity, border_key=key)
    again = Rig(module=module)
    again.resume(Remains(rows=rows))
    again.greet(CHILD, PARENT)
    return again


def test_after_a_restart_a_border_knows_its_claims_and_submissions(out: Rig) -> None:
    bring(out, ATTEMPT)
    again = restarted(out, *reversed(rows_of(out)))
    heard = statuses(status(shown(out, ATTEMPT)), claim=OUTSIDE_CLAIM)
    assert message_in(again.hear(PARENT, heard), TaskStatus).attempts[0].attempt == ATTEMPT


def test_an_older_copy_of_the_rows_shows_the_same_ids_for_the_same_tasks(out: Rig) -> None:
    bring(out, ATTEMPT)
    again = restarted(out, *out.state.hop.passed.values())
    heard = statuses(status(shown(out, ATTEMPT)), claim=OUTSIDE_CLAIM, renewal=1)
    lacking = again.hear(PARENT, heard)
    assert (message_in(lacking, TaskStatus).attempts, message_in(lacking, TaskStatus).renewal) == ((), 1)
    query = again.hear(CHILD, TaskStatusQuery(claim=OUTSIDE_CLAIM, attempts=(ATTEMPT,)))
    assert message_in(query, TaskStatusQuery).attempts == (shown(out, ATTEMPT),)
    assert message_in(again.hear(PARENT, heard), TaskStatus).attempts[0].attempt == ATTEMPT


def test_a_submission_whose_claims_have_ended_meanwhile_is_forgotten_at_the_start(out: Rig) -> None:
    bring(out, ATTEMPT)
    module = make_module()
    module.state.identity = out.state.identity
    again = Rig(module=module)
    actions = again.resume(Remains(rows=tuple(out.state.border.submissions.values())))
    assert Forget(key=(RowKind.HIDDEN_SUBMISSION, INSIDE_TASK)) in actions


def test_a_system_that_is_no_border_any_more_forgets_what_it_hid(out: Rig, into: Rig) -> None:
    for rig in (out, into):
        again = restarted(rig, *rows_of(rig), key=b"")
        assert again.state.hop.passed == {}


def test_a_claim_of_the_borders_own_machine_has_its_own_id_and_its_texts_stay_here() -> None:
    rig = gate(toward(PARENT))
    rig.measure()
    grant = message_in(rig.hear(PARENT, request()), SchedAccept)
    assert rig.state.is_own(*grant.claim[:2])
    rig.handle(TransferReceived(sender=PARENT, message=transfer(grant.claim, grant.ticket, remote())))
    contained = Containment(isolation="process", lacks="no /home/ann/cgroup")
    ended = AttemptEnded(attempt=remote(), cause=Cause.NOT_FOUND, text="no /home/ann/far", usage=Usage(cpu_ns=7))
    ended = replace(ended, containment=contained)
    (said,) = message_in(rig.end(ended), TaskStatus).attempts
    assert (said.attempt, said.cause, said.text) == (remote(), "not_found", WITHHELD)
    assert said.usage == Usage(cpu_ns=7)
    assert said.containment == Containment(isolation="process", lacks=WITHHELD)
