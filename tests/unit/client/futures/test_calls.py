"""Calls on their way, without a module: which wait, which are in tasks, which nobody wants."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from messiahs.client.futures.batches import Call
from messiahs.client.futures.calls import Batch, Calls


def added(calls: Calls, count: int) -> list[Call]:
    made = [Call(b"", Future()) for _ in range(count)]
    calls.add(made, {}, function=int)
    return made


def taken(calls: Calls) -> list[list[Call]]:
    """Take what waits, as the thread does that submits it."""
    with calls.changed:
        calls.sending = calls.group_of({}, function=int).waiting.next_batches(0, 1)
    return calls.sending


def sent(calls: Calls, batches: Sequence[Sequence[Call]]) -> list[Batch]:
    group = calls.group_of({}, function=int)
    return [
        Batch(task=f"left.1.{number}", array="left.1", group=group, calls=deque(some))
        for number, some in enumerate(batches, 1)
    ]


def test_calls_that_are_being_submitted_are_neither_lost_nor_counted_twice() -> None:
    calls = Calls()
    made = added(calls, 3)
    assert calls.waiting_and_sent() == calls.unsent() == made
    batches = taken(calls)
    assert calls.waiting_and_sent() == calls.unsent() == made
    calls.register(sent(calls, batches), gaps=0)
    assert (calls.waiting_and_sent(), calls.unsent()) == (made, [])


def test_a_task_whose_calls_are_cancelled_while_it_is_submitted_is_unneeded() -> None:
    calls = Calls()
    made = added(calls, 2)
    batches = taken(calls)
    for call in made:
        assert call.future.cancel()
    calls.is_closed = True
    assert calls.are_over
    calls.register(sent(calls, batches), gaps=0)
    assert calls.next_unneeded() == "left.1.1"


def test_what_cannot_be_submitted_comes_back_and_its_place_is_free() -> None:
    calls = Calls()
    made = added(calls, 2)
    taken(calls)
    group = calls.group_of({}, function=int)
    assert group.waiting.is_busy
    assert calls.give_back(group) == made
    assert (calls.unsent(), group.waiting.is_busy) == ([], False)


def test_no_call_is_tried_in_place_of_a_task_that_has_ended_until_its_results_are_taken() -> None:
    calls = Calls()
    for _ in range(9):
        added(calls, 1)
    tried = sent(calls, [batch for _ in range(4) for batch in taken(calls)])
    calls.register(tried, gaps=0)
    assert calls.remove(tried[0])
    assert taken(calls) == []
    calls.settle(tried[0])
    assert len(taken(calls)) == 1


def test_endings_that_came_before_their_tasks_were_registered_are_not_missed() -> None:
    calls = Calls()
    added(calls, 1)
    batches = sent(calls, taken(calls))
    assert calls.ended_among(["left.1.1"], has_gap=False) == []
    assert calls.register(batches, gaps=0) == batches


@pytest.mark.parametrize(("ended", "has_gap"), [("left.1.1", False), ("left.1", False), ("left.9", True)])
def test_a_task_may_have_ended_if_it_or_its_array_is_named_or_endings_were_missed(ended: str, has_gap: bool) -> None:  # noqa: FBT001 - a parameter of the test
    calls = Calls()
    added(calls, 1)
    batches = sent(calls, taken(calls))
    calls.register(batches, gaps=0)
    assert calls.ended_among(["left.8"], has_gap=False) == []
    assert calls.ended_among([ended], has_gap=has_gap) == batches


def test_the_calls_of_an_abandoned_task_fail_and_the_task_is_cancelled_once() -> None:
    calls = Calls()
    made = added(calls, 2)
    (batch,) = sent(calls, taken(calls))
    calls.register([batch], gaps=0)
    made[0].future.cancel()
    calls.abandon(batch, OSError("away"))
    calls.abandon(batch, OSError("again"))
    assert str(made[1].future.exception()) == "away"
    assert (calls.next_unneeded(), calls.next_unneeded()) == ("left.1.1", None)
    calls.is_closed = True
    assert calls.are_over


def test_a_closed_executor_takes_no_calls() -> None:
    calls = Calls()
    calls.is_closed = True
    with pytest.raises(RuntimeError, match="after shutdown"):
        added(calls, 1)
    assert calls.are_over


def test_a_result_that_comes_after_its_call_was_cancelled_is_dropped() -> None:
    calls = Calls()
    (call,) = added(calls, 1)
    call.future.cancel()
    calls.give(call, 1)
    assert call.future.cancelled()
    calls.is_closed = True
    assert calls.are_over


def test_functions_learn_for_themselves_how_long_their_calls_take_and_share_their_files() -> None:
    calls = Calls()
    for function in (int, str):
        calls.add([Call(b"", Future())], {}, function=function)
        calls.add([Call(b"", Future())], {}, function=function)
    short, long = (calls.group_of({}, function=function) for function in (int, str))
    short.waiting.note_result(1)
    assert [len(one) for one in short.waiting.next_batches(0, 9)] == [2]
    assert [len(one) for one in long.waiting.next_batches(0, 9)] == [1, 1]
    assert short.uploaded is long.uploaded
    assert short.uploaded is not calls.group_of({"cpus": 2}, function=int).uploaded


def test_many_functions_without_calls_are_forgotten() -> None:
    calls = Calls()
    (call,) = added(calls, 1)
    for number in range(1_000):
        calls.group_of({}, function=number)
    assert len(calls.groups) <= 64
    assert calls.unsent() == [call]
