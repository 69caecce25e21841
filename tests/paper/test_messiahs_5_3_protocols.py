"""MESSIAHS 5.3, the protocols: a test per statement about the update, control and task channels, as far as built.

Where section 7 contradicts 5.3.1 (parents do send vectors to children, by equation 20), section 7 holds.
"""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, EndAttempt, Report, SendControl, SendTasks, SendVector
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import StoreChanged, TransferReceived, VectorReceived
from messiahs.core.interface.messages import (
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskKill,
    TaskStatus,
    TaskStatusQuery,
    VectorKind,
)
from messiahs.core.model.instants import SECOND
from messiahs.core.model.trust import Trust
from tests.unit.core.rig import (
    CHILD,
    ME,
    NEIGHBORS,
    ORIGIN,
    PARENT,
    SIBLING,
    STRANGER,
    TICKET,
    Rig,
    accept,
    deny,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
    view,
)


def started() -> Rig:
    """Make a module with a machine, a child, a sibling and a parent."""
    rig = Rig(module=make_module(neighbors=NEIGHBORS))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    rig.measure()
    return rig


def executing(rig: Rig) -> SchedAccept:
    """Let a task of another origin run here."""
    claim = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    return claim


def machines_sent(actions: tuple[Action, ...], kind: VectorKind) -> list[int]:
    return [action.message.vector.machines for action in only(actions, SendVector) if action.message.kind is kind]


# 5.3.1 The update channel


def test_each_update_message_holds_the_description_of_the_sending_system() -> None:
    rig = started()
    assert machines_sent(rig.hear(PARENT, SystemStatusQuery()), VectorKind.FOR_PARENTS) == [1]


def test_the_update_channel_is_unidirectional_a_vector_is_not_answered_there() -> None:
    rig = started()
    message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=view(), period_ns=2 * SECOND, age_ns=0)
    assert rig.handle(VectorReceived(sender=CHILD, message=message)) == ()


def test_vectors_are_advertised_at_the_period_however_recently_others_were_heard() -> None:
    rig = started()
    rounds = 0
    for _ in range(40):
        rig.see(CHILD)
        rounds += len(machines_sent(rig.wait(SECOND), VectorKind.FOR_SIBLINGS))
    assert 20 <= rounds <= 22


def test_polled_updates_a_query_on_the_control_channel_is_answered_on_the_update_channel() -> None:
    rig = started()
    actions = rig.hear(SIBLING, SystemStatusQuery())
    assert [(type(action), getattr(action, "to", None)) for action in actions] == [(SendVector, SIBLING)]


def test_no_update_cycle_what_comes_from_parents_and_siblings_is_not_in_the_systems_own_vector() -> None:
    rig = started()
    rig.see(PARENT)
    rig.see(SIBLING)
    assert machines_sent(rig.hear(PARENT, SystemStatusQuery()), VectorKind.FOR_PARENTS) == [1]
    rig.see(CHILD)
    assert machines_sent(rig.hear(PARENT, SystemStatusQuery()), VectorKind.FOR_PARENTS) == [2]


def test_what_comes_from_siblings_is_used_to_place_tasks() -> None:
    rig = started()
    rig.handle(StoreChanged(has_space=True))
    rig.see(SIBLING, view(arch="vax"))
    ((to, _),) = sent(rig.submit(requirement='$arch eq "vax"'), SchedRequest)
    assert to == SIBLING


# 5.3.2 The control channel


def test_a_sched_request_holds_the_task_description_vector() -> None:
    rig = started()
    rig.see(CHILD)
    ((_, message),) = sent(
        rig.submit(tdv=tdv(cpus=4, est_time=5), requirement="$speed < 0 or $load > 0"), SchedRequest
    ) or ((CHILD, request(tdv=tdv(cpus=4, est_time=5))),)
    assert message.tdv == tdv(cpus=4, est_time=5)


@pytest.mark.parametrize("wanted", [SchedAccept, SchedDeny])
def test_an_answer_holds_the_number_of_the_request_that_it_answers(wanted: type[SchedAccept | SchedDeny]) -> None:
    rig = started()
    need = tdv() if wanted is SchedAccept else tdv(mem=1 << 60)
    assert message_in(rig.hear(PARENT, request(4711, tdv=need)), wanted).request == 4711


