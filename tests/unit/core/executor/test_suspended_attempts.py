"""Suspended attempts: what their claim gives back, and what becomes of them under another policy."""

import pytest

from messiahs.core.interface.actions import Action, EndAttempt, ResumeAttempt, Store, SuspendAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import Measured, PolicyChanged, TransferReceived
from messiahs.core.interface.messages import AttemptStatus, SchedAccept, Substate
from messiahs.core.interface.rows import AttemptRow
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import ORIGIN, PARENT, Rig, message_in, only, remote, request, sdv, tdv, transfer

DESK = """accept from any { limit 9 tasks; }
running {
    suspend unless $here.keyboard_idle >= 30s else "the owner is back";
    resume when $here.keyboard_idle >= 300s;
}"""


def load(rig: Rig, running: str) -> tuple[Action, ...]:
    policy = parse_policy(f"accept from any {{ limit 9 tasks; }} {running}", file="new")
    return (*rig.handle(PolicyChanged(policy=policy)), *rig.wait(0))


def look(rig: Rig, **said: int) -> tuple[Action, ...]:
    return rig.handle(Measured(sdv=sdv(slots=1, **said)))


def status_in(store: Store) -> AttemptStatus | None:
    return store.row.status if isinstance(store.row, AttemptRow) else None


@pytest.fixture
def desk(module: ModuleFactory) -> Rig:
    """Make a machine with one slot that runs one task and holds another, and whose owner has been away for long."""
    parent = Neighbor(system=PARENT, is_parent=True, is_primary_parent=True)
    rig = module(policy=parse_policy(DESK, file="desk"), neighbors=(parent,))
    rig.greet(PARENT)
    rig.measure(slots=1, keyboard_idle=600)
    claim = message_in(rig.hear(PARENT, request()), SchedAccept)
    message = transfer(claim.claim, claim.ticket, remote(1), remote(2))
    rig.handle(TransferReceived(sender=ORIGIN, message=message))
    rig.handle(AttemptStarted(attempt=remote(1)))
    return rig


def test_what_waits_behind_a_suspended_task_is_only_ended_if_it_has_not_begun(desk: Rig) -> None:
    (end,) = only(look(desk, keyboard_idle=3), EndAttempt)
    assert (end.attempt, end.only_if_queued) == (remote(2), True)
    # It had begun, and the word of that came later: the rules judge it as any other.
    desk.handle(AttemptStarted(attempt=remote(2)))
    assert only(desk.wait(SECOND), SuspendAttempt) == (SuspendAttempt(attempt=remote(2)),)


def test_what_has_begun_in_the_place_of_a_suspended_task_is_suspended_instead(desk: Rig) -> None:
    # The first task had ended before it could be suspended, and the second one had begun.
    look(desk, keyboard_idle=3)
    message_in(desk.hear(PARENT, request(2, search=b"o" * 16, tdv=tdv(user="bob"))), SchedAccept)
    ended = desk.end(AttemptEnded(attempt=remote(1), exit_code=0))
    started = desk.handle(AttemptStarted(attempt=remote(2)))
    assert only(started, SuspendAttempt) == (SuspendAttempt(attempt=remote(2)),)
    substates = {status.attempt: status.substate for each in only(ended, Store) if (status := status_in(each))}
    assert substates[remote(2)] is Substate.SUSPENDED
    # The slot is still that of the other task.
    assert only(desk.handle(Measured(sdv=sdv(slots=1, keyboard_idle=600))), ResumeAttempt) == ()
    assert desk.state.executor.guards[remote(2)].is_waiting


def test_the_place_of_a_suspended_task_that_has_ended_is_gone_once_the_next_one_has_not_begun(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    desk.end(AttemptEnded(attempt=remote(1), exit_code=0))
    desk.end(AttemptEnded(attempt=remote(2), cause=Cause.VACATED))
    (claim,) = desk.state.executor.claims.values()
    assert (claim.row.places, claim.suspended) == (0, 0)


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "running { kill when $task.ran > 10h; }",
        "running { vacate when $task.ran > 10h grace 1min; }",
        "running { move when $task.ran > 10h grace 1min then kill; }",
    ],
)
def test_rules_that_say_nothing_of_suspension_resume_what_earlier_ones_suspended(desk: Rig, rules: str) -> None:
    look(desk, keyboard_idle=3)
    assert only(load(desk, rules), ResumeAttempt) == (ResumeAttempt(attempt=remote(1)),)
    assert look(desk, keyboard_idle=3) == ()


def test_what_is_resumed_under_other_rules_waits_for_its_slots(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    other = message_in(desk.hear(PARENT, request(2, search=b"o" * 16, tdv=tdv(user="bob"))), SchedAccept)
    assert only(load(desk, "running { kill when $task.ran > 10h; }"), ResumeAttempt) == ()
    assert desk.state.executor.guards[remote(1)].is_waiting
    resumed = only(desk.wait(MINUTE), ResumeAttempt)
    assert desk.state.executor.claims[other.claim].is_ending
    assert resumed == (ResumeAttempt(attempt=remote(1)),)


def test_rules_that_suspend_and_never_resume_keep_what_is_suspended(desk: Rig) -> None:
    look(desk, keyboard_idle=3)
    assert only(load(desk, "running { suspend when $task.ran > 10h; }"), ResumeAttempt) == ()
    assert only(desk.wait(MINUTE), ResumeAttempt) == ()
