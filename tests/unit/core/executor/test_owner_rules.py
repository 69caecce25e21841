"""What the rules of a machine's owner do to attempts there, and what the origin is told of it."""

import pytest

from messiahs.core.interface.actions import (
    Action,
    EndAttempt,
    MeasureAttempts,
    ResumeAttempt,
    StartAttempt,
    Store,
    SuspendAttempt,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptsMeasured, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import Measured, PolicyChanged, TransferReceived
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    SchedAccept,
    SchedDeny,
    Substate,
    TaskKill,
    TaskState,
    TaskStatus,
)
from messiahs.core.interface.rows import AttemptRow, Row
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, instant_text
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import GIB, ORIGIN, PARENT, Rig, message_in, only, remote, request, sdv, sent, tdv, transfer
from tests.unit.core.scripted_policy import ScriptedPolicy

DESK = """running {
    suspend unless $here.keyboard_idle >= 30s else "the owner is back";
    resume when $here.keyboard_idle >= 300s;
    vacate when $task.suspended >= 600s grace 60s;
}"""


def rules(policy: ScriptedPolicy, text: str) -> None:
    policy.running = parse_policy(text, file="test.policy").running


def begin(rig: Rig, *attempts: AttemptId, count: int = 1, search: bytes = b"s" * 16, **said: int | str) -> SchedAccept:
    """Take and start attempts in one claim that was asked for through the parent."""
    asked = request(len(rig.state.executor.claims) + 1, count=count, search=search, tdv=tdv(**said))
    claim = message_in(rig.hear(PARENT, asked), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))
    for attempt in attempts[:count]:
        rig.handle(AttemptStarted(attempt=attempt))
    return claim


def look(rig: Rig, **said: int | str) -> tuple[Action, ...]:
    """Measure the machine, and give what is done then."""
    return rig.handle(Measured(sdv=sdv(**said)))


def statuses(actions: tuple[Action, ...]) -> list[AttemptStatus]:
    return [status for _, message in sent(actions, TaskStatus) for status in message.attempts]


@pytest.fixture
def rig(module: ModuleFactory, policy: ScriptedPolicy) -> Rig:
    """Make a module that is linked with its parent alone, and has nobody to pass a request on to."""
    made = module(policy=policy, neighbors=(Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),))
    made.greet(PARENT)
    made.see(PARENT)
    made.wait(10_000_000)
    return made


@pytest.fixture
def desk(rig: Rig, policy: ScriptedPolicy) -> Rig:
    """Make a machine whose owner has been away for long, and on which one task runs."""
    rules(policy, DESK)
    rig.measure(keyboard_idle=600)
    begin(rig, remote(), mem=1 << 30)
    return rig


def test_a_task_is_suspended_when_a_rule_is_due_and_the_origin_receives_the_reason(desk: Rig) -> None:
    actions = look(desk, keyboard_idle=3)
    assert only(actions, SuspendAttempt) == (SuspendAttempt(attempt=remote()),)
    (status,) = statuses(actions)
    assert (status.state, status.substate, status.text) == ("executing", "suspended", "the owner is back")
    assert status.is_rule_text
    (stored,) = only(actions, Store)
    assert isinstance(stored.row, AttemptRow)
    assert stored.row.status == status
    assert look(desk, keyboard_idle=4) == ()


def test_a_sensor_that_is_lost_suspends_too(desk: Rig) -> None:
    assert only(look(desk), SuspendAttempt)


