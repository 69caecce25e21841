"""The owner's dial: `lend off` takes the machine back from neighbors, whatever the policy says, until it is turned."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import (
    Action,
    Answer,
    EndAttempt,
    Forget,
    ResumeAttempt,
    SendVector,
    StartAttempt,
    Store,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import (
    AnswerTo,
    LendRequested,
    Measured,
    PolicyChanged,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.lending import LendRow, Lent
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    DenyCode,
    SchedAccept,
    SchedDeny,
    StatusVector,
    Substate,
    TaskRequest,
    TaskState,
    TaskStatus,
    VectorKind,
)
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, Row, RowKind
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant, after, instant_text
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.queries import lending_of
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.vectors.vectors import Interval
from messiahs.language.compiler.files import parse_policy
from messiahs.trace.format.rows import decode_row, encode_row
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import ORIGIN, PARENT, Rig, message_in, only, remote, request, sdv, sent, transfer, view
from tests.unit.core.scripted_policy import ScriptedPolicy

ASKED = AnswerTo(9)
NOT_LENT = "its owner does not lend this machine"


def turn(rig: Rig, lent: Lent, *, until: Instant | None = None) -> tuple[Action, ...]:
    return rig.handle(LendRequested(answer_to=ASKED, lent=lent, until=until, by="ann"))


def begin(rig: Rig, *attempts: AttemptId, started: int = 1) -> SchedAccept:
    """Take attempts in one claim that was asked for through the parent, and start the first ones."""
    asked = request(len(rig.state.executor.claims) + 1, count=started)
    claim = message_in(rig.hear(PARENT, asked), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))
    for attempt in attempts[:started]:
        rig.handle(AttemptStarted(attempt=attempt))
    return claim


def statuses(actions: tuple[Action, ...]) -> list[AttemptStatus]:
    return [status for _, message in sent(actions, TaskStatus) for status in message.attempts]


@pytest.fixture
def rig(module: ModuleFactory, policy: ScriptedPolicy) -> Rig:
    """Make a module that is linked with its parent alone, and has nobody to pass a request on to."""
    made = module(policy=policy, neighbors=(Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),))
    made.greet(PARENT)
    made.see(PARENT)
    made.wait(10_000_000)
    made.measure()
    return made


def test_neighbors_are_refused_with_a_word_until_the_dial_is_turned_back(rig: Rig) -> None:
    until = after(rig.now, HOUR)
    actions = turn(rig, Lent.OFF, until=until)
    assert Store(row=LendRow(is_on=False, since=rig.now, until=until, by="ann")) in actions
    assert only(actions, Answer) == (Answer(answer_to=ASKED),)
    (reason,) = message_in(rig.hear(PARENT, request(1)), SchedDeny).reasons
    assert (reason.code, reason.text) == (DenyCode.REFUSED_BY_POLICY, f"{NOT_LENT} until {instant_text(until)}")
    back = turn(rig, Lent.ON)
    assert Store(row=LendRow(is_on=True, since=rig.now, by="ann")) in back
    assert sent(rig.hear(PARENT, request(2, search=b"n" * 16)), SchedAccept)


def test_a_neighbor_to_which_nothing_is_revealed_is_not_told_until_when(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.silent_to = (PARENT,)
    turn(rig, Lent.OFF, until=after(rig.now, HOUR))
    (reason,) = message_in(rig.hear(PARENT, request(1)), SchedDeny).reasons
    assert (reason.code, reason.text) == (DenyCode.REFUSED_BY_POLICY, NOT_LENT)


def test_a_machine_that_would_not_suit_says_so_although_it_is_not_lent(rig: Rig) -> None:
    turn(rig, Lent.OFF)
    (reason,) = message_in(rig.hear(PARENT, request(1, requirement='$os eq "Plan 9"')), SchedDeny).reasons
    assert reason.code is DenyCode.REQUIREMENT_UNMET
    assert NOT_LENT in reason.text


def test_the_own_users_use_the_machine_on(rig: Rig) -> None:
    turn(rig, Lent.OFF)
    assert only(rig.submit(), StartAttempt)
    assert not only(rig.wait(MINUTE), SuspendAttempt)


def test_vectors_show_no_free_slot_meanwhile_and_neighbors_may_ask_why(rig: Rig) -> None:
    def shown(actions: tuple[Action, ...]) -> tuple[object, bool]:
        message = only(actions, SendVector)[-1].message
        (alike,) = message.vector.classes
        return dict(alike.attributes)["free_slots"], message.makes_room

    off = shown((*turn(rig, Lent.OFF), *rig.wait(SECOND // 10)))
    back = shown((*turn(rig, Lent.POLICY), *rig.wait(SECOND // 10)))
    assert off == (Interval(0, 0), True)
    assert back == (Interval(4, 4), False)


def test_what_runs_is_suspended_without_any_rule_and_what_waits_is_given_back(rig: Rig) -> None:
    claim = begin(rig, remote(1), remote(2))
    actions = turn(rig, Lent.OFF)
    assert only(actions, SuspendAttempt) == (SuspendAttempt(attempt=remote(1)),)
    ends = [(end.attempt, end.cause, end.only_if_queued) for end in only(actions, EndAttempt)]
    assert set(ends) == {(remote(2), Cause.VACATED, True)}
    assert ClaimEnd(claim=claim.claim) in [message for _, message in sent(actions, ClaimEnd)]
    (status,) = statuses(actions)
    assert (status.state, status.substate, status.text) == (TaskState.EXECUTING, Substate.SUSPENDED, NOT_LENT)
    assert not status.is_rule_text
    resumed = turn(rig, Lent.ON)
    assert only(resumed, ResumeAttempt) == (ResumeAttempt(attempt=remote(1)),)
    assert [each.substate for each in statuses(resumed)] == [Substate.RUNNING]


def test_a_task_that_arrives_late_is_refused_and_one_that_just_started_is_suspended(rig: Rig) -> None:
    asked = request(1, count=2)
    claim = message_in(rig.hear(PARENT, asked), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote(1))))
    turn(rig, Lent.OFF)
    late = rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote(2))))
    assert [(each.state, each.text) for each in statuses(late)] == [(TaskState.DENIED, NOT_LENT)]
    assert only(rig.wait(SECOND // 2), SuspendAttempt) == ()
    rig.handle(AttemptStarted(attempt=remote(1)))
    assert only(rig.wait(SECOND // 2), SuspendAttempt) == (SuspendAttempt(attempt=remote(1)),)


def test_a_new_end_reaches_the_origin(rig: Rig) -> None:
    begin(rig, remote(1))
    turn(rig, Lent.OFF)
    until = after(rig.now, HOUR)
    (status,) = statuses(turn(rig, Lent.OFF, until=until))
    assert status.text == f"{NOT_LENT} until {instant_text(until)}"
    assert statuses(rig.wait(MINUTE)) == []


def test_off_ends_in_the_policy_and_on_ends_in_off(rig: Rig) -> None:
    begin(rig, remote(1))
    turn(rig, Lent.OFF, until=after(rig.now, 20 * SECOND))
    assert not only(rig.wait(19 * SECOND), ResumeAttempt)
    done = rig.wait(SECOND)
    assert only(done, ResumeAttempt)
    assert Forget(key=(RowKind.LENDING, None)) in done
    assert lending_of(rig.state) is None
    turn(rig, Lent.ON, until=after(rig.now, 20 * SECOND))
    done = rig.wait(20 * SECOND)
    assert only(done, SuspendAttempt)
    assert lending_of(rig.state) == LendRow(is_on=False, since=rig.now, by="ann")
    assert only(turn(rig, Lent.POLICY), ResumeAttempt)


def test_turning_a_dial_to_where_it_is_by_default_stores_nothing(rig: Rig) -> None:
    assert only(turn(rig, Lent.POLICY), Store) == ()


def test_the_policy_reads_the_dial(rig: Rig) -> None:
    positions = [own_facts(rig.state, rig.now)["lent"]]
    for lent in (Lent.ON, Lent.OFF):
        turn(rig, lent)
        positions.append(own_facts(rig.state, rig.now)["lent"])
    assert positions == ["policy", "on", "off"]


@pytest.mark.parametrize(
    ("running", "idle", "lent_again"),
    [
        ("suspend when $here.keyboard_idle < 30s;", 600, [ResumeAttempt]),
        ("suspend when $here.keyboard_idle < 30s; resume when $here.keyboard_idle >= 300s;", 60, [ResumeAttempt]),
        ("suspend when $here.keyboard_idle < 30s; resume when $here.keyboard_idle >= 300s;", 3, []),
    ],
    ids=["no rule resumes", "no rule suspends now", "the policy suspends as well"],
)
def test_afterwards_a_task_continues_as_the_policy_wants(
    rig: Rig, policy: ScriptedPolicy, running: str, idle: int, lent_again: list[type[Action]]
) -> None:
    policy.running = parse_policy(f"running {{ {running} }}", file="test.policy").running
    rig.measure(keyboard_idle=600)
    begin(rig, remote(1))
    turn(rig, Lent.OFF)
    rig.measure(keyboard_idle=idle)
    back = turn(rig, Lent.ON)
    assert [type(each) for each in back if isinstance(each, ResumeAttempt)] == lent_again


def test_a_rule_that_resumes_meanwhile_resumes_nothing_until_the_dial_does(rig: Rig, policy: ScriptedPolicy) -> None:
    text = "running { suspend when $here.keyboard_idle < 30s; resume when $here.keyboard_idle >= 300s; }"
    policy.running = parse_policy(text, file="test.policy").running
    rig.measure(keyboard_idle=600)
    begin(rig, remote(1))
    rig.handle(Measured(sdv=sdv(keyboard_idle=3)))
    turn(rig, Lent.OFF)
    again = rig.handle(Measured(sdv=sdv(keyboard_idle=400)))
    assert not only(again, ResumeAttempt)
    assert [(each.substate, each.text) for each in statuses(again)] == [(Substate.SUSPENDED, NOT_LENT)]
    assert only(turn(rig, Lent.POLICY), ResumeAttempt)


def test_rules_that_end_tasks_hold_meanwhile(rig: Rig, policy: ScriptedPolicy) -> None:
    text = "running { vacate when $task.suspended >= 600s grace 60s; }"
    policy.running = parse_policy(text, file="test.policy").running
    begin(rig, remote(1))
    turn(rig, Lent.OFF)
    done = rig.wait(601 * SECOND)
    assert [(end.attempt, end.cause) for end in only(done, EndAttempt)] == [(remote(1), Cause.VACATED)]


def test_a_task_waits_for_its_slots_if_own_users_have_them_by_then(rig: Rig) -> None:
    rig.measure(slots=1, nproc=1)
    begin(rig, remote(1))
    turn(rig, Lent.OFF)
    (own,) = only(rig.submit(), StartAttempt)
    rig.handle(AttemptStarted(attempt=own.attempt))
    assert not only(turn(rig, Lent.ON), ResumeAttempt)
    ended = (*rig.end(AttemptEnded(attempt=own.attempt, exit_code=0)), *rig.wait(5 * SECOND))
    assert only(ended, ResumeAttempt) == (ResumeAttempt(attempt=remote(1)),)


@pytest.mark.parametrize("is_off", [True, False], ids=["still off", "on again by then"])
def test_it_survives_a_restart(rig: Rig, module: ModuleFactory, policy: ScriptedPolicy, *, is_off: bool) -> None:
    begin(rig, remote(1))
    until = after(rig.now, HOUR)
    turn(rig, Lent.OFF, until=until)
    executor = rig.state.executor
    assert executor.lending is not None
    rows: tuple[Row, ...] = (
        executor.lending,
        *(claim.row for claim in executor.claims.values()),
        *executor.attempts.values(),
    )
    stored = tuple(decode_row(*encode_row(row)) for row in rows)
    assert [row.is_withheld for row in stored if isinstance(row, AttemptRow)] == [True]
    again = module(policy=policy)
    again.now = after(rig.now, MINUTE if is_off else 2 * HOUR)
    known = RunningAttempt(attempt=remote(1), is_running=True, ran_ns=SECOND, suspended_ns=590 * SECOND)
    if not is_off:
        # The lease was renewed until shortly before.
        stored = tuple(
            replace(row, lease_until=after(again.now, HOUR)) if isinstance(row, GrantedClaimRow) else row
            for row in stored
        )
    begun = again.resume(Remains(rows=stored, running=(known,)))
    assert only(begun, SuspendAttempt) == (SuspendAttempt(attempt=remote(1)),)
    later = (*again.handle(Measured(sdv=sdv())), *again.wait(2 * SECOND))
    assert bool(only(later, ResumeAttempt)) is not is_off
    assert (lending_of(again.state) is not None) is is_off


def test_no_tasks_are_asked_for_meanwhile(rig: Rig, policy: ScriptedPolicy) -> None:
    text = "migrate { ask every 3s when 1 = 1 wanting { }; }"
    policy.transfer = parse_policy(text, file="test.policy").transfer
    rig.handle(PolicyChanged(policy=policy))
    waiting = StatusVector(kind=VectorKind.FOR_CHILDREN, vector=view(), period_ns=2 * SECOND, age_ns=0, waiting=5)
    asked: list[bool] = []
    for lent in (Lent.OFF, Lent.ON):
        turn(rig, lent)
        rig.handle(VectorReceived(sender=PARENT, message=waiting))
        asked.append(bool(sent(rig.wait(4 * SECOND), TaskRequest)))
    assert asked == [False, True]
