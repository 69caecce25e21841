"""What comes between timeouts that are due, and who is charged for these and for what tasks do."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.events import ControlReceived, LinkUp, Measured, StoreChanged, TransferReceived
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.audit.files import AuditFiles
from messiahs.daemon.audit.journal import Journal
from messiahs.daemon.host import driver as driving
from messiahs.daemon.host import turns
from messiahs.daemon.host.driver import Driver
from messiahs.daemon.host.turns import Work
from messiahs.daemon.storage.clock import Clock
from messiahs.daemon.storage.store import RowStore
from messiahs.trace.replay.replay import replay
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    Rig,
    hello,
    make_module,
    message_in,
    remote,
    request,
    sdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy
from tests.unit.trace.taping import Taping, submitted, taping

_SHAPES = 30
_EVENT = StoreChanged(has_space=False)


def _driver(tape: Taping, folder: Path) -> Driver:
    journal = Journal(AuditFiles(folder / "audit", keep_days=lambda: 30), module="me")
    store = RowStore(folder / "module.db")
    return Driver(tape.module, store, clock=Clock(Instant(0)), journal=journal, perform=lambda _: None)


def _is_due(tape: Taping) -> bool:
    """Return whether a timeout of the unit tests' time is left, which is long ago for the clock of a driver."""
    deadline = tape.module.next_deadline()
    return deadline is not None and deadline < 2 * tape.now


async def _drive(tape: Taping, folder: Path) -> None:
    """Let something happen before each step for as long as timeouts are due."""
    driver = _driver(tape, folder)
    while _is_due(tape):
        driver.post(_EVENT)
        await asyncio.sleep(0)
    await driver.stop()


def test_events_come_between_timeouts_that_are_due_and_the_recording_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "_TIMEOUTS_NS", 0)
    tape = taping(Rig(module=make_module()))
    tape.record()
    tape.start()
    tape.handle(Measured(sdv=sdv()))
    for number in range(_SHAPES):
        tape.handle(replace(submitted(f"k{number}"), requirement=f"$speed > {100_000 + number}"))
    asyncio.run(_drive(tape, tmp_path))
    tape.module.end_recording()

    subjects = [record.subject for segment in tape.files.segments() for record in segment.records()]
    timeouts = [place for place, subject in enumerate(subjects) if subject is None]
    assert len(timeouts) > _SHAPES
    assert subjects[timeouts[0] : timeouts[-1]].count(_EVENT) >= _SHAPES
    assert replay(tape.files.segments(), policy=ScriptedPolicy()).differences == []


def test_many_timeouts_that_are_due_fire_in_one_step_while_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "_TIMEOUTS_NS", 1 << 62)
    tape = taping(Rig(module=make_module()))
    tape.record()
    tape.start()
    tape.handle(Measured(sdv=sdv()))
    asyncio.run(_drive(tape, tmp_path))
    tape.module.end_recording()
    subjects = [record.subject for segment in tape.files.segments() for record in segment.records()]
    assert subjects[-1] is None
    assert subjects.count(_EVENT) == 1


async def _end_and_send(tape: Taping, folder: Path, ended: AttemptEnded) -> dict[SystemId, bool]:
    """Let an attempt end and then two neighbors send something; return who is throttled when one was served."""
    driver = _driver(tape, folder)
    driver.post(ended)
    await asyncio.sleep(0)
    for neighbor in (PARENT, CHILD):
        served = driver.in_turn(neighbor, iter(()), 0)
    await served
    throttled = {neighbor: driver.is_throttled(neighbor) for neighbor in (PARENT, CHILD)}
    await driver.stop()
    return throttled


def test_the_end_of_an_attempt_is_charged_to_the_neighbor_through_which_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "_ROW_NS", SECOND)
    monkeypatch.setattr(turns, "ACTIVE_NS", 1 << 60)
    tape = taping(Rig(module=make_module()))
    tape.start()
    tape.handle(Measured(sdv=sdv()))
    tape.handle(LinkUp(neighbor=PARENT))
    tape.handle(ControlReceived(sender=PARENT, message=hello(PARENT)))
    claim = message_in(tape.handle(ControlReceived(sender=PARENT, message=request())), SchedAccept)
    tape.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    ended = AttemptEnded(attempt=remote(), exit_code=0)
    assert asyncio.run(_end_and_send(tape, tmp_path, ended)) == {PARENT: True, CHILD: False}