def test_a_suspended_task_resumes_when_a_rule_is_due(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    assert look(desk, keyboard_idle=299) == ()
    actions = look(desk, keyboard_idle=300)
    assert only(actions, ResumeAttempt) == (ResumeAttempt(attempt=remote()),)
    (status,) = statuses(actions)
    assert (status.substate, status.text) == ("running", "")


def test_the_slots_of_a_suspended_task_are_others_but_not_its_memory(desk: Rig) -> None:
    before = own_sdv(desk.state)
    look(desk, keyboard_idle=3)
    after = own_sdv(desk.state)
    assert before is not None
    assert after is not None
    said = [(each.description()["free_slots"], each.description()["avail_mem"]) for each in (before, after)]
    assert said == [(3, 15 * GIB), (4, 15 * GIB)]
    assert message_in(desk.hear(PARENT, request(9, count=4, search=b"o" * 16)), SchedAccept).places == 4


def test_no_more_slots_are_given_up_than_the_machine_has(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, "running { suspend when 1 = 1; }")
    rig.measure(slots=1)
    for number in (1, 2):
        begin(rig, remote(number), search=bytes([number]) * 16)
        rig.wait(SECOND)
    assert [claim.suspended for claim in rig.state.executor.claims.values()] == [1, 1]
    assert message_in(rig.hear(PARENT, request(3, search=b"z" * 16)), SchedDeny).reasons[0].code == "no_capacity"


def test_a_task_waits_for_its_slots_and_comes_before_new_ones(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, DESK.replace("suspend unless", 'suspend when $user eq "ann" and not'))
    rig.measure(slots=1, keyboard_idle=600)
    begin(rig, remote(1), mem=1)
    look(rig, slots=1, keyboard_idle=3)
    other = begin(rig, remote(2), search=b"o" * 16, user="bob")
    assert only(look(rig, slots=1, keyboard_idle=300), ResumeAttempt) == ()
    rig.end(AttemptEnded(attempt=remote(2), exit_code=0))
    rig.hear(PARENT, ClaimEnd(claim=other.claim))
    assert message_in(rig.hear(PARENT, request(3, search=b"z" * 16)), SchedDeny).reasons[0].code == "no_capacity"
    assert only(rig.wait(SECOND), ResumeAttempt) == (ResumeAttempt(attempt=remote(1)),)


def test_what_waits_behind_suspended_tasks_is_given_back(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, DESK)
    rig.measure(slots=1, keyboard_idle=600)
    begin(rig, remote(1), remote(2), remote(3))
    actions = look(rig, slots=1, keyboard_idle=3)
    assert [each.attempt for each in only(actions, EndAttempt)] == [remote(2), remote(3)]
    (status,) = statuses(rig.end(AttemptEnded(attempt=remote(2), cause=Cause.VACATED)))
    assert (status.state, status.cause) == ("revoked", "vacated")


def test_a_task_that_vacates_has_its_grace_and_is_revoked(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    actions = desk.wait(600 * SECOND)
    assert only(actions, EndAttempt) == (EndAttempt(attempt=remote(), grace_ns=60 * SECOND, cause=Cause.VACATED),)
    assert [status.substate for status in statuses(actions) if status.substate is Substate.VACATING] == ["vacating"]
    (status,) = statuses(desk.end(AttemptEnded(attempt=remote(), exit_code=0, cause=Cause.VACATED)))
    assert (status.state, status.cause) == (TaskState.REVOKED, "vacated")


def test_a_suspended_task_whose_slots_are_taken_is_ended_without_grace(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, DESK.replace("suspend unless", 'suspend when $user eq "ann" and not'))
    rig.measure(slots=1, keyboard_idle=600)
    begin(rig, remote(1))
    look(rig, slots=1, keyboard_idle=3)
    begin(rig, remote(2), search=b"o" * 16, user="bob")
    ends = only(rig.wait(601 * SECOND), EndAttempt)
    assert ends == (EndAttempt(attempt=remote(1), grace_ns=0, cause=Cause.VACATED),)


def test_the_duration_of_a_rule_continues_after_a_task_is_vacated(rig: Rig) -> None:
    vacate, kill = "vacate when $here.keyboard_idle < 30s grace 20s;", "kill when $here.keyboard_idle < 60s for 10s;"
    rig.measure(keyboard_idle=40)
    begin(rig, remote())
    _load(rig, f"running {{ {vacate} {kill} }}")
    assert only(rig.wait(9 * SECOND), EndAttempt) == ()
    (end,) = only(look(rig, keyboard_idle=1), EndAttempt)
    assert (end.cause, end.grace_ns) == ("vacated", 20 * SECOND)
    assert [(each.cause, each.grace_ns) for each in only(rig.wait(2 * SECOND), EndAttempt)] == [("revoked", 0)]


def test_a_kill_is_immediate_and_its_text_is_reported_to_the_origin(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, 'running { kill when $mem_used > $mem_reserved for 30s else "memory"; }')
    rig.measure()
    begin(rig, remote(), mem=100)
    assert only(rig.wait(SECOND), MeasureAttempts)[0] == MeasureAttempts(attempts=(remote(),))
    assert only(rig.handle(AttemptsMeasured(memory=((remote(), 100),))), EndAttempt) == ()
    assert only(rig.handle(AttemptsMeasured(memory=((remote(), 101),))), EndAttempt) == ()
    assert only(rig.wait(29 * SECOND), EndAttempt) == ()
    assert only(rig.wait(SECOND), EndAttempt) == (EndAttempt(attempt=remote(), grace_ns=0, cause=Cause.REVOKED),)
    (status,) = statuses(rig.end(AttemptEnded(attempt=remote(), signal=9, cause=Cause.REVOKED)))
    assert (status.state, status.cause, status.text) == (TaskState.REVOKED, "revoked", "memory")
    assert status.is_rule_text


def test_memory_is_measured_only_for_rules_that_ask_for_it(desk: Rig) -> None:
    assert only(desk.wait(5 * SECOND), MeasureAttempts) == ()


def test_a_shape_of_which_a_task_was_revoked_gets_no_places_for_a_while(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, 'running tasks where $user eq "bad" { kill when 1 = 1; }')
    rig.measure()
    begin(rig, remote(), user="bad")
    rig.wait(0)
    rig.end(AttemptEnded(attempt=remote(), signal=9, cause=Cause.REVOKED))
    asked = [request(number, search=bytes([number]) * 16, tdv=tdv(user="bad")) for number in (11, 12)]
    (reason,) = message_in(rig.hear(PARENT, asked[0]), SchedDeny).reasons
    until = instant_text(Instant(rig.now + MINUTE))
    assert reason.text == f"a task like this was revoked here, and none gets a place here until {until}"
    message_in(rig.hear(PARENT, request(13, search=b"g" * 16, tdv=tdv(user="good"))), SchedAccept)
    rig.wait(MINUTE)
    message_in(rig.hear(PARENT, asked[1]), SchedAccept)


def test_a_task_cannot_state_what_is_known_of_it_here(rig: Rig, policy: ScriptedPolicy) -> None:
    rules(policy, "running { kill when $mem_used = 1B; kill when $attempt = 7; kill when $waited = 5min; }")
    rig.measure()
    begin(rig, remote(), mem_used=1, attempt=7, waited=300)
    assert only(rig.wait(5 * SECOND), EndAttempt) == ()


def test_the_facts_of_a_task_are_known_to_the_rules(rig: Rig, policy: ScriptedPolicy) -> None:
    text = """$ran >= 3s and $waited = 2s and $suspended = 0s and $attempt = 1 and $from eq "parent"
        and $mem_reserved = 100B and $here.slots = 4 and $here.free_slots = 3 and $now.weekday >= 1"""
    rules(policy, f"running {{ suspend when {text}; }}")
    rig.measure()
    claim = message_in(rig.hear(PARENT, request(tdv=tdv(mem=100))), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    rig.wait(2 * SECOND)
    rig.handle(AttemptStarted(attempt=remote()))
    assert only(rig.wait(2 * SECOND), SuspendAttempt) == ()
    assert only(rig.wait(SECOND), SuspendAttempt)


def test_keyboard_idle_never_leaves_the_machine(desk: Rig) -> None:
    (own,) = desk.state.updates.own.classes
    assert "keyboard_idle" not in dict(own.attributes)
    asked = request(8, requirement="$keyboard_idle > 0", search=b"k" * 16)
    assert message_in(desk.hear(PARENT, asked), SchedDeny).reasons[0].code == "requirement_unmet"


def test_an_idle_module_looks_at_nothing(desk: Rig) -> None:
    assert desk.state.timers.is_set(TimerKind.OWNER_RULES, desk.state.system)
    desk.end(AttemptEnded(attempt=remote(), exit_code=0))
    desk.wait(2 * SECOND)
    assert not desk.state.timers.is_set(TimerKind.OWNER_RULES, desk.state.system)
    assert desk.state.executor.guards == {}


def test_a_module_without_rules_looks_at_nothing(rig: Rig) -> None:
    rig.measure()
    begin(rig, remote())
    assert not rig.state.timers.is_set(TimerKind.OWNER_RULES, rig.state.system)
    assert rig.state.executor.guards == {}


def test_a_user_may_end_a_suspended_task(desk: Rig) -> None:
    (claim,) = desk.state.executor.claims
    look(desk, keyboard_idle=3)
    (end,) = only(desk.hear(PARENT, TaskKill(claim=claim, attempts=(remote(),))), EndAttempt)
    assert (end.cause, end.grace_ns) == ("killed", desk.state.policy.timeouts.kill_grace_ns)
    assert look(desk, keyboard_idle=4) == ()
    (status,) = statuses(desk.end(AttemptEnded(attempt=remote(), signal=15, cause=Cause.KILLED)))
    assert status.state is TaskState.KILLED


def _restarted(
    module: ModuleFactory, policy: ScriptedPolicy, before: Rig, actions: tuple[Action, ...], known: RunningAttempt
) -> tuple[Rig, tuple[Action, ...]]:
    """Start a module again from the rows of another, with what the executor says."""
    rows: tuple[Row, ...] = (
        *(claim.row for claim in before.state.executor.claims.values()),
        *before.state.executor.attempts.values(),
    )
    assert only(actions, Store)
    rig = module(policy=policy)
    rig.now = before.now
    return rig, rig.resume(Remains(rows=rows, running=(known,)))


def test_a_suspended_task_stays_suspended_when_its_daemon_comes_back(
    desk: Rig, module: ModuleFactory, policy: ScriptedPolicy
) -> None:
    done = look(desk, keyboard_idle=3)
    known = RunningAttempt(attempt=remote(), is_running=True, ran_ns=SECOND, suspended_ns=590 * SECOND)
    rig, actions = _restarted(module, policy, desk, done, known)
    assert [type(each) for each in actions if isinstance(each, StartAttempt | SuspendAttempt | ResumeAttempt)] == [
        StartAttempt,
        SuspendAttempt,
    ]
    assert [claim.suspended for claim in rig.state.executor.claims.values()] == [1]
    # The executor answers a start that is repeated.
    rig.handle(AttemptStarted(attempt=remote()))
    assert rig.state.executor.attempts[remote()].status.substate is Substate.SUSPENDED
    assert look(rig, keyboard_idle=3) == ()
    # It has been suspended for ten minutes as its owner counts, whatever happened to the daemon.
    assert only(rig.wait(10 * SECOND), EndAttempt)


@pytest.mark.parametrize(("substate", "expected"), [(Substate.RUNNING, ResumeAttempt), (Substate.VACATING, EndAttempt)])
def test_what_was_stored_and_not_done_is_done_after_a_restart(
    desk: Rig, module: ModuleFactory, policy: ScriptedPolicy, substate: Substate, expected: type[Action]
) -> None:
    look(desk, keyboard_idle=3)
    done = look(desk, keyboard_idle=300) if substate is Substate.RUNNING else desk.wait(600 * SECOND)
    known = RunningAttempt(attempt=remote(), is_running=True, suspended_ns=5 * SECOND)
    _, actions = _restarted(module, policy, desk, done, known)
    assert len(only(actions, expected)) == 1


def test_the_grace_of_a_task_that_vacates_is_not_cut_by_a_restart(
    desk: Rig, module: ModuleFactory, policy: ScriptedPolicy
) -> None:
    look(desk, keyboard_idle=3)
    done = desk.wait(600 * SECOND)
    (before,) = only(done, EndAttempt)
    _, actions = _restarted(module, policy, desk, done, RunningAttempt(attempt=remote(), is_running=True))
    assert only(actions, EndAttempt) == (before,)


def _load(rig: Rig, text: str) -> tuple[Action, ...]:
    policy = parse_policy(f"accept from any {{ limit 9 tasks; }} {text}", file="new")
    return (*rig.handle(PolicyChanged(policy=policy)), *rig.wait(0))


def test_the_rules_of_a_policy_that_is_loaded_act_at_once_on_what_runs(rig: Rig) -> None:
    rig.measure(keyboard_idle=3)
    begin(rig, remote())
    assert only(_load(rig, DESK), SuspendAttempt) == (SuspendAttempt(attempt=remote()),)


def test_without_rules_what_is_suspended_goes_on_until_the_next_ones_suspend_it_again(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    assert only(_load(desk, ""), ResumeAttempt) == (ResumeAttempt(attempt=remote()),)
    assert only(_load(desk, DESK), SuspendAttempt) == (SuspendAttempt(attempt=remote()),)


def test_the_durations_of_loaded_rules_start_again(desk: Rig) -> None:
    first = "running { kill when $here.keyboard_idle > 1s for 1min; }"
    _load(desk, first)
    desk.wait(50 * SECOND)
    # As many rules as before: nothing that was counted for the others is counted for these.
    _load(desk, first.replace("> 1s", "> 2s"))
    assert only(desk.wait(59 * SECOND), EndAttempt) == ()
    assert len(only(desk.wait(2 * SECOND), EndAttempt)) == 1


def test_the_place_of_a_task_that_ends_while_it_is_suspended_is_that_of_others(
    rig: Rig, policy: ScriptedPolicy
) -> None:
    rules(policy, DESK.replace("suspend unless", 'suspend when $user eq "ann" and not'))
    rig.measure(slots=1, keyboard_idle=600)
    claim = begin(rig, remote(1))
    look(rig, slots=1, keyboard_idle=3)
    begin(rig, remote(2), search=b"o" * 16, user="bob")
    actions = rig.end(AttemptEnded(attempt=remote(1), signal=9, cause=Cause.LOST))
    row = rig.state.executor.claims[claim.claim].row
    assert row.places == 0
    assert Store(row=row) in actions


def test_tasks_that_come_for_the_places_of_suspended_ones_are_refused(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    (claim,) = desk.state.executor.claims.values()
    late = transfer(claim.row.id, claim.row.ticket, remote(2))
    (status,) = statuses(desk.handle(TransferReceived(sender=ORIGIN, message=late)))
    assert (status.state, status.text) == ("denied", "tasks are suspended in the places of the claim")


def test_a_suspended_task_of_which_its_executor_knows_nothing_is_lost(
    desk: Rig, module: ModuleFactory, policy: ScriptedPolicy
) -> None:
    done = look(desk, keyboard_idle=3)
    known = RunningAttempt(attempt=remote(9), is_running=False, ended=AttemptEnded(attempt=remote(9), exit_code=0))
    rig, actions = _restarted(module, policy, desk, done, known)
    assert only(actions, StartAttempt) == ()
    assert rig.state.executor.attempts[remote()].status.cause == "lost"
    assert [claim.row.places for claim in rig.state.executor.claims.values()] == [0]
