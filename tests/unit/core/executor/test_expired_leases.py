"""Claims whose lease has run out, and that are kept for results alone: what survives a crash of their executor."""

from dataclasses import replace

from messiahs.core.interface.actions import EndAttempt, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept, TaskState, TaskStatus
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, Row
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.task_filter.local_resources import promised_slots
from tests.unit.core.rig import LEASE_NS, ORIGIN, PARENT, Rig, make_module, message_in, only, remote, request, transfer

FINISHED, RUNNING = remote(member=1), remote(member=2)


def expired(rig: Rig) -> tuple[Row, ...]:
    """Let the lease of a claim of all four slots run out while one result waits and one task runs; give its rows."""
    rig.measure()
    claim = message_in(rig.hear(PARENT, request(count=4)), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, FINISHED, RUNNING)))
    rig.end(AttemptEnded(attempt=FINISHED, exit_code=0))
    rows: dict[object, Row] = {row.id: row for row in rig.state.executor.attempts.values()}
    rows[claim.claim] = rig.state.executor.claims[claim.claim].row
    for stored in only(rig.wait(LEASE_NS), Store):
        assert isinstance(stored.row, GrantedClaimRow | AttemptRow)
        rows[stored.row.id] = stored.row
    return (rig.state.counters, *rows.values())


def restarted(rig: Rig, *rows: Row, running: tuple[RunningAttempt, ...] = ()) -> Rig:
    after = Rig(module=make_module(), now=rig.now)
    actions = after.resume(Remains(rows=rows, running=running))
    assert only(actions, StartAttempt) == ()
    return after


def test_places_that_others_got_when_a_lease_ran_out_stay_theirs_after_a_crash(rig: Rig) -> None:
    rows = expired(rig)
    rig.end(AttemptEnded(attempt=RUNNING, cause=Cause.LEASE_EXPIRED))
    other = message_in(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16), count=4)), SchedAccept)
    assert other.places == 4
    ended = rig.state.executor.attempts[RUNNING]
    claim = rig.state.executor.claims[other.claim].row
    again = restarted(rig, *[ended if getattr(row, "id", None) == RUNNING else row for row in rows], claim)
    again.measure()
    assert promised_slots(again.state, 4) == 4


def test_a_lease_that_ran_out_while_the_module_was_down_takes_and_starts_nothing(rig: Rig) -> None:
    counters, *rows = expired(rig)
    # The crash came before the module itself noticed.
    rows = [replace(row, is_ending=False) if isinstance(row, GrantedClaimRow) else row for row in rows]
    (claim,) = [row for row in rows if isinstance(row, GrantedClaimRow)]
    again = restarted(rig, counters, *rows, running=(RunningAttempt(attempt=RUNNING, is_running=True),))
    late = transfer(claim.id, claim.ticket, remote(member=3))
    actions = again.handle(TransferReceived(sender=ORIGIN, message=late))
    assert only(actions, StartAttempt) == ()
    assert [one.state for one in message_in(actions, TaskStatus).attempts] == [TaskState.DENIED]
    (end,) = only(again.wait(0), EndAttempt)
    assert (end.attempt, end.grace_ns, end.cause) == (RUNNING, 0, "lease_expired")
    again.end(AttemptEnded(attempt=RUNNING, cause=Cause.LEASE_EXPIRED))
    assert again.state.executor.attempts[FINISHED].status.state is TaskState.FINISHED


def test_results_of_an_expired_lease_survive_a_crash(rig: Rig) -> None:
    again = restarted(rig, *expired(rig))
    again.greet(PARENT)
    again.wait(MINUTE + SECOND)
    assert again.state.executor.attempts[FINISHED].status.state is TaskState.FINISHED
