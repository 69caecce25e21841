"""Claims at their executor: granting, leases, renewals, places that nobody uses, and the end."""

from dataclasses import replace
from itertools import combinations, pairwise

from messiahs.core.interface.actions import EndAttempt, ExtendLease, Forget, SendControl, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import LinkDown, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedAccept,
    SchedDeny,
    TaskKill,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import GrantedClaimRow, RowKind
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND, after
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.vectors import Interval
from tests.unit.core.rig import (
    CHILD,
    GIB,
    LEASE_NS,
    ME,
    ORIGIN,
    PARENT,
    RENEWAL_NS,
    Rig,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def granted(rig: Rig, count: int = 4) -> SchedAccept:
    """Let the own machine, with four slots, grant a claim through the parent."""
    rig.measure()
    return message_in(rig.hear(PARENT, request(count=count)), SchedAccept)


def take(rig: Rig, accept: SchedAccept, *members: int) -> None:
    attempts = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(accept.claim, accept.ticket, *attempts)))


def end(rig: Rig, member: int, *, ran_ns: int = SECOND) -> TaskStatus:
    actions = rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, ran_ns=ran_ns))
    return message_in(actions, TaskStatus)


def free_slots(rig: Rig) -> object:
    rig.wait(50 * MILLISECOND)
    (machine_class,) = rig.state.updates.own.classes
    return dict(machine_class.attributes)["free_slots"]


def test_a_requirement_is_judged_by_what_the_places_before_have_left(rig: Rig) -> None:
    rig.measure(slots=8)
    actions = rig.hear(PARENT, request(count=5, requirement="$free_slots > 5 and $slots = 8"))
    assert message_in(actions, SchedAccept).places == 3


def test_nobody_can_guess_the_number_of_the_next_claim(rig: Rig) -> None:
    rig.measure(slots=8)
    numbers = [
        message_in(rig.hear(PARENT, request(number, search=SearchId(bytes([number]) * 16))), SchedAccept).claim.number
        for number in range(1, 9)
    ]
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    assert min(map(abs, steps)) > 1 << 50
    assert {step > 0 for step in steps} == {True, False}
    assert rig.state.counters.claims == 8


def test_nobody_can_guess_the_ticket_of_the_next_claim(rig: Rig) -> None:
    rig.measure(slots=8)
    tickets = [
        message_in(rig.hear(PARENT, request(number, search=SearchId(bytes([number]) * 16))), SchedAccept).ticket
        for number in range(1, 9)
    ]
    assert {len(each) for each in tickets} == {16}
    differing = [(int.from_bytes(one) ^ int.from_bytes(other)).bit_count() for one, other in combinations(tickets, 2)]
    assert min(differing) > 32


def test_a_claim_is_stored_with_the_counter_that_counts_it_before_it_is_promised(rig: Rig) -> None:
    rig.measure()
    actions = rig.hear(PARENT, request(count=2))
    (counters, claim) = only(actions, Store)
    accept = message_in(actions, SchedAccept)
    assert counters.row == rig.state.counters
    assert claim.row == GrantedClaimRow(
        id=accept.claim,
        origin=ORIGIN,
        via=PARENT,
        ticket=accept.ticket,
        tdv=tdv(),
        places=2,
        lease_ns=LEASE_NS,
        lease_until=after(rig.now, LEASE_NS),
    )


def test_a_claim_reserves_slots_memory_and_disk_at_once(rig: Rig) -> None:
    rig.measure()
    need = tdv(cpus=2, mem=7 * GIB, disk=GIB)
    assert message_in(rig.hear(PARENT, request(1, tdv=need, count=9)), SchedAccept).places == 2
    again = rig.hear(PARENT, request(2, search=SearchId(b"o" * 16)))
    assert sent(again, SchedAccept) == ()


