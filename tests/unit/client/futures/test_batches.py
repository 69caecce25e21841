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


def test_while_nothing_has_returned_twice_as_many_calls_are_tried_as_tasks_have_begun(waiting: Waiting) -> None:
    assert sizes(waiting) == [1] * 4
    assert waiting.look_in(SECOND - 1) == 1
    waiting.note_begun(2, SECOND, others_wait=True)
    assert sizes(waiting, at=SECOND) == []
    assert waiting.look_in(SECOND) == SECOND
    waiting.note_begun(4, 2 * SECOND, others_wait=False)
    assert sizes(waiting, at=2 * SECOND) == [1] * 4
    waiting.note_begun(7, 3 * SECOND, others_wait=True)
    assert sizes(waiting, at=3 * SECOND) == [1] * 6


def test_nobody_looks_how_many_tasks_have_begun_where_no_call_waits_for_that() -> None:
    waiting = Waiting()
    waiting.chunks.append((Call(b"", Future()),))
    assert waiting.look_in(0) is None
    assert sizes(waiting) == [1]
    assert waiting.look_in(SECOND) is None


def test_calls_share_a_task_for_as_long_as_a_task_takes_to_start_but_not_for_very_long(waiting: Waiting) -> None:
    waiting.note_result(SECOND // 10)
    waiting.note_start(5 * SECOND)
    assert sizes(waiting, room=2) == [50, 50]
    waiting.note_start(3 * SECOND)
    waiting.note_start(4 * SECOND)
    assert sizes(waiting, room=1) == [30]
    waiting.note_start(-SECOND)
    assert sizes(waiting, room=1) == [5]
    waiting.start_ns = 60 * SECOND
    assert sizes(waiting, room=1) == [100]


def test_while_tasks_wait_for_a_machine_calls_are_divided_evenly_among_few_tasks(waiting: Waiting) -> None:
    waiting.note_result(SECOND // 10)
    waiting.note_start(2 * SECOND)
    assert sizes(waiting, room=3) == [20, 20, 20]
    waiting.note_begun(2, SECOND, others_wait=True)
    assert sizes(waiting, room=3) == [79, 79, 79]
    while len(waiting.chunks) > 182:
        waiting.chunks.pop()
    # Two rounds on both slots, rather than tasks of 80, 80 and 22.
    assert sizes(waiting) == [46, 46, 46, 44]


@pytest.mark.parametrize(("slots", "start_ns"), [(0, 2 * SECOND), (2, 0), (2, SECOND // 9)])
def test_nothing_is_saved_by_large_tasks_that_start_soon_or_where_none_runs(
    waiting: Waiting, slots: int, start_ns: int
) -> None:
    waiting.note_result(SECOND // 10)
    waiting.note_begun(slots, 0, others_wait=True)
    waiting.note_start(start_ns)
    assert sizes(waiting, room=1) == [20 if start_ns > BATCH_NS else 5]


def test_short_calls_wait_a_moment_for_others_while_a_task_is_under_way() -> None:
    waiting = Waiting(mean_ns=BATCH_NS / 3)
    waiting.chunks.append((Call(b"", Future()),))
    assert sizes(waiting) == [1]
    waiting.chunks.append((Call(b"", Future()),))
    assert sizes(waiting) == []
    assert waiting.filled_in(SECOND // 10) == SECOND // 10
    waiting.chunks.append((Call(b"", Future()),))
    assert sizes(waiting, at=SECOND // 5 - 1) == []
    assert sizes(waiting, at=SECOND // 5) == [2]
    assert waiting.filled_in(SECOND) is None
    waiting.chunks.extend((Call(b"", Future()),) for _ in range(3))
    assert sizes(waiting, at=SECOND) == [3]


def test_short_calls_share_a_task_and_no_task_has_more_than_its_limit(waiting: Waiting) -> None:
    waiting.note_result(MICROSECOND)
    assert sizes(waiting, room=2) == [MOST_CALLS, MOST_CALLS]
    waiting.mean_ns = BATCH_NS / 10
    assert sizes(waiting, room=3) == [10, 10, 10]


def test_a_call_that_takes_longer_than_a_batch_is_alone(waiting: Waiting) -> None:
    waiting.note_result(BATCH_NS + 1)
    assert sizes(waiting, room=300) == [1] * 300
    assert waiting.look_in(0) is None


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
    waiting.note_begun(3, 0, others_wait=True)
    waiting.chunks.extend((Call(packed, Future()),) for _ in range(6))
    assert [sizes(waiting) for _ in range(3)] == [[1] * 4, [1] * 2, []]


def test_a_large_chunk_is_submitted_whole() -> None:
    waiting = Waiting()
    chunk = tuple(Call(bytes(MOST_BYTES), Future()) for _ in range(5))
    waiting.chunks.extend([chunk, (Call(b"", Future()),)])
    assert [sizes(waiting), sizes(waiting)] == [[5], [1]]
