"""How calls are grouped to tasks, without and with knowledge of how long they take."""

from concurrent.futures import Future

import pytest

from messiahs.client.futures.batches import BATCH_NS, MOST_BYTES, MOST_CALLS, Call, Waiting
from messiahs.core.model.instants import MICROSECOND, SECOND

MANY = 10_000


@pytest.fixture
def waiting() -> Waiting:
    made = Waiting()
    made.chunks.extend((Call(b"", Future()),) for _ in range(MANY))
    return made


def sizes(waiting: Waiting, *, at: int = 0, room: int = MANY) -> list[int]:
    return [len(calls) for calls in waiting.next_batches(at, room)]


def test_while_nothing_has_returned_a_few_calls_are_tried_and_then_twice_as_many_every_second(waiting: Waiting) -> None:
    assert sizes(waiting) == [1] * 8
    assert sizes(waiting, at=SECOND - 1) == []
    assert waiting.ready_in(SECOND - 1) == 1
    assert sizes(waiting, at=SECOND) == [1] * 8
    assert sizes(waiting, at=3 * SECOND) == [1] * 48


def test_time_in_which_no_result_could_come_makes_no_more_tasks(waiting: Waiting) -> None:
    waiting.leave_out(since=0, now=SECOND)
    assert sizes(waiting) == [1] * 8
    assert sizes(waiting, at=SECOND) == [1] * 8
    waiting.leave_out(since=SECOND, now=60 * SECOND)
    assert sizes(waiting, at=60 * SECOND) == []
    # Two threads may have waited for the module.
    waiting.leave_out(since=2 * SECOND, now=60 * SECOND)
    assert waiting.ready_in(60 * SECOND) == SECOND
    assert sizes(waiting, at=61 * SECOND) == []
    assert sizes(waiting, at=62 * SECOND) == [1] * 16


def test_short_calls_share_a_task_and_no_task_has_more_than_its_limit(waiting: Waiting) -> None:
    waiting.note_result(MICROSECOND)
    assert sizes(waiting, room=2) == [MOST_CALLS, MOST_CALLS]
    waiting.mean_ns = BATCH_NS / 10
    assert sizes(waiting, room=3) == [10, 10, 10]


def test_a_call_that_takes_longer_than_a_batch_is_alone(waiting: Waiting) -> None:
    waiting.note_result(BATCH_NS + 1)
    assert sizes(waiting, room=300) == [1] * 300
    assert waiting.ready_in(0) is None


def test_calls_that_get_longer_make_smaller_tasks(waiting: Waiting) -> None:
    waiting.note_result(MICROSECOND)
    for _ in range(20):
        waiting.note_result(BATCH_NS // 5)
    assert sizes(waiting, room=1) == [5]


def test_a_chunk_stays_together_and_a_suspect_stays_alone() -> None:
    waiting = Waiting()
    chunk = tuple(Call(b"", Future()) for _ in range(7))
    waiting.chunks.extend([(Call(b"", Future(), is_alone=True),), chunk, (Call(b"", Future(), is_alone=True),)])
    waiting.note_result(MICROSECOND)
    assert sizes(waiting) == [1, 7, 1]


def test_no_submit_has_much_more_than_64_mib() -> None:
    waiting = Waiting()
    packed = bytes(MOST_BYTES)
    waiting.chunks.extend((Call(packed, Future()),) for _ in range(6))
    assert [sizes(waiting) for _ in range(3)] == [[1] * 4, [1] * 2, []]


def test_a_large_chunk_is_submitted_whole() -> None:
    waiting = Waiting()
    chunk = tuple(Call(bytes(MOST_BYTES), Future()) for _ in range(5))
    waiting.chunks.extend([chunk, (Call(b"", Future()),)])
    assert [sizes(waiting), sizes(waiting)] == [[5], [1]]