async def _ask_twice(tape: Taping, folder: Path) -> dict[SystemId, bool]:
    """Let one neighbor ask for a place and then two send something; return who is throttled when one was served."""
    driver = _driver(tape, folder)
    await driver.in_turn(PARENT, iter((ControlReceived(sender=PARENT, message=request()),)), 0)
    for neighbor in (PARENT, CHILD):
        served = driver.in_turn(neighbor, iter(()), 0)
    await served
    throttled = {neighbor: driver.is_throttled(neighbor) for neighbor in (PARENT, CHILD)}
    await driver.stop()
    return throttled


@pytest.mark.parametrize(
    ("counted", "is_throttled"), [({"_ROW_NS": SECOND}, True), ({"_EFFECT_NS": SECOND}, True), ({}, False)]
)
def test_a_message_is_charged_with_the_rows_and_effects_that_follow_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: dict[str, int], *, is_throttled: bool
) -> None:
    for name, cost_ns in counted.items():
        monkeypatch.setattr(driving, name, cost_ns)
    monkeypatch.setattr(turns, "ACTIVE_NS", 1 << 60)
    tape = taping(Rig(module=make_module()))
    tape.start()
    tape.handle(Measured(sdv=sdv()))
    tape.handle(LinkUp(neighbor=PARENT))
    tape.handle(ControlReceived(sender=PARENT, message=hello(PARENT)))
    assert asyncio.run(_ask_twice(tape, tmp_path)) == {PARENT: is_throttled, CHILD: False}


@dataclass(slots=True)
class _Playing:
    """A clock that only slow events move, and whose events they were (mutable)."""

    cost_ns: int
    now: int = 0
    handled: list[str] = field(default_factory=list)

    def monotonic_ns(self) -> int:
        return self.now

    def slow(self, source: str) -> Iterator[None]:
        self.now += self.cost_ns
        self.handled.append(source)
        yield None


async def _step_once(tape: Taping, folder: Path, playing: _Playing) -> Counter[str]:
    """Queue slow events of a neighbor and of a user; return how many of each were handled in the first step."""
    driver = _driver(tape, folder)
    loop = asyncio.get_running_loop()
    users = [Work(source=1, events=playing.slow("user"), done=loop.create_future()) for _ in range(6)]
    for work in users:
        driver.users.queue.add(work, playing.now)
    neighbors = [driver.in_turn(PARENT, playing.slow("neighbor"), 0) for _ in range(6)]
    await asyncio.sleep(0)
    handled = Counter(playing.handled)
    await asyncio.gather(*(work.done for work in users), *neighbors)
    await driver.stop()
    return handled


@pytest.mark.parametrize(("cost_ms", "of_user", "of_neighbor"), [(1, 5, 2), (2, 3, 1), (20, 1, 1)])
def test_a_step_ends_after_a_few_milliseconds_of_users_and_of_neighbors_and_what_is_left_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost_ms: int, of_user: int, of_neighbor: int
) -> None:
    playing = _Playing(cost_ms * MILLISECOND)
    monkeypatch.setattr(driving, "time", playing)
    tape = taping(Rig(module=make_module()))
    tape.start()
    expected = {"user": of_user, "neighbor": of_neighbor}
    assert asyncio.run(_step_once(tape, tmp_path, playing)) == expected
    assert Counter(playing.handled) == {"user": 6, "neighbor": 6}


async def _round_and_ask(tape: Taping, folder: Path) -> dict[str, bool]:
    """Let the rounds of ann's tasks fire, and then two users ask for something; return who is throttled."""
    driver = _driver(tape, folder)
    ann, eve = Caller("ann", 1), Caller("eve", 2)
    driver.ask(_EVENT, ann)
    await asyncio.sleep(0)
    assert not _is_due(tape)
    driver.ask(_EVENT, ann)
    driver.ask(_EVENT, eve)
    await asyncio.sleep(0)
    queue, now = driver.users.queue, time.monotonic_ns()
    throttled = {each.user: queue.throttled_at(each.uid, now) is not None for each in (ann, eve)}
    await driver.stop()
    return throttled


def test_rounds_of_searching_are_charged_to_the_user_of_the_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "_TIMEOUTS_NS", 1 << 62)
    monkeypatch.setattr(driving, "_EFFECT_NS", SECOND)
    monkeypatch.setattr(turns, "ACTIVE_NS", 1 << 60)
    tape = taping(Rig(module=make_module()))
    tape.start()
    tape.handle(Measured(sdv=sdv()))
    tape.handle(replace(submitted(), requirement="$speed > 100000"))
    assert asyncio.run(_round_and_ask(tape, tmp_path)) == {"ann": True, "eve": False}
