"""Tasks that cannot be brought to their executor, though it can be heard: given up, and placed elsewhere."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, LinkDown, Submitted, TransferFailed
from messiahs.core.interface.messages import ClaimEnd, Reason, SchedRequest, TaskState, TaskStatusQuery, TaskTransfer
from messiahs.core.interface.timers import TimerKind
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.origin.delays import Delay, Delayed
from messiahs.core.origin.delivery import ASK_AGAIN_NS, CUT_NS
from tests.unit.core.chain import ORIGIN, Chain
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    FAR,
    LEASE_NS,
    TASK,
    Rig,
    accept,
    attempt,
    message_in,
    sent,
    status,
    statuses,
    tdv,
)

UNTRUSTED = TransferFailed(claim=CLAIM, text="no trust", kind=TransferFailure.UNTRUSTED)
BROKEN = TransferFailed(claim=CLAIM, text="connection refused")


@pytest.fixture
def bound(rig: Rig) -> Rig:
    """Bind a task to a claim that the child brought."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    return rig


def history(rig: Rig) -> list[tuple[str, str]]:
    return [(entry.event, entry.text) for entry in rig.state.origin.tasks[TASK].history]


def test_an_executor_without_trust_is_asked_by_name_until_it_answers(bound: Rig) -> None:
    query = TaskStatusQuery(claim=CLAIM, attempts=(attempt(),))
    assert message_in(bound.handle(UNTRUSTED), TaskStatusQuery) == query
    assert message_in(bound.wait(ASK_AGAIN_NS), TaskStatusQuery) == query
    assert bound.handle(UNTRUSTED) == ()


def test_a_task_that_never_arrived_waits_again_and_its_history_says_why(bound: Rig) -> None:
    bound.handle(UNTRUSTED)
    never = status(attempt(), TaskState.DENIED, cause=Cause.NEVER_ARRIVED, text="it never arrived")
    actions = bound.hear(CHILD, statuses(never))
    assert history(bound) == [("bound", ""), ("unreachable", "no trust")]
    assert sent(actions, ClaimEnd) == ((CHILD, ClaimEnd(claim=CLAIM)),)
    ((_, ask),) = sent(bound.wait(2 * SECOND), SchedRequest)
    assert len(ask.avoids) == 1
    assert tuple(bound.state.origin.avoided) == ((CHILD, FAR.encode()),)


def test_a_task_that_has_arrived_all_the_same_runs_on(bound: Rig) -> None:
    bound.handle(UNTRUSTED)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert sent(bound.wait(MINUTE), TaskTransfer) == ()
    bound.hear(CHILD, statuses(status(attempt())))
    assert bound.state.origin.tasks == {}


def test_a_task_that_is_reported_twice_in_one_message_has_arrived_once(bound: Rig) -> None:
    running = status(attempt(), TaskState.EXECUTING)
    bound.hear(CHILD, statuses(running, running))
    assert bound.state.origin.claims[CLAIM].unconfirmed == {}


def test_a_task_that_arrived_and_was_refused_is_not_called_unreachable(bound: Rig) -> None:
    bound.handle(BROKEN)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.DENIED, cause=Cause.REFUSED, text="closed")))
    assert history(bound)[-1] == ("refused", "closed")
    assert bound.state.origin.avoided == {}


def test_an_executor_that_is_heard_while_its_stream_is_refused_is_given_up(bound: Rig) -> None:
    bound.handle(BROKEN)
    bound.hear(CHILD, ClaimEnd(claim=CLAIM))
    bound.wait(CUT_NS)
    assert message_in(bound.handle(BROKEN), TaskStatusQuery).attempts == (attempt(),)


def test_an_executor_is_not_heard_when_a_hop_says_that_a_claim_is_forgotten(bound: Rig) -> None:
    bound.handle(BROKEN)
    bound.hear(CHILD, ClaimEnd(claim=CLAIM, is_forgotten=True))
    bound.wait(CUT_NS)
    assert sent(bound.handle(BROKEN), TaskStatusQuery) == ()
    assert bound.state.origin.avoided == {}


