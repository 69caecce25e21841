"""What a neighbor can make a module keep and repeat is bounded, whatever it sends."""

import pytest

from messiahs.core.interface.actions import Action, FetchOutputs
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ControlReceived, StoreChanged, TransferReceived
from messiahs.core.interface.limits import ASK_LIMIT
from messiahs.core.interface.messages import (
    ClaimEnd,
    ControlMessage,
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskState,
    TaskStatus,
    TaskStatusQuery,
    TaskTransfer,
)
from messiahs.core.interface.output_events import OutputsFailed
from messiahs.core.interface.policies import Refused
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.task_files import Output
from messiahs.core.origin.placement import CLAIM_LIMIT
from messiahs.core.relay import search_memory
from messiahs.core.relay.search_memory import OPEN_LIMIT, PASSED_LIMIT, SEEN_LIMIT
from messiahs.wire.codec import control_from_bytes, control_to_bytes
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEG,
    ME,
    ORIGIN,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    TASK,
    Rig,
    accept,
    attempt,
    deny,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

MANY = 2_000


def search(number: int) -> SearchId:
    return SearchId(number.to_bytes(16))


def unchecked(rig: Rig, sender: SystemId, message: ControlMessage, /) -> tuple[Action, ...]:
    """Let a neighbor say one of thousands of things, after each of which the invariants would take too long."""
    return rig.module.handle(ControlReceived(sender=sender, message=message), rig.now)


def denial(rig: Rig, number: int, /, **said: object) -> DenyCode:
    """Give why a request of the parent is denied."""
    denied = message_in(rig.hear(PARENT, request(number, search=search(number), **said)), SchedDeny)
    return denied.reasons[0].code


def deny_all(rig: Rig) -> None:
    """Let every neighbor that was asked deny."""
    while rig.state.hop.asks:
        ask, asked_for = next(iter(rig.state.hop.asks.items()))
        assert asked_for.asked is not None
        unchecked(rig, asked_for.asked, deny(ask))


def test_a_neighbor_has_a_limited_number_of_searches_open_and_others_have_theirs(rig: Rig) -> None:
    rig.greet(OTHER_CHILD)
    rig.see(OTHER_CHILD)
    for number in range(1, OPEN_LIMIT + 1):
        assert sent(unchecked(rig, PARENT, request(number, search=search(number))), SchedRequest)
    assert denial(rig, OPEN_LIMIT + 1) is DenyCode.LIMIT_REACHED
    assert len(rig.state.hop.searches) == OPEN_LIMIT
    assert sent(rig.hear(SIBLING, request(1, search=search(0))), SchedRequest)
    assert sent(rig.submit(), SchedRequest)
    deny_all(rig)
    assert sent(rig.hear(PARENT, request(9_999, search=search(9_999))), SchedRequest)


def test_a_neighbor_never_uses_up_the_searches_that_the_next_hop_takes_of_this_module(rig: Rig) -> None:
    counts: list[int] = []
    for sender in (PARENT, SIBLING):
        asked = 0
        while sent(unchecked(rig, sender, request(asked, search=search(1_000 * len(counts) + asked))), SchedRequest):
            asked += 1
        counts.append(asked)
    rig.check()
    # Four fifths, and four fifths of what is left.
    assert counts == [204, 41]
    denied = message_in(rig.hear(PARENT, request(999, search=search(999))), SchedDeny)
    ((reason,),) = (each.hops for each in denied.reasons)
    assert (reason.module, reason.code) == (ME, DenyCode.LIMIT_REACHED)
    assert reason.text == f"{PARENT} has 204 searches open at {CHILD}, which others share"
    assert CHILD in {to for to, _ in sent(rig.submit(), SchedRequest)}
    deny_all(rig)
    assert sent(rig.hear(PARENT, request(998, search=search(998))), SchedRequest)


