"""Turns of neighbors: order, deficits, buckets, and who is reported as throttled."""

import asyncio
from collections.abc import Iterator

import pytest

from messiahs.core.interface.events import Event, LinkUp
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.daemon.host.turns import (
    ACTIVE_NS,
    BURST_NS,
    COSTLY_NS,
    DEBT_NS,
    NAMED_NS,
    QUANTUM_NS,
    REFILL_SHARE,
    Turns,
    Users,
    Work,
)

EVIL, FRIEND = SystemId("evil"), SystemId("friend")
Neighbors = Turns[SystemId]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def throttled() -> list[SystemId]:
    return []


@pytest.fixture
def turns(throttled: list[SystemId]) -> Neighbors:
    return Turns(throttled.append)


def _work(loop: asyncio.AbstractEventLoop, source: SystemId) -> Work[SystemId]:
    events: Iterator[Event] = iter((LinkUp(neighbor=source),))
    return Work(source=source, events=events, done=loop.create_future())


def _add(turns: Neighbors, loop: asyncio.AbstractEventLoop, source: SystemId, *, now: int = 0) -> Work[SystemId]:
    work = _work(loop, source)
    turns.add_message(work, now, size_bytes=0)
    return work


def _done(turns: Neighbors, *, now: int = 0, cost_ns: int = 0) -> Work[SystemId] | None:
    work = turns.next(now)
    if work is not None:
        turns.charge(work.source, cost_ns, now)
        turns.finish(work)
    return work


@pytest.mark.parametrize(("size_bytes", "is_served"), [(0, True), (1 << 20, False)])
def test_a_neighbor_pays_for_the_bytes_that_it_sends_before_they_are_decoded(
    turns: Neighbors, loop: asyncio.AbstractEventLoop, size_bytes: int, *, is_served: bool
) -> None:
    turns.note_active(Users.LOCAL, 0)
    for _ in range(60):
        turns.add_message(_work(loop, EVIL), 0, size_bytes=size_bytes)
    assert (turns.next(0) is not None) is is_served