def test_what_was_bound_is_lost_only_at_the_end_of_the_lease_if_a_hop_has_forgotten_the_claim(bound: Rig) -> None:
    bound.hear(CHILD, ClaimEnd(claim=CLAIM, is_forgotten=True))
    bound.wait(LEASE_NS)
    assert bound.state.origin.tasks[TASK].attempt == 1
    assert message_in(bound.wait(LEASE_NS // 2), ClaimEnd) == ClaimEnd(claim=CLAIM)
    assert bound.state.origin.claims == {}


def test_an_executor_that_is_not_heard_may_only_be_down_and_is_sent_its_tasks_again(bound: Rig) -> None:
    for _ in range(100):
        assert bound.handle(BROKEN) == ()
        assert sent(bound.wait(SECOND), TaskTransfer)


def test_a_stream_that_has_worked_in_between_is_not_given_up(bound: Rig) -> None:
    bound.handle(BROKEN)
    bound.hear(CHILD, statuses(window=1))
    bound.wait(CUT_NS)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert bound.state.origin.claims[CLAIM].stream_failure == ""


@pytest.mark.parametrize(("failure", "attempts"), [("untrusted", 1), ("refused", 4)])
def test_a_task_whose_stream_does_not_work_ends_when_it_does(failure: str, attempts: int) -> None:
    chain = Chain(stream_failure=failure)
    chain.start()
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(4 * MINUTE))
    assert not chain.starts
    (row,) = chain.modules[ORIGIN].state.origin.tasks.values()
    assert {entry.event for entry in row.history} == {"bound", "route", "unreachable"}
    assert row.attempt == attempts
    assert [reason.code for reason in waiting_for(chain)] == ["unreachable"]
    assert {entry.text for entry in row.history if entry.event == "unreachable"} == {
        f"origin cannot reach hop: {failure}"
    }
    chain.stream_failure = ""
    chain.run(until=Instant(20 * MINUTE))
    assert not chain.modules[ORIGIN].state.origin.tasks
    assert sum(chain.starts.values()) == 1


def test_a_stream_that_never_works_costs_few_messages() -> None:
    chain = Chain(stream_failure="untrusted")
    chain.start()
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(30 * MINUTE))
    counts = {name: chain.messages.count(name) for name in ("SchedAccept", "TaskStatusQuery", "ClaimEnd")}
    # One grant, over two links, whenever it is forgotten that the executor cannot be reached.
    assert max(counts.values()) <= 2 * (30 // 5 + 1), counts


def submitted() -> Submitted:
    return Submitted(answer_to=AnswerTo(1), key=ClientKey("k"), tdv=tdv(), requirement="", command=COMMAND)


def waiting_for(chain: Chain) -> list[Reason]:
    (shape,) = chain.modules[ORIGIN].state.origin.shapes.values()
    return [hop for reason in shape.reasons for hop in leaves(reason)]


def leaves(reason: Reason) -> list[Reason]:
    """Return the reasons of those that were asked last."""
    return [leaf for hop in reason.hops for leaf in leaves(hop)] if reason.hops else [reason]


def test_a_task_that_a_renewal_does_not_list_yet_is_sent_again_seconds_later(bound: Rig) -> None:
    bound.wait(SECOND)
    assert sent(bound.hear(CHILD, statuses(renewal=1)), TaskTransfer) == ()
    assert sent(bound.wait(5 * SECOND), TaskTransfer)


def test_a_task_that_arrives_after_the_renewal_that_did_not_list_it_is_sent_once(bound: Rig) -> None:
    bound.hear(CHILD, statuses(renewal=1))
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert sent(bound.wait(MINUTE), TaskTransfer) == ()


def test_what_its_executor_refuses_twice_in_a_row_is_asked_for_at_once_and_the_reason_is_kept(bound: Rig) -> None:
    refused = TransferFailed(claim=CLAIM, text="the disk has no room for its inputs", kind=TransferFailure.REFUSED)
    first_at = bound.now
    assert queries.delay_of(bound.state, bound.state.origin.tasks[TASK]) is None
    assert bound.handle(refused) == ()
    assert sent(bound.wait(SECOND), TaskTransfer)
    assert message_in(bound.handle(refused), TaskStatusQuery).attempts == (attempt(),)
    delay = Delay(of=Delayed.INPUTS, since=first_at, text=refused.text)
    assert queries.delay_of(bound.state, bound.state.origin.tasks[TASK]) == delay
    bound.hear(CHILD, statuses(status(attempt(), TaskState.DENIED, cause=Cause.NEVER_ARRIVED, text="it never arrived")))
    assert history(bound)[-1] == ("refused", "the disk has no room for its inputs")
    row = bound.state.origin.tasks[TASK]
    assert (row.claim, queries.delay_of(bound.state, row)) == (None, replace(delay, since=row.history[-1].at))


def test_a_refusal_and_a_broken_stream_are_not_two_refusals(bound: Rig) -> None:
    refused = TransferFailed(claim=CLAIM, text="the disk has no room for its inputs", kind=TransferFailure.REFUSED)
    for event in (refused, BROKEN, refused):
        assert bound.handle(event) == ()
        assert sent(bound.wait(SECOND), TaskTransfer)


def test_the_time_of_a_broken_stream_begins_anew_when_the_link_on_the_way_is_up_again(bound: Rig) -> None:
    bound.handle(BROKEN)
    bound.hear(CHILD, ClaimEnd(claim=CLAIM))
    bound.wait(CUT_NS)
    bound.handle(LinkDown(neighbor=CHILD))
    bound.greet(CHILD)
    assert sent(bound.handle(BROKEN), TaskStatusQuery) == ()
    assert bound.state.origin.avoided == {}


def test_a_stream_that_is_not_answered_for_a_minute_delays_its_task_by_little_more() -> None:
    chain = Chain(stream_failure="refused")
    chain.start()
    chain.post(ORIGIN, submitted())
    chain.run(until=Instant(MINUTE))
    chain.stream_failure = ""
    chain.run(until=Instant(MINUTE + 30 * SECOND))
    assert sum(chain.starts.values()) == 1
    assert not chain.modules[ORIGIN].state.origin.tasks


def test_a_task_whose_claim_is_unknown_on_its_path_may_be_lost_until_its_lease_has_expired(bound: Rig) -> None:
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING), renewal=1))
    row, since = bound.state.origin.tasks[TASK], bound.now
    assert queries.delay_of(bound.state, row) is None
    for _ in range(2):
        bound.hear(CHILD, ClaimEnd(claim=CLAIM, is_forgotten=True))
        found = queries.delay_of(bound.state, row)
        assert found is not None
        assert (found.of, found.since, found.until) == (
            Delayed.ATTEMPT, since, bound.state.timers.deadline_of(TimerKind.HELD_LEASE, CLAIM)
        )  # fmt: skip
        assert found.text == f"{CHILD}, or a system behind it, does not know the task any more"
        bound.wait(SECOND)
    bound.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    assert queries.delay_of(bound.state, row) is None