def test_a_neighbor_never_uses_up_the_claims_that_the_next_hop_takes_of_this_module(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_memory, "PASSED_LIMIT", 20)
    # Four fifths.
    assert message_in(rig.hear(PARENT, request(search=search(99), count=1 << 39)), SchedRequest).count == 16
    deny_all(rig)
    granted = 0
    while asked := sent(rig.hear(PARENT, request(granted, search=search(granted))), SchedRequest):
        granted += 1
        rig.hear(CHILD, accept(asked[0][1].id, claim=CLAIM._replace(number=granted)))
    assert granted == 16
    ask = message_in(rig.hear(SIBLING, request(1, search=search(50))), SchedRequest)
    assert sent(rig.hear(CHILD, accept(ask.id, claim=CLAIM._replace(number=99))), SchedAccept)
    for number in range(1, 4):
        rig.hear(PARENT, ClaimEnd(claim=CLAIM._replace(number=number)))
    assert sent(rig.hear(PARENT, request(51, search=search(51))), SchedRequest)


def test_only_so_many_searches_of_a_neighbor_are_remembered_and_none_is_denied_for_them(
    rig: Rig, policy: ScriptedPolicy
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, is_final=True)
    rig.hear(SIBLING, request(1, search=search(0)))
    for number in range(1, SEEN_LIMIT + 100):
        denied = message_in(unchecked(rig, PARENT, request(number, search=search(number))), SchedDeny)
        assert denied.reasons[0].code is DenyCode.REFUSED_BY_POLICY
    rig.check()
    assert len(rig.state.hop.seen) == SEEN_LIMIT + 1
    # Those that came last, and those of other neighbors, are still recognized.
    assert denial(rig, SEEN_LIMIT + 99) is DenyCode.ALREADY_ASKED
    assert denial(rig, 0) is DenyCode.ALREADY_ASKED
    assert denial(rig, 1) is DenyCode.REFUSED_BY_POLICY
    rig.wait(11 * SECOND)
    assert not any((rig.state.hop.seen, rig.state.hop.seen_from))


def test_claims_that_pass_for_a_neighbor_are_limited_in_each_search_and_together(rig: Rig) -> None:
    rig.greet(OTHER_CHILD)
    rig.see(OTHER_CHILD)
    granted = 0
    for number in range(1, PASSED_LIMIT // ASK_LIMIT + 1):
        ((to, ask),) = sent(rig.hear(PARENT, request(number, search=search(number), count=1 << 39)), SchedRequest)
        assert ask.count == ASK_LIMIT
        for _ in range(ASK_LIMIT):
            granted += 1
            unchecked(rig, to, accept(ask.id, claim=CLAIM._replace(number=granted)))
    rig.check()
    assert len(rig.state.hop.passed) == PASSED_LIMIT
    assert denial(rig, 77) is DenyCode.LIMIT_REACHED
    rig.hear(PARENT, ClaimEnd(claim=CLAIM))
    assert sent(rig.hear(PARENT, request(78, search=search(78))), SchedRequest)


def test_a_renewal_of_very_many_attempts_fits_into_messages_and_only_its_last_part_is_one(rig: Rig) -> None:
    rig.measure(slots=ASK_LIMIT)
    granted = message_in(rig.hear(PARENT, request(count=ASK_LIMIT)), SchedAccept)
    attempts = [remote(member=member) for member in range(1, MANY + 1)]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(granted.claim, granted.ticket, *attempts)))
    ended, running = attempts[: MANY // 2], attempts[MANY // 2 :]
    outputs = tuple(Output(name=f"work/{number:04}{'n' * 40}", size_bytes=1) for number in range(5))
    for each in ended:
        rig.module.handle(AttemptEnded(attempt=each, exit_code=0, text="é" * 500, outputs=outputs), rig.now)
    rig.wait(0)
    everything = TaskStatusQuery(claim=granted.claim, attempts=())
    parts = [part for _, part in sent(rig.hear(PARENT, everything), TaskStatus)]
    listed = [each.attempt for part in parts for each in part.attempts]
    assert len(parts) > 1
    assert len(running) < len(listed) == len(set(listed)) < MANY
    assert set(running) <= set(listed)
    assert [part.renewal for part in parts] == [0] * (len(parts) - 1) + [1]
    assert max(len(control_to_bytes((part,))) for part in parts) < MESSAGE_LIMIT_BYTES // 2
    assert all(len(control_from_bytes(control_to_bytes((part,)))) == 1 for part in parts)


def test_what_the_earlier_parts_of_a_renewal_list_is_not_missed(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(3), SchedRequest)
    rig.hear(CHILD, accept(ask.id, places=3))
    rig.wait(6 * SECOND)
    rig.hear(CHILD, statuses(status(attempt(member=1), TaskState.EXECUTING)))
    actions = rig.hear(CHILD, statuses(status(attempt(member=2), TaskState.EXECUTING), renewal=1))
    assert [task.attempt for task in message_in(actions, TaskTransfer).tasks] == [attempt(member=3)]
    # The next renewal begins anew.
    actions = rig.hear(CHILD, statuses(status(attempt(member=3), TaskState.EXECUTING), renewal=2))
    assert message_in(actions, TaskStatusQuery).attempts == (attempt(member=1), attempt(member=2))


def test_outputs_that_an_executor_only_speaks_of_make_the_attempt_a_lost_one_in_the_end(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), outputs=(Output(name="stdout", size_bytes=5),))))
    failed = OutputsFailed(attempt=attempt(), leg=LEG, text="stdout came with 4 of 5 bytes", is_gone=False)
    rig.handle(StoreChanged(has_space=False))
    for _ in range(200):
        rig.handle(failed)
        rig.wait(10 * SECOND)
        rig.hear(CHILD, statuses(renewal=1))
    assert rig.state.origin.tasks[TASK].claim == CLAIM
    rig.handle(StoreChanged(has_space=True))
    tries = 0
    while rig.state.origin.tasks[TASK].claim is not None:
        rig.handle(failed)
        tries += len(only(rig.wait(10 * SECOND), FetchOutputs))
        rig.hear(CHILD, statuses(renewal=1))
        assert tries <= 100
    assert tries == 100
    assert rig.state.origin.tasks[TASK].history[-1].event == "lost"


