"""Turns of local users: who queues, who is first, and what slices are charged."""

import asyncio
import pwd
import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from messiahs.core.interface.events import LinkUp
from messiahs.core.model.ids import SystemId
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.turns import BURST_NS, DEBT_NS, NAMED_NS, QUANTUM_NS, Work
from messiahs.daemon.host.user_turns import UserTurns

ANN, EVE = 1_001, 1_002


@pytest.fixture
def turns() -> Iterator[UserTurns]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)

    async def made() -> UserTurns:
        return UserTurns(on_waiting=lambda: None, on_active=lambda: None)

    yield loop.run_until_complete(made())
    asyncio.set_event_loop(None)
    loop.close()


def waiting(turns: UserTurns, uid: int) -> Work[int]:
    """Let a slice of a user ask for its turn, which it does not get at once."""

    async def asked() -> Work[int] | None:
        return turns.turn_of(uid)

    work = asyncio.get_event_loop().run_until_complete(asked())
    assert work is not None
    return work


def order(turns: UserTurns) -> Iterator[int]:
    """Yield the users whose works are done, each of which costs half a quantum."""
    now = time.monotonic_ns()
    while (work := turns.queue.next(now)) is not None:
        turns.queue.charge(work.source, QUANTUM_NS // 2, now)
        turns.queue.finish(work)
        yield work.source


def fill(turns: UserTurns) -> None:
    """Use up what may be done before the next step."""
    turns.charge(ANN, QUANTUM_NS)


def test_a_slice_begins_at_once_while_nobody_waits_and_little_was_done(turns: UserTurns) -> None:
    assert turns.turn_of(ANN) is None
    assert turns.turn_of(EVE) is None
    fill(turns)
    assert not waiting(turns, EVE).done.done()
    turns.begin_step()
    # Eve is still before her.
    assert not waiting(turns, ANN).done.done()


def test_one_request_comes_before_a_thousand_that_another_user_has_sent_earlier(turns: UserTurns) -> None:
    fill(turns)
    for _ in range(1_000):
        waiting(turns, ANN)
    last = waiting(turns, EVE)
    assert EVE in islice(order(turns), 4)
    assert last.done.done()


def test_events_of_a_user_are_handled_in_their_order_and_say_who_caused_them(turns: UserTurns) -> None:
    ann = Caller("ann", ANN)

    async def asked() -> None:
        for name in ("a", "b"):
            turns.ask(LinkUp(neighbor=SystemId(name)), ann)

    asyncio.get_event_loop().run_until_complete(asked())
    seen = []
    while (work := turns.queue.next(time.monotonic_ns())) is not None:
        assert work.by == ann
        seen += list(work.events)
        turns.queue.finish(work)
    assert seen == [LinkUp(neighbor=SystemId("a")), LinkUp(neighbor=SystemId("b"))]


def test_what_a_slice_was_expected_to_cost_is_settled_when_it_has_ended(turns: UserTurns) -> None:
    for _ in range(2 * (BURST_NS + DEBT_NS) // QUANTUM_NS):
        fill(turns)
        work = waiting(turns, ANN)
        turns.begin_step()
        now = time.monotonic_ns()
        turns.queue.charge(ANN, work.begun_ns - QUANTUM_NS, now)
        turns.queue.finish(work)
        turns.charge(ANN, 0, turn=work)
    turns.queue.note_active(EVE, now)
    waiting_again = turns.turn_of(ANN)
    # Otherwise half a quantum of each would have emptied the bucket.
    assert waiting_again is None


def test_a_user_with_an_empty_bucket_waits_while_another_one_is_active(turns: UserTurns) -> None:
    turns.charge(ANN, BURST_NS + DEBT_NS)
    fill(turns)
    waiting(turns, ANN)
    waiting(turns, EVE)
    assert next(order(turns)) == EVE
    now = time.monotonic_ns()
    turns.queue.note_active(EVE, now)
    assert turns.queue.next(now) is None
    assert turns.queue.throttled_at(ANN, now) is not None


def test_the_name_of_a_user_who_is_throttled_is_looked_up_outside_of_the_event_loop(
    turns: UserTurns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looking: list[threading.Thread] = []

    def look_up(uid: int) -> pwd.struct_passwd:
        looking.append(threading.current_thread())
        return pwd.struct_passwd(("ann", "x", uid, uid, "", "/", "/bin/sh"))

    async def throttled() -> None:
        fill(turns)
        turns.turn_of(ANN)
        for now in (time.monotonic_ns(), time.monotonic_ns() + NAMED_NS):
            turns.queue.charge(ANN, 2 * (BURST_NS + DEBT_NS), now)
            turns.queue.note_active(EVE, now)
            assert turns.queue.next(now) is None

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    loop = asyncio.get_event_loop()
    loop.run_until_complete(throttled())
    loop.run_until_complete(loop.shutdown_default_executor())
    text = f"uid {ANN} (ann): it asks for more than its share and is throttled: other users come first"
    assert caplog.messages == [text]
    assert looking != [threading.current_thread()]


def test_what_is_done_later_for_tasks_of_a_user_is_charged_by_name(turns: UserTurns) -> None:
    async def asked() -> None:
        for name, uid in (("ann", ANN), ("eve", EVE)):
            turns.ask(LinkUp(neighbor=SystemId(name)), Caller(name, uid))

    asyncio.get_event_loop().run_until_complete(asked())
    turns.charge_name("ann", BURST_NS + DEBT_NS)
    turns.charge_name("who-never-asked", BURST_NS + DEBT_NS)
    assert next(order(turns)) == EVE
    now = time.monotonic_ns()
    turns.queue.note_active(EVE, now)
    assert turns.queue.next(now) is None
    assert turns.queue.throttled_at(ANN, now) is not None


def test_a_slice_that_is_expected_to_cost_much_waits_and_is_charged_before_it_begins(turns: UserTurns) -> None:
    async def asked() -> Work[int] | None:
        return turns.turn_of(ANN, cost_ns=20 * QUANTUM_NS)

    large = [asyncio.get_event_loop().run_until_complete(asked()) for _ in range(8)]
    assert [work.begun_ns for work in large if work is not None] == [20 * QUANTUM_NS] * 8
    small = waiting(turns, EVE)
    now = time.monotonic_ns()
    first = turns.queue.next(now)
    assert first is not None
    assert first is large[0]
    # As the driver does.
    turns.queue.charge(ANN, first.begun_ns, now)
    turns.queue.finish(first)
    assert turns.queue.next(now) is small
