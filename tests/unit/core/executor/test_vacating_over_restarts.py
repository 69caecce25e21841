"""A suspended attempt that is to vacate when its module restarts, while others have its slots."""

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.events import Measured, TransferReceived
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.interface.rows import Row
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.state.rule_timing import Standing
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import ORIGIN, PARENT, Rig, message_in, only, remote, request, sdv, tdv, transfer

FOR_BOB = """accept from any { limit 9 tasks; }
running {
    suspend when $user eq "ann" and $here.keyboard_idle < 30s;
    resume when $here.keyboard_idle >= 300s;
    vacate when $task.suspended >= 600s grace 60s;
}"""
POLICY = parse_policy(FOR_BOB, file="bob")
NEIGHBORS = (Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),)


def begin(rig: Rig, attempt: AttemptId, *, user: str, search: bytes) -> None:
    claim = message_in(rig.hear(PARENT, request(attempt.task.number, search=search, tdv=tdv(user=user))), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, attempt)))
    rig.handle(AttemptStarted(attempt=attempt))


def test_it_gets_no_grace_and_so_never_runs_beside_them(module: ModuleFactory) -> None:
    rig = module(policy=POLICY, neighbors=NEIGHBORS)
    rig.greet(PARENT)
    rig.measure(slots=1, keyboard_idle=600)
    begin(rig, remote(1), user="ann", search=b"a" * 16)
    rig.handle(Measured(sdv=sdv(slots=1, keyboard_idle=3)))
    begin(rig, remote(2), user="bob", search=b"b" * 16)
    (before,) = only(rig.wait(601 * SECOND), EndAttempt)
    assert (before.attempt, before.grace_ns) == (remote(1), 0)
    # It was stored, and the daemon ended before the starter heard of it.
    executor = rig.state.executor
    rows: tuple[Row, ...] = (*(claim.row for claim in executor.claims.values()), *executor.attempts.values())
    suspended = RunningAttempt(attempt=remote(1), is_running=True, suspended_ns=601 * SECOND)
    others = RunningAttempt(attempt=remote(2), is_running=True, ran_ns=601 * SECOND)
    again = module(policy=POLICY, neighbors=NEIGHBORS)
    again.now = rig.now
    assert only(again.resume(Remains(rows=rows, running=(suspended, others))), EndAttempt) == (before,)
    assert again.state.executor.guards[remote(1)].memory.standing is Standing.VACATING
