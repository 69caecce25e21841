"""MESSIAHS 6, event-based semantics: a test per statement about timeouts and messages, as far as they are built."""

from messiahs.core.interface.actions import SendControl, SendVector
from messiahs.core.interface.events import Measured, TransferReceived, VectorReceived
from messiahs.core.interface.messages import (
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskState,
    TaskStatus,
    TaskStatusQuery,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.instants import HOUR, SECOND
from tests.unit.core.rig import (
    CHILD,
    FAR,
    NEIGHBORS,
    ORIGIN,
    PARENT,
    SIBLING,
    Rig,
    accept,
    deny,
    make_module,
    message_in,
    only,
    remote,
    request,
    sdv,
    sent,
    transfer,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def started(policy: ScriptedPolicy | None = None) -> Rig:
    """Make a module with a child, a sibling and a parent that each have room."""
    rig = Rig(module=make_module(neighbors=NEIGHBORS, policy=policy))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system)
    rig.wait(SECOND // 10)
    return rig


# 6.1 Timeout events


def test_an_output_timeout_recomputes_the_vectors_and_advertises_them_to_every_neighbor() -> None:
    rig = started()
    rig.module.state.updates.measured = sdv()
    vectors = only(rig.wait(2 * SECOND), SendVector)
    assert {(action.to, action.message.kind) for action in vectors} == {
        (CHILD, VectorKind.FOR_CHILDREN),
        (PARENT, VectorKind.FOR_PARENTS),
        (SIBLING, VectorKind.FOR_SIBLINGS),
    }
    assert [action.message.vector.machines for action in vectors if action.to == PARENT][-1] == 2


def test_local_policy_determines_the_length_of_the_period() -> None:
    rig = started(ScriptedPolicy(timeouts=Timeouts(update_period_ns=7 * SECOND, input_ns=HOUR)))
    rig.wait(7 * SECOND)
    assert len([1 for action in only(rig.wait(70 * SECOND), SendVector) if action.to == PARENT]) == 10


def test_an_input_timeout_occurs_when_a_neighbor_was_not_heard_for_a_prescribed_time_and_it_is_queried() -> None:
    rig = started()
    assert SendControl(to=SIBLING, message=SystemStatusQuery()) in rig.wait(6 * SECOND)


def test_a_neighbor_that_stays_silent_is_declared_down_which_is_no_error() -> None:
    rig = started()
    rig.wait(60 * SECOND)
    assert rig.state.updates.views == {}
    rig.see(CHILD)
    assert rig.state.updates.views


def test_local_policy_decides_whether_a_silent_neighbor_is_queried_or_declared_down() -> None:
    rig = started(ScriptedPolicy(timeouts=Timeouts(queries_silent=False)))
    assert only(rig.wait(60 * SECOND), SendControl) == ()
    assert rig.state.updates.views == {}


def test_a_module_may_be_driven_by_polls_so_that_the_vectors_of_neighbors_come_as_answers() -> None:
    rig = started(ScriptedPolicy(timeouts=Timeouts(update_period_ns=HOUR, poll_ns=5 * SECOND)))
    polls = only(rig.wait(5 * SECOND), SendControl)
    assert polls == tuple(SendControl(to=each, message=SystemStatusQuery()) for each in (CHILD, PARENT, SIBLING))
    rig.see(CHILD)
    assert SendControl(to=CHILD, message=SystemStatusQuery()) not in rig.wait(5 * SECOND - 1)


# 6.2 Message events


def test_sched_request_the_tdv_is_compared_with_the_module_itself_first_and_accepted_if_it_fits() -> None:
    rig = started()
    rig.measure()
    granted = message_in(rig.hear(PARENT, request(9)), SchedAccept)
    assert granted.request == 9


def test_sched_request_that_the_module_does_not_accept_goes_to_the_most_likely_candidate() -> None:
    rig = started()
    rig.see(CHILD, view(free_slots=0))
    rig.see(SIBLING, view(free_slots=0))
    ((to, _),) = sent(rig.submit(), SchedRequest)
    assert to == PARENT


def test_sched_request_one_candidate_is_asked_at_a_time() -> None:
    rig = started()
    assert len(sent(rig.submit(members=50), SchedRequest)) == 1
    assert len(rig.state.hop.asks) == 1


def test_sched_accept_of_our_own_request_opens_the_task_channel_to_the_acceptor_and_passes_the_task() -> None:
    rig = started()
    ((to, ask),) = sent(rig.submit(), SchedRequest)
    ((receiver, message),) = sent(rig.hear(to, accept(ask.id)), TaskTransfer)
    assert receiver == FAR
    assert len(message.tasks) == 1


def test_sched_accept_of_anothers_request_is_forwarded() -> None:
    rig = started()
    ((to, ask),) = sent(rig.hear(PARENT, request(9)), SchedRequest)
    ((receiver, message),) = sent(rig.hear(to, accept(ask.id)), SchedAccept)
    assert (receiver, message.request) == (PARENT, 9)


def test_sched_deny_makes_the_module_ask_the_next_eligible_system() -> None:
    rig = started()
    ((first, ask),) = sent(rig.submit(), SchedRequest)
    ((second, _),) = sent(rig.hear(first, deny(ask.id)), SchedRequest)
    assert first != second


def test_sched_deny_is_forwarded_towards_the_original_sender_when_no_eligible_system_is_left() -> None:
    rig = started()
    ((to, ask),) = sent(rig.hear(PARENT, request(9)), SchedRequest)
    ((receiver, message),) = sent(rig.hear(to, deny(ask.id)), SchedDeny)
    assert (receiver, message.request) == (PARENT, 9)


def test_system_status_query_returns_the_vector_through_the_update_channel() -> None:
    rig = started()
    actions = rig.hear(PARENT, SystemStatusQuery())
    assert [type(action) for action in actions] == [SendVector]


def test_task_status_query_is_answered_with_the_tasks_status() -> None:
    rig = started()
    rig.measure()
    claim = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    answer = message_in(rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=(remote(),))), TaskStatus)
    assert [each.state for each in answer.attempts] == [TaskState.EXECUTING]


def test_status_vector_of_a_neighbor_is_saved_and_resets_the_timers_of_its_link() -> None:
    rig = started()
    rig.wait(6 * SECOND)
    assert rig.state.updates.queried[CHILD]
    rig.see(CHILD, view(speed=9))
    saved = rig.state.updates.views[CHILD, VectorKind.FOR_PARENTS]
    assert (saved.message.vector, saved.received_at) == (view(speed=9), rig.now)
    assert CHILD not in rig.state.updates.queried
    assert rig.state.timers.is_set(TimerKind.INPUT, CHILD)


def test_status_vector_of_a_system_that_is_neither_child_sibling_nor_parent_is_not_saved() -> None:
    rig = started()
    message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=view(), period_ns=SECOND, age_ns=0)
    rig.handle(VectorReceived(sender=FAR, message=message))
    assert not any(system == FAR for system, _ in rig.state.updates.views)


def test_what_the_own_machine_is_measured_at_reaches_the_vectors() -> None:
    rig = started()
    rig.handle(Measured(sdv=sdv(slots=9)))
    vectors = [action.message for action in only(rig.wait(SECOND // 10), SendVector) if action.to == PARENT]
    assert [vector.vector.machines for vector in vectors] == [2]