def test_messages_of_one_neighbor_are_handled_in_their_order(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    sent = [_add(turns, loop, EVIL) for _ in range(5)]
    assert [_done(turns) for _ in sent] == sent
    assert _done(turns) is None
    assert all(work.done.done() for work in sent)


def test_a_neighbor_that_uses_its_quantum_lets_the_next_one_come(
    turns: Neighbors, loop: asyncio.AbstractEventLoop
) -> None:
    for source in (EVIL, EVIL, EVIL, FRIEND, FRIEND):
        _add(turns, loop, source)
    order = [work.source for _ in range(5) if (work := _done(turns, cost_ns=QUANTUM_NS)) is not None]
    assert set(order[:2]) == {EVIL, FRIEND}
    assert order.index(FRIEND) < 2
    assert sorted(order[:4]) == [EVIL, EVIL, FRIEND, FRIEND]


def test_a_costly_message_is_paid_for_with_later_turns(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    for source in (EVIL, EVIL, *[FRIEND] * 20):
        _add(turns, loop, source)
    first = _done(turns, cost_ns=10 * QUANTUM_NS)
    assert first is not None
    assert first.source == EVIL
    order = [work.source for _ in range(21) if (work := _done(turns, cost_ns=QUANTUM_NS)) is not None]
    assert order.index(EVIL) >= 9


def test_an_empty_bucket_does_not_matter_while_nobody_else_is_active(
    turns: Neighbors, loop: asyncio.AbstractEventLoop, throttled: list[SystemId]
) -> None:
    for _ in range(100):
        _add(turns, loop, EVIL)
        assert _done(turns, cost_ns=BURST_NS) is not None
    assert turns.throttled_at(EVIL, 0) is None
    assert not throttled


def test_a_neighbor_with_an_empty_bucket_waits_while_users_are_active(
    turns: Neighbors, loop: asyncio.AbstractEventLoop
) -> None:
    _add(turns, loop, EVIL)
    _done(turns, cost_ns=BURST_NS + 10 * MILLISECOND)
    waiting = _add(turns, loop, EVIL)
    turns.note_active(Users.LOCAL, 0)
    assert turns.next(0) is None
    wait_ns = turns.ready_in(0)
    assert wait_ns is not None
    assert wait_ns > 10 * MILLISECOND * REFILL_SHARE
    assert turns.next(wait_ns - 1) is None
    assert turns.next(wait_ns) is waiting
    assert turns.throttled_at(EVIL, wait_ns) == 0


def test_a_neighbor_with_an_empty_bucket_waits_while_another_one_is_active_that_is_within_its_bucket(
    turns: Neighbors, loop: asyncio.AbstractEventLoop
) -> None:
    _add(turns, loop, EVIL)
    _done(turns, cost_ns=10 * BURST_NS)
    _add(turns, loop, EVIL)
    served = _add(turns, loop, FRIEND)
    assert _done(turns) is served
    assert turns.next(0) is None
    assert turns.ready_in(0) == min(ACTIVE_NS, (DEBT_NS + 1) * REFILL_SHARE)


def test_one_message_that_costs_much_is_owed_as_a_whole_and_cheap_ones_owe_no_more(
    turns: Neighbors, loop: asyncio.AbstractEventLoop
) -> None:
    cost_ns = 5 * DEBT_NS
    for _ in range(2):
        _add(turns, loop, EVIL)
        _done(turns, cost_ns=BURST_NS + cost_ns)
    for _ in range(100):
        turns.charge(EVIL, MILLISECOND, 0)
    _add(turns, loop, EVIL)
    for seconds in (0, 1, 2):
        turns.note_active(Users.LOCAL, seconds * SECOND)
        assert turns.next(seconds * SECOND) is None
    paid_at = (BURST_NS + cost_ns + 1) * REFILL_SHARE
    turns.note_active(Users.LOCAL, paid_at)
    assert turns.next(paid_at) is not None


def test_nobody_owes_more_for_one_message_than_the_bound(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    turns.charge(EVIL, 1_000 * COSTLY_NS, 0)
    _add(turns, loop, EVIL)
    paid_at = (COSTLY_NS + MILLISECOND) * REFILL_SHARE
    turns.note_active(Users.LOCAL, paid_at)
    assert turns.next(paid_at) is not None


def test_two_that_use_much_do_not_make_each_other_wait(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    for source in (EVIL, FRIEND):
        _add(turns, loop, source)
        _done(turns, cost_ns=10 * BURST_NS)
    now = 2 * ACTIVE_NS
    for source in (EVIL, FRIEND):
        turns.charge(source, 10 * BURST_NS, now)
        _add(turns, loop, source, now=now)
    assert {_source(_done(turns, now=now)), _source(_done(turns, now=now))} == {EVIL, FRIEND}


def _source(work: Work[SystemId] | None) -> SystemId | None:
    return None if work is None else work.source


def test_a_neighbor_that_is_throttled_for_long_is_reported_once_until_it_has_been_quiet(
    turns: Neighbors, loop: asyncio.AbstractEventLoop, throttled: list[SystemId]
) -> None:
    def flood(begin: int) -> None:
        for now in range(begin, begin + 2 * NAMED_NS, 10 * MILLISECOND):
            turns.note_active(Users.LOCAL, now)
            turns.charge(EVIL, 20 * MILLISECOND, now)
            _add(turns, loop, EVIL, now=now)
            _done(turns, now=now)

    flood(0)
    assert throttled == [EVIL]
    quiet_at = 2 * NAMED_NS + (BURST_NS + DEBT_NS) * REFILL_SHARE
    assert turns.throttled_at(EVIL, quiet_at) is None
    flood(quiet_at)
    assert throttled == [EVIL, EVIL]


def test_a_burst_within_the_bucket_is_not_reported(
    turns: Neighbors, loop: asyncio.AbstractEventLoop, throttled: list[SystemId]
) -> None:
    turns.note_active(Users.LOCAL, 0)
    _add(turns, loop, EVIL)
    assert _done(turns, cost_ns=BURST_NS // 2) is not None
    _add(turns, loop, EVIL)
    assert _done(turns) is not None
    assert turns.throttled_at(EVIL, 0) is None
    assert not throttled


def test_an_error_in_decoding_reaches_whoever_waits(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    work = _add(turns, loop, EVIL)
    assert turns.next(0) is work
    error = ValueError("malformed")
    turns.finish(work, error)
    assert work.done.exception() is error
    assert turns.next(0) is None


def test_work_that_nobody_waits_for_any_more_is_finished(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    work = _add(turns, loop, EVIL)
    work.done.cancel()
    assert _done(turns) is work
    assert turns.ready_in(0) is None


def test_neighbors_of_the_past_are_forgotten(turns: Neighbors, loop: asyncio.AbstractEventLoop) -> None:
    for number in range(1000):
        _add(turns, loop, SystemId(f"s{number}"), now=number * SECOND)
        _done(turns, now=number * SECOND)
    assert turns.known < 200
