"""Reports of results that the origin does not take: a page at a time, and bounded for each neighbor."""

from messiahs.core.executor.kept_results import CLOSED_BYTES, LOST_BYTES
from messiahs.core.interface.actions import Action, Forget
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import (
    AttemptStatus,
    ClaimEnd,
    SchedAccept,
    SchedDeny,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.interface.rows import Row
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, SearchId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.model.task_files import Output
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    LEASE_NS,
    ORIGIN,
    PARENT,
    RENEWAL_NS,
    Rig,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    transfer,
)

_MANY = tuple(Output(name=f"work/{number:0>250}", size_bytes=0, is_executable=False) for number in range(1_000))
"""Outputs that take more than a page."""


def with_claim(rig: Rig) -> SchedAccept:
    rig.measure(slots=40)
    return message_in(rig.hear(PARENT, request(count=4)), SchedAccept)


def end(rig: Rig, claim: SchedAccept, *members: int, outputs: tuple[Output, ...] = ()) -> tuple[Action, ...]:
    """Let tasks run to their ends; return what the module then did."""
    actions: list[Action] = []
    for member in members:
        bound = transfer(claim.claim, claim.ticket, remote(member=member))
        rig.handle(TransferReceived(sender=ORIGIN, message=bound))
        actions += rig.end(AttemptEnded(attempt=remote(member=member), exit_code=0, outputs=outputs))
    return tuple(actions)


def reports(actions: tuple[Action, ...]) -> list[AttemptStatus]:
    return [each for _, message in sent(actions, TaskStatus) for each in message.attempts]


def attempts(actions: tuple[Action, ...]) -> list[AttemptId]:
    return [each.attempt for each in reports(actions)]


def take(rig: Rig, claim: SchedAccept, *taken: AttemptId, renewal: int = 0) -> tuple[Action, ...]:
    return rig.hear(PARENT, TaskStatusAck(claim=claim.claim, taken=taken, renewal=renewal))


def renewal(rig: Rig, claim: SchedAccept) -> tuple[Action, ...]:
    """Wait for the next renewal, and answer it."""
    actions = rig.wait(RENEWAL_NS)
    (number,) = [message.renewal for _, message in sent(actions, TaskStatus) if message.renewal]
    take(rig, claim, renewal=number)
    return actions


def test_results_that_the_origin_takes_follow_page_by_page_and_each_is_reported_once(rig: Rig) -> None:
    claim, members = with_claim(rig), range(1, 4_001)
    with rig.checked_at_the_end():
        end(rig, claim, *members)
    page = attempts(renewal(rig, claim))
    assert 500 < len(page) < 3_000
    reported = list(page)
    while page:
        page = attempts(take(rig, claim, *page))
        reported += page
    assert sorted(reported) == sorted(remote(member=member) for member in members)
    assert rig.state.executor.attempts == {}
    assert rig.state.executor.kept_bytes == {}


def test_the_next_page_follows_one_of_which_the_origin_knows_nothing_any_more(rig: Rig) -> None:
    # It has taken them before, and that acknowledgment was lost.
    claim = with_claim(rig)
    with rig.checked_at_the_end():
        end(rig, claim, *range(1, 4_001))
    page = attempts(renewal(rig, claim))
    following = rig.hear(PARENT, TaskStatusAck(claim=claim.claim, unbound=tuple(page)))
    assert len(attempts(following)) > 500


def test_an_origin_that_takes_nothing_gets_one_page_with_each_renewal_and_all_in_turn(rig: Rig) -> None:
    claim = with_claim(rig)
    end(rig, claim, 1, 2, 3, outputs=_MANY)
    running = transfer(claim.claim, claim.ticket, remote(member=4))
    rig.handle(TransferReceived(sender=ORIGIN, message=running))
    pages = [attempts(renewal(rig, claim)) for _ in range(4)]
    # The one that has not ended is in all of them.
    assert pages == [[remote(member=member), remote(member=4)] for member in (1, 2, 3, 1)]


def test_a_query_without_names_is_answered_once_in_ten_seconds_and_then_once_more(rig: Rig) -> None:
    claim = with_claim(rig)
    end(rig, claim, 1)
    query = TaskStatusQuery(claim=claim.claim, attempts=())
    assert attempts(rig.hear(PARENT, query)) == [remote(member=1)]
    assert [sent(rig.hear(PARENT, query), TaskStatus) for _ in range(100)] == [()] * 100
    assert attempts(rig.wait(10 * SECOND)) == [remote(member=1)]
    assert attempts(rig.wait(RENEWAL_NS - SECOND)) == []


def test_a_query_with_names_is_answered_as_far_as_some_pages_go(rig: Rig) -> None:
    claim = with_claim(rig)
    end(rig, claim, *range(1, 11), outputs=_MANY)
    named = tuple(remote(member=member) for member in range(1, 11))
    answer = attempts(rig.hear(PARENT, TaskStatusQuery(claim=claim.claim, attempts=named)))
    assert answer == list(named[: len(answer)])
    assert 1 <= len(answer) <= 2