def test_a_status_query_is_answered_by_a_task_status_and_an_executing_task_may_be_queued() -> None:
    rig = started()
    claim = executing(rig)
    (said,) = message_in(
        rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(remote(),))), TaskStatus
    ).attempts
    assert (said.state, said.substate) == ("executing", "queued")


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (AttemptEnded(attempt=remote(), exit_code=0), "finished"),
        (AttemptEnded(attempt=remote(), exit_code=77), "finished"),
        (AttemptEnded(attempt=remote(), signal=7), "aborted"),
        (AttemptEnded(attempt=remote(), signal=15, cause=Cause.KILLED), "killed"),
        (AttemptEnded(attempt=remote(), cause=Cause.LEASE_EXPIRED), "revoked"),
    ],
)
def test_the_receiver_is_notified_of_the_completion_of_a_task_and_how_it_ended(ended: AttemptEnded, state: str) -> None:
    rig = started()
    executing(rig)
    ((to, message),) = sent(rig.end(ended), TaskStatus)
    assert to == PARENT
    assert [each.state for each in message.attempts] == [state]


def test_denied_means_that_the_system_would_not_accept_the_task_for_execution() -> None:
    rig = started()
    claim = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(StoreChanged(has_space=False))
    arrived = TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote()))
    assert [each.state for each in message_in(rig.handle(arrived), TaskStatus).attempts] == ["denied"]


def test_task_kill_stops_the_task_and_a_task_status_follows() -> None:
    rig = started()
    claim = executing(rig)
    (end,) = rig.hear(PARENT, TaskKill(claim=claim.claim, attempts=(remote(),)))
    assert isinstance(end, EndAttempt)
    ended = rig.end(AttemptEnded(attempt=remote(), signal=15, cause=end.cause))
    assert [each.state for each in message_in(ended, TaskStatus).attempts] == ["killed"]


def test_control_messages_of_systems_that_are_no_neighbors_are_not_heard() -> None:
    rig = started()
    assert [type(action) for action in rig.hear(STRANGER, request())] == [Report]


# 5.3.3 The task channel


def test_a_task_goes_directly_to_the_destination_that_was_negotiated_on_the_control_channel() -> None:
    rig = started()
    rig.see(CHILD, view(arch="vax"))
    ((to, ask),) = sent(rig.submit(requirement='$arch eq "vax"'), SchedRequest)
    (moved,) = only(rig.hear(to, accept(ask.id)), SendTasks)
    assert (moved.to, moved.address) == ("far", "far:1")


def test_a_task_for_a_system_that_admits_no_outside_system_goes_to_the_encapsulating_one_which_forwards_it() -> None:
    ours, theirs = (Trust(roots=(name * 16,), vouchers=(name * 16,)) for name in (b"o", b"t"))
    rig = Rig(module=make_module(neighbors=NEIGHBORS, trust=ours, apart=(PARENT,)))
    rig.resume()
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    ask = message_in(rig.hear(PARENT, request(trust=theirs)), SchedRequest)
    granted = message_in(rig.hear(CHILD, replace(accept(ask.id), hop_ticket=TICKET, trust=ours)), SchedAccept)
    assert (granted.server, granted.address) == (ME, "me:1")
    event = TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote()))
    (forwarded,) = only(rig.handle(event), SendTasks)
    assert (forwarded.to, forwarded.message) == (CHILD, replace(event.message, ticket=TICKET))


def test_no_task_is_moved_before_a_destination_was_negotiated() -> None:
    rig = started()
    rig.see(CHILD, view(arch="vax"))
    actions = rig.submit(requirement='$arch eq "vax"')
    ((_, ask),) = sent(actions, SchedRequest)
    denied = rig.hear(CHILD, deny(ask.id))
    assert only((*actions, *denied), SendTasks) == ()
    assert not any(isinstance(action, SendControl) and action.to == ORIGIN for action in denied)