def test_memory_that_was_promised_is_not_promised_again(rig: Rig) -> None:
    rig.measure()
    rig.hear(PARENT, request(1, tdv=tdv(mem=10 * GIB)))
    again = rig.hear(PARENT, request(2, search=SearchId(b"o" * 16), tdv=tdv(mem=10 * GIB)))
    assert sent(again, SchedAccept) == ()


def test_a_system_without_a_machine_grants_nothing(rig: Rig) -> None:
    assert sent(rig.hear(PARENT, request()), SchedAccept) == ()


def test_every_claim_has_its_own_name_and_ticket(rig: Rig) -> None:
    rig.measure()
    one = message_in(rig.hear(PARENT, request(1)), SchedAccept)
    other = message_in(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16))), SchedAccept)
    assert one.claim != other.claim
    assert one.ticket != other.ticket


def test_a_claim_to_which_no_task_comes_ends_after_half_a_minute(rig: Rig) -> None:
    accept = granted(rig)
    assert sent(rig.wait(30 * SECOND - 1), ClaimEnd) == ()
    assert sent(rig.wait(1), ClaimEnd) == ((PARENT, ClaimEnd(claim=accept.claim)),)
    assert rig.state.executor.claims[accept.claim].is_ending
    assert free_slots(rig) == Interval(bucket_of(4), bucket_of(4))


def test_unfilled_places_are_free_for_others_a_second_after_the_origin_was_notified(rig: Rig) -> None:
    accept = granted(rig, count=4)
    take(rig, accept, 1, 2, 3)
    shrinking = rig.wait(SECOND)
    assert message_in(shrinking, TaskStatus) == TaskStatus(claim=accept.claim, attempts=(), window=3)
    assert only(shrinking, Store) == ()
    (stored,) = only(rig.wait(SECOND), Store)
    assert isinstance(stored.row, GrantedClaimRow)
    assert stored.row.places == 3
    assert message_in(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16), count=9)), SchedAccept).places == 1


def test_tasks_bound_before_the_origin_was_notified_find_their_places(rig: Rig) -> None:
    accept = granted(rig, count=2)
    take(rig, accept, 1)
    rig.wait(SECOND)
    take(rig, accept, 2)
    rig.wait(SECOND)
    claim = rig.state.executor.claims[accept.claim]
    assert (claim.live, claim.row.places) == (2, 2)


def test_places_are_kept_for_a_while_for_an_origin_whose_link_is_cut(rig: Rig) -> None:
    accept = granted(rig, count=2)
    take(rig, accept, 1)
    rig.wait(SECOND)
    rig.handle(LinkDown(neighbor=PARENT))
    rig.wait(29 * SECOND)
    claim = rig.state.executor.claims[accept.claim]
    assert claim.row.places == 2
    rig.wait(3 * SECOND)
    assert claim.row.places == 1


def test_an_attempt_that_is_told_to_end_keeps_its_place_until_it_has(rig: Rig) -> None:
    accept = granted(rig, count=4)
    take(rig, accept, 1, 2)
    rig.hear(PARENT, ClaimEnd(claim=accept.claim))
    others = message_in(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16), count=9)), SchedAccept)
    assert others.places == 2
    for member in (1, 2):
        rig.handle(AttemptEnded(attempt=remote(member=member), signal=15, cause=Cause.UNBOUND))
    assert rig.state.executor.released == {}
    assert message_in(rig.hear(PARENT, request(3, search=SearchId(b"p" * 16), count=9)), SchedAccept).places == 2


