"""GPUs, licences and other counted things: assigned to one attempt at a time, over restarts and changes of numbers."""

import pytest

from messiahs.core.interface.actions import Action, StartAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import Measured, TransferReceived
from messiahs.core.interface.messages import (
    DenyCode,
    SchedAccept,
    SchedDeny,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow, Row
from messiahs.core.model.counted import Counted
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.task_filter.local_resources import own_sdv
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import Interval
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    ORIGIN,
    PARENT,
    Rig,
    make_module,
    message_in,
    only,
    remote,
    request,
    sdv,
    sent,
    tdv,
    transfer,
)

GPUS = Counted(name="gpus", numbers=(0, 1))


def measure(rig: Rig, *counted: Counted, slots: int = 8) -> None:
    rig.handle(Measured(sdv=sdv(slots=slots), counted=counted))
    rig.wait(SECOND // 10)


@pytest.fixture
def machine(module: ModuleFactory) -> Rig:
    """Make a machine with eight slots and the GPUs 0 and 1."""
    rig = module()
    rig.greet(PARENT)
    measure(rig, GPUS)
    return rig


def ask(rig: Rig, number: int, *, count: int = 1, **said: object) -> tuple[Action, ...]:
    return rig.hear(PARENT, request(number, search=SearchId(number.to_bytes(16)), count=count, **said))


def granted(rig: Rig, number: int, *, count: int = 1, gpus: int = 1) -> SchedAccept:
    return message_in(ask(rig, number, count=count, tdv=tdv(gpus=gpus, user=f"u{number}")), SchedAccept)


def take(rig: Rig, accept: SchedAccept, *members: int) -> tuple[Action, ...]:
    attempts = [remote(member=member) for member in members]
    return rig.handle(TransferReceived(sender=ORIGIN, message=transfer(accept.claim, accept.ticket, *attempts)))


def assigned(actions: tuple[Action, ...]) -> list[tuple[Counted, ...]]:
    return [start.assigned for start in only(actions, StartAttempt)]


def of(*numbers: int, name: str = "gpus") -> tuple[Counted, ...]:
    return (Counted(name=name, numbers=numbers),)


def end(rig: Rig, member: int) -> None:
    rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, ran_ns=SECOND))


def free(rig: Rig, name: str = "free_gpus") -> object:
    here = own_sdv(rig.state)
    assert here is not None
    return here.description().get(name)


def test_no_more_places_are_granted_than_there_are_things_for(machine: Rig) -> None:
    assert granted(machine, 1, count=5).places == 2
    assert free(machine) == 0
    assert sent(ask(machine, 2, tdv=tdv(gpus=1)), SchedAccept) == ()
    assert message_in(ask(machine, 3), SchedAccept).places == 1


def test_each_attempt_has_things_of_its_own(machine: Rig) -> None:
    accept = granted(machine, 1, count=2)
    assert assigned(take(machine, accept, 1, 2)) == [of(0), of(1)]


def test_a_task_has_several_things_of_several_kinds(machine: Rig) -> None:
    measure(machine, GPUS, Counted(name="licences", numbers=(0, 1, 2)))
    accept = message_in(ask(machine, 1, tdv=tdv(gpus=2, licences=1)), SchedAccept)
    (start,) = only(take(machine, accept, 1), StartAttempt)
    assert start.assigned == (*of(0, 1), *of(0, name="licences"))
    assert (free(machine), free(machine, "free_licences")) == (0, 2)


def test_a_thing_is_free_again_when_its_attempt_has_ended(machine: Rig) -> None:
    accept = granted(machine, 1, count=2)
    take(machine, accept, 1, 2)
    end(machine, 1)
    assert assigned(take(machine, accept, 3)) == [of(0)]


def test_nothing_waits_behind_an_attempt_with_things(machine: Rig) -> None:
    accept = granted(machine, 1, count=2)
    take(machine, accept, 1, 2)
    machine.handle(AttemptStarted(attempt=remote(member=1)))
    actions = machine.end(AttemptEnded(attempt=remote(member=1), exit_code=0, ran_ns=MILLISECOND))
    assert message_in(actions, TaskStatus).window == 2


def test_an_attempt_beyond_the_places_is_denied(machine: Rig) -> None:
    accept = granted(machine, 1)
    take(machine, accept, 1)
    (status,) = message_in(take(machine, accept, 2), TaskStatus).attempts
    assert (status.state, status.text) == (TaskState.DENIED, "the counted things of the claim are in use")


def test_an_attempt_that_is_being_ended_keeps_its_things_until_it_is_gone(machine: Rig) -> None:
    accept = granted(machine, 1)
    take(machine, accept, 1)
    machine.hear(PARENT, TaskStatusAck(claim=accept.claim, unbound=(remote(member=1),)))
    other = granted(machine, 2)
    assert assigned(take(machine, other, 2)) == [of(1)]


