"""An origin with an older copy of its database: its tasks go on, and none waits for an answer for ever."""

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.events import AnswerTo, Submitted, TransferReceived
from messiahs.core.interface.messages import (
    AttemptStatus,
    SchedAccept,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.task_files import Output
from tests.unit.core.pair import LEFT, SETTLED_NS, Pair
from tests.unit.core.rig import COMMAND, ORIGIN, PARENT, Rig, message_in, only, remote, request, tdv, transfer

MEMBERS = 12


def claimed(rig: Rig, number: int = 1, *, places: int = 2) -> SchedAccept:
    rig.measure()
    return message_in(rig.hear(PARENT, request(number, search=bytes([number]) * 16, count=places)), SchedAccept)


def bring(rig: Rig, claim: SchedAccept) -> tuple[AttemptStatus, ...]:
    """Bring an attempt that never starts, and give what is said of it."""
    message = transfer(claim.claim, claim.ticket, remote())
    actions = rig.handle(TransferReceived(sender=ORIGIN, message=message))
    assert only(actions, StartAttempt) == ()
    return message_in(actions, TaskStatus).attempts


def ask(rig: Rig, claim: SchedAccept) -> tuple[AttemptStatus, ...]:
    return message_in(rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(remote(),))), TaskStatus).attempts


def run_and_take(rig: Rig, claim: SchedAccept, *outputs: Output) -> None:
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    rig.end(AttemptEnded(attempt=remote(), exit_code=4, outputs=outputs))
    rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))


def test_every_task_ends_when_the_origin_returns_to_an_older_copy_of_its_database() -> None:
    pair = Pair()
    pair.start()
    pair.run(lambda: False, for_ns=SETTLED_NS)
    pair.post(
        LEFT,
        Submitted(
            answer_to=AnswerTo(1), key=ClientKey("k"), tdv=tdv(), requirement="", command=COMMAND, members=MEMBERS
        ),
    )
    pair.run(lambda: len(pair.started) >= 2, for_ns=MINUTE)
    older = dict(pair.hosts[LEFT].rows)
    pair.run(lambda: len(pair.ended()) >= MEMBERS // 2, for_ns=MINUTE)
    assert len(pair.ended()) < MEMBERS
    pair.kill_at = (LEFT, pair.commits[LEFT] + 1)
    pair.run(lambda: not pair.hosts[LEFT].is_up, for_ns=MINUTE)
    pair.hosts[LEFT].rows = older
    pair.run(lambda: len(pair.ended()) == MEMBERS, for_ns=2 * MINUTE)
    assert [row.state for row in pair.ended()] == [TaskState.FINISHED] * MEMBERS


def test_an_end_without_outputs_is_reported_again_to_an_origin_that_has_lost_it(rig: Rig) -> None:
    claim = claimed(rig)
    run_and_take(rig, claim, Output(name="stdout", size_bytes=0), Output(name="stderr", size_bytes=0))
    for said in (bring(rig, claim), ask(rig, claim)):
        assert [(one.state, one.exit_code) for one in said] == [(TaskState.FINISHED, 4)]
    assert rig.state.executor.attempts == {}


def test_an_end_whose_outputs_were_taken_is_refused_so_that_its_task_runs_again(rig: Rig) -> None:
    claim = claimed(rig)
    run_and_take(rig, claim, Output(name="stdout", size_bytes=3))
    for said in (bring(rig, claim), ask(rig, claim)):
        assert [(one.state, one.cause) for one in said] == [(TaskState.DENIED, "refused")]
    rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=(remote(),)))
    assert rig.state.executor.attempts == {}


def test_an_attempt_that_ended_in_another_claim_is_refused_for_ever(rig: Rig) -> None:
    first, second = claimed(rig, 1), claimed(rig, 2)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(first.claim, first.ticket, remote())))
    rig.end(AttemptEnded(attempt=remote(), exit_code=0))
    assert [one.state for one in ask(rig, second)] == [TaskState.DENIED]
    rig.hear(PARENT, TaskStatusAck(claim=first.claim, taken=(remote(),)))
    rig.wait(SECOND)
    assert [one.state for one in bring(rig, second)] == [TaskState.DENIED]