def test_a_claim_in_which_nothing_runs_any_more_frees_its_places_and_ends_later(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    rig.wait(5 * SECOND)
    end(rig, 1)
    assert sent(rig.wait(2 * SECOND), ClaimEnd) == ()
    assert rig.state.executor.claims[accept.claim].row.places == 0
    assert sent(rig.wait(30 * SECOND), ClaimEnd) == ((PARENT, ClaimEnd(claim=accept.claim)),)


def test_tasks_that_come_after_all_get_the_places_back(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    end(rig, 1)
    rig.wait(3 * SECOND)
    assert rig.state.executor.claims[accept.claim].row.places == 0
    take(rig, accept, 2)
    assert rig.state.executor.claims[accept.claim].live == 1
    assert rig.state.executor.claims[accept.claim].row.places == 1


def test_the_window_is_the_places_and_work_for_a_tenth_of_a_second(rig: Rig) -> None:
    accept = granted(rig, count=4)
    take(rig, accept, 1, 2, 3)
    assert end(rig, 1, ran_ns=1 * SECOND).window == 4
    assert end(rig, 2, ran_ns=1 * SECOND).window == 4
    claim = rig.state.executor.claims[accept.claim]
    claim.mean_run_ns = 10 * MILLISECOND
    assert end(rig, 3, ran_ns=10 * MILLISECOND).window == 4 + 40


def test_the_window_never_grows_beyond_a_limit(rig: Rig) -> None:
    accept = granted(rig, count=4)
    take(rig, accept, 1)
    assert end(rig, 1, ran_ns=1).window == 4 + 256


def test_a_lease_is_renewed_every_fifth_of_it_with_everything_that_the_claim_holds(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1, 2)
    end(rig, 2)
    rig.wait(RENEWAL_NS - SECOND)
    first = message_in(rig.wait(SECOND), TaskStatus)
    assert first.renewal == 1
    assert [(each.attempt, each.state) for each in first.attempts] == [
        (remote(member=1), "executing"),
        (remote(member=2), "finished"),
    ]
    second = message_in(rig.wait(RENEWAL_NS), TaskStatus)
    assert second.renewal == 2


def test_a_lease_counts_from_sending_the_renewal_that_was_answered(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    rig.wait(RENEWAL_NS)
    sent_at = rig.now
    rig.wait(20 * SECOND)
    until = after(sent_at, LEASE_NS)
    actions = rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=1))
    assert actions == (
        Store(row=rig.state.executor.claims[accept.claim].row),
        ExtendLease(claim=accept.claim, until=until),
    )
    assert rig.state.executor.claims[accept.claim].row.lease_until == until


def test_an_answer_to_no_renewal_or_a_second_one_extends_nothing(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    rig.wait(RENEWAL_NS)
    assert rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=99)) == ()
    rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=1))
    rig.wait(SECOND)
    assert rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=1)) == ()


def test_a_late_answer_never_shortens_a_lease(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    rig.wait(2 * RENEWAL_NS)
    rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=2))
    until = rig.state.executor.claims[accept.claim].row.lease_until
    assert rig.hear(PARENT, TaskStatusAck(claim=accept.claim, renewal=1)) == ()
    assert rig.state.executor.claims[accept.claim].row.lease_until == until