def test_an_executor_that_loses_every_task_at_once_is_asked_ever_more_rarely(rig: Rig) -> None:
    actions = rig.submit(100)
    asked, claims = 0, 0
    end = rig.now + 4 * MINUTE
    while rig.now < end:
        for to, ask in sent(actions, SchedRequest):
            asked += 1
            claims += 1
            claim = CLAIM._replace(number=claims)
            actions = rig.hear(to, accept(ask.id, places=ask.count, claim=claim, window=1))
            bound = tuple(rig.state.origin.claims[claim].bound)
            lost = [status(each, TaskState.REVOKED, cause=Cause.LOST) for each in bound]
            actions = (*actions, *rig.hear(to, statuses(*lost, claim=claim, window=1)))
            assert asked < 50
            break
        else:
            actions = rig.wait(SECOND)
    assert asked > 1


def test_an_executor_that_promises_places_and_takes_nothing_is_not_asked_again_at_once(rig: Rig) -> None:
    ((to, ask),) = sent(rig.submit(2_000), SchedRequest)
    assert sent(rig.hear(to, accept(ask.id, places=ask.count, window=0)), SchedRequest) == ()


def test_claims_beyond_a_limit_end_and_their_tasks_continue_to_search(rig: Rig) -> None:
    ((to, ask),) = sent(rig.submit(2), SchedRequest)
    (shape,) = rig.state.origin.shapes.values()
    # In place of thousands of claims that are really held.
    shape.claims.extend(CLAIM._replace(number=number) for number in range(100, 100 + CLAIM_LIMIT))
    actions = unchecked(rig, to, accept(ask.id, places=2))
    shape.claims.clear()
    assert sent(actions, ClaimEnd) == ((to, ClaimEnd(claim=CLAIM)),)
    assert rig.state.origin.claims == {}
    rig.check()
    assert sent(rig.wait(2 * SECOND), SchedRequest)