def test_the_origin_learns_which_things_an_attempt_has(machine: Rig) -> None:
    accept = granted(machine, 1)
    take(machine, accept, 1)
    query = TaskStatusQuery(claim=accept.claim, attempts=(remote(member=1),))
    (status,) = message_in(machine.hear(PARENT, query), TaskStatus).attempts
    assert status.assigned == of(0)
    actions = machine.end(AttemptEnded(attempt=remote(member=1), cause=Cause.TIME_LIMIT, ran_ns=SECOND))
    (ended,) = message_in(actions, TaskStatus).attempts
    assert (ended.state, ended.assigned) == (TaskState.ABORTED, of(0))


def test_a_request_for_more_than_the_machine_has_is_told_so(machine: Rig) -> None:
    ((_, deny),) = sent(ask(machine, 1, tdv=tdv(gpus=3)), SchedDeny)
    assert [reason.code for reason in deny.reasons] == [DenyCode.NO_CLASS]
    granted(machine, 2, count=2)
    ((_, deny),) = sent(ask(machine, 3, tdv=tdv(gpus=1)), SchedDeny)
    assert [reason.code for reason in deny.reasons] == [DenyCode.NO_CAPACITY]


def test_things_that_the_machine_does_not_count_are_attributes_like_others(machine: Rig) -> None:
    accept = message_in(ask(machine, 1, tdv=tdv(level=7), count=9), SchedAccept)
    assert accept.places == 8
    assert assigned(take(machine, accept, 1)) == [()]


def test_a_name_of_the_catalogue_is_no_counted_thing(machine: Rig) -> None:
    # `$free_slots` says how many slots are free, but `--set slots=3` asks for nothing.
    assert message_in(ask(machine, 1, tdv=tdv(slots=9)), SchedAccept).places == 1


def test_neighbors_learn_how_many_there_are_and_how_many_are_free(machine: Rig) -> None:
    granted(machine, 1)
    machine.wait(50 * MILLISECOND)
    (machine_class,) = machine.state.updates.own.classes
    attributes = dict(machine_class.attributes)
    assert attributes["gpus"] == Interval(bucket_of(2), bucket_of(2))
    assert attributes["free_gpus"] == Interval(bucket_of(1), bucket_of(1))


def resumed(rows: tuple[Row, ...], *running: RunningAttempt, counted: Counted = GPUS) -> Rig:
    rig = Rig(module=make_module())
    rig.resume(Remains(rows=rows, running=running))
    rig.greet(PARENT)
    measure(rig, counted)
    return rig


def rows_of(rig: Rig) -> tuple[Row, ...]:
    claims = tuple(claim.row for claim in rig.state.executor.claims.values())
    return (rig.state.counters, *claims, *rig.state.executor.attempts.values())


def test_a_restart_keeps_what_running_attempts_have(machine: Rig) -> None:
    first, second = granted(machine, 1), granted(machine, 2)
    take(machine, first, 1)
    take(machine, second, 2)
    end(machine, 1)
    machine.hear(PARENT, TaskStatusAck(claim=first.claim, taken=(remote(member=1),)))
    rig = resumed(rows_of(machine), RunningAttempt(attempt=remote(member=2), is_running=True))
    assert free(rig) == 0
    assert assigned(take(rig, first, 3)) == [of(0)]


def test_what_is_assigned_is_stored_before_the_attempt_starts(machine: Rig) -> None:
    accept = granted(machine, 1)
    stored = [each.row for each in only(take(machine, accept, 1), Store)]
    assert [row.status.assigned for row in stored if isinstance(row, AttemptRow)] == [of(0)]
    (claim,) = [row for row in rows_of(machine) if isinstance(row, GrantedClaimRow)]
    assert claim.uses == (("gpus", 1),)


def test_a_number_that_the_machine_has_lost_is_assigned_to_nobody_else(machine: Rig) -> None:
    accept = granted(machine, 1)
    take(machine, accept, 1)
    found = RunningAttempt(attempt=remote(member=1), is_running=True)
    rig = resumed(rows_of(machine), found, counted=Counted(name="gpus", numbers=(1, 2)))
    assert free(rig) == 1
    assert assigned(take(rig, granted(rig, 2), 2)) == [of(1)]
    again = resumed(rows_of(machine), found, counted=Counted(name="gpus", numbers=(0,)))
    assert free(again) == 0


def test_a_claim_of_things_that_are_gone_gets_none(machine: Rig) -> None:
    accept = granted(machine, 1, count=2)
    rig = resumed(rows_of(machine), counted=Counted(name="gpus", numbers=(5,)))
    actions = take(rig, accept, 1, 2)
    assert assigned(actions) == [of(5)]
    (status,) = message_in(actions, TaskStatus).attempts
    assert status.state is TaskState.DENIED