def test_a_lease_that_runs_out_ends_the_claim_and_every_attempt_in_it_without_grace(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    actions = rig.wait(LEASE_NS)
    assert only(actions, EndAttempt) == (EndAttempt(attempt=remote(member=1), grace_ns=0, cause=Cause.LEASE_EXPIRED),)
    assert [action.key for action in only(actions, Forget)] == [(RowKind.GRANTED_CLAIM, accept.claim)]
    last = rig.end(AttemptEnded(attempt=remote(member=1), cause=Cause.LEASE_EXPIRED))
    assert sent(last, TaskStatus) == ()
    assert rig.state.executor.attempts == {}


def test_results_that_nobody_has_taken_outlive_the_lease_and_nothing_else_does(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1, 2)
    end(rig, 2)
    actions = rig.wait(LEASE_NS)
    assert only(actions, EndAttempt) == (EndAttempt(attempt=remote(member=1), grace_ns=0, cause=Cause.LEASE_EXPIRED),)
    assert only(actions, Forget) == ()
    rig.end(AttemptEnded(attempt=remote(member=1), cause=Cause.LEASE_EXPIRED))
    assert free_slots(rig) == Interval(low=4, high=4)
    said = message_in(rig.hear(PARENT, TaskStatusQuery(claim=accept.claim, attempts=())), TaskStatus)
    assert ([one.state for one in said.attempts], said.window) == ([TaskState.REVOKED, TaskState.FINISHED], 0)
    ack = TaskStatusAck(claim=accept.claim, taken=(remote(member=1), remote(member=2)), renewal=said.renewal)
    assert only(rig.hear(PARENT, ack), ExtendLease) == ()
    assert rig.state.executor.attempts == {}
    take(rig, accept, 3)
    assert rig.state.executor.attempts[remote(member=3)].status.state is TaskState.DENIED
    rig.hear(PARENT, ClaimEnd(claim=accept.claim))
    assert (rig.state.executor.claims, rig.state.executor.attempts) == ({}, {})


def test_results_that_nobody_ever_takes_are_kept_for_a_day(rig: Rig, policy: ScriptedPolicy) -> None:
    # A day of updates every two seconds would be 43,200 of them.
    policy.timeouts = replace(policy.timeouts, update_period_ns=HOUR)
    accept = granted(rig)
    take(rig, accept, 1)
    end(rig, 1)
    rig.wait(24 * HOUR)
    assert remote(member=1) in rig.state.executor.attempts
    rig.wait(LEASE_NS)
    assert (rig.state.executor.claims, rig.state.executor.attempts) == ({}, {})


def test_the_end_of_a_claim_by_its_origin_ends_what_still_runs_in_it(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    actions = rig.hear(PARENT, ClaimEnd(claim=accept.claim))
    grace_ns = rig.state.policy.timeouts.kill_grace_ns
    assert actions == (
        EndAttempt(attempt=remote(member=1), grace_ns=grace_ns, cause=Cause.UNBOUND),
        Forget(key=(RowKind.GRANTED_CLAIM, accept.claim)),
    )
    timers = rig.state.timers
    kinds = (TimerKind.IDLE, TimerKind.RENEWAL, TimerKind.GRANTED_LEASE, TimerKind.STATUS)
    assert not any(timers.is_set(kind, accept.claim) for kind in kinds)


def test_a_local_users_claim_ends_on_both_sides_of_the_module(rig: Rig) -> None:
    rig.measure()
    rig.submit()
    (claim_id,) = rig.state.executor.claims
    assert rig.state.origin.claims[claim_id].row.via == ME
    (attempt,) = rig.state.executor.attempts
    rig.handle(AttemptStarted(attempt=attempt))
    rig.end(AttemptEnded(attempt=attempt, exit_code=0))
    assert not (rig.state.executor.claims)
    assert not (rig.state.origin.claims)
    assert not (rig.state.executor.attempts)
    rig.wait(5 * SECOND)
    assert rig.state.origin.shapes == {}


def test_a_claim_that_ends_promises_only_what_still_runs_in_it(rig: Rig) -> None:
    accept = granted(rig, count=4)
    rig.wait(30 * SECOND)
    assert rig.state.executor.claims[accept.claim].is_ending
    assert message_in(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16), count=9)), SchedAccept).places == 4


def test_a_kill_of_what_has_ended_ends_nothing(rig: Rig) -> None:
    accept = granted(rig)
    take(rig, accept, 1)
    end(rig, 1)
    kill = TaskKill(claim=accept.claim, attempts=(remote(member=1), remote(member=2)))
    assert rig.hear(PARENT, kill) == ()


def test_the_rest_of_a_count_that_cannot_be_granted_is_denied(rig: Rig) -> None:
    rig.measure()
    rig.handle(LinkDown(neighbor=CHILD))
    actions = rig.hear(PARENT, request(count=5))
    kinds = [type(action.message) for action in actions if isinstance(action, SendControl)]
    assert kinds == [SchedAccept, SchedDeny]