def test_results_that_come_at_once_are_reported_by_several_events(rig: Rig) -> None:
    claim = with_claim(rig)
    for member in (1, 2, 3):
        rig.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote(member=member))))
    for member in (1, 2, 3):
        rig.handle(AttemptEnded(attempt=remote(member=member), exit_code=0, outputs=_MANY))
    steps = [attempts(rig.module.expire(rig.now)) for _ in range(3)]
    assert steps == [[remote(member=member)] for member in (1, 2, 3)]


def test_a_neighbor_whose_origins_take_no_large_results_gets_no_places_until_they_do(rig: Rig) -> None:
    claim, members = with_claim(rig), list(range(1, 70))
    with rig.checked_at_the_end():
        actions = end(rig, claim, *members, outputs=_MANY)
    assert rig.state.executor.kept_bytes[PARENT] > CLOSED_BYTES
    *_, (_, last) = sent(actions, TaskStatus)
    assert last.window == 0
    assert not sent(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16))), SchedAccept)
    denied = message_in(rig.hear(PARENT, request(5, search=SearchId(b"r" * 16), asks_left=0)), SchedDeny)
    assert "have not been taken" in str(denied)
    assert sent(rig.hear(CHILD, request(3, search=SearchId(b"p" * 16))), SchedAccept)
    actions = take(rig, claim, *[remote(member=member) for member in members[:10]])
    assert only(actions, Forget)
    assert sent(rig.hear(PARENT, request(4, search=SearchId(b"q" * 16))), SchedAccept)


def test_beyond_a_second_bound_a_long_list_of_outputs_is_lost_and_small_results_never_are(rig: Rig) -> None:
    claim = with_claim(rig)
    (first,) = reports(end(rig, claim, 1, outputs=_MANY))
    assert (first.state, len(first.outputs)) == (TaskState.FINISHED, len(_MANY))
    each = rig.state.executor.kept_bytes[PARENT]
    with rig.checked_at_the_end():
        end(rig, claim, *range(2, LOST_BYTES // each + 1), outputs=_MANY)
    assert LOST_BYTES - each < rig.state.executor.kept_bytes[PARENT] <= LOST_BYTES
    (lost,) = reports(end(rig, claim, 1_000, outputs=_MANY))
    assert (lost.state, lost.cause, lost.outputs) == (TaskState.REVOKED, Cause.LOST, ())
    (small,) = reports(end(rig, claim, 1_001))
    assert small.state is TaskState.FINISHED
    assert rig.state.executor.kept_bytes[PARENT] < LOST_BYTES + 1_024


def test_results_are_counted_again_after_a_restart_and_no_more_once_their_claim_has_ended(rig: Rig) -> None:
    claim = with_claim(rig)
    end(rig, claim, 1, 2, outputs=_MANY)
    executor = rig.state.executor
    rows: tuple[Row, ...] = (rig.state.counters, executor.claims[claim.claim].row, *executor.attempts.values())
    again = Rig(module=make_module(), now=rig.now)
    again.resume(Remains(rows=rows))
    assert again.state.executor.kept_bytes == executor.kept_bytes != {}
    again.greet(PARENT)
    again.hear(PARENT, ClaimEnd(claim=claim.claim))
    assert again.state.executor.kept_bytes == {}


def test_a_lease_that_has_expired_is_not_renewed_and_its_results_are_reported_to_who_asks(rig: Rig) -> None:
    claim = with_claim(rig)
    end(rig, claim, 1)
    rig.wait(LEASE_NS)
    assert rig.state.timers.deadline_of(TimerKind.RENEWAL, claim.claim) is None
    assert sent(rig.wait(HOUR), TaskStatus) == ()
    assert attempts(rig.greet(PARENT)) == [remote(member=1)]
    query = TaskStatusQuery(claim=claim.claim, attempts=())
    assert attempts(rig.hear(PARENT, query)) == [remote(member=1)]
    assert attempts(rig.hear(PARENT, query)) == []
    assert attempts(rig.wait(10 * SECOND)) == [remote(member=1)]
    assert rig.state.timers.deadline_of(TimerKind.RENEWAL, claim.claim) is None
    take(rig, claim, remote(member=1))
    assert rig.state.executor.kept_bytes == {}


def test_when_a_link_opens_many_claims_are_renewed_by_several_events(rig: Rig) -> None:
    rig.measure(slots=40)
    accepts = [
        message_in(rig.hear(PARENT, request(number, search=bytes([number]) * 16)), SchedAccept)
        for number in range(1, 21)
    ]
    at_once = sent(rig.greet(PARENT), TaskStatus)
    assert len(at_once) == 16
    later = sent(rig.wait(0), TaskStatus)
    assert {message.claim for _, message in (*at_once, *later)} == {accept.claim for accept in accepts}
