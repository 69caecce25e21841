"""What every executor promises, over the one with real processes and the stub."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from messiahs.core.actions import DiscardAttempt, EndAttempt, ExtendLease, StartAttempt
from messiahs.core.events import AttemptEnded, AttemptStarted
from messiahs.core.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.instants import SECOND, Instant
from messiahs.core.messages import Command, Output
from messiahs.errors import ExecutorError
from messiahs.executor.contract import AttemptState, Executor, ExecutorEvent
from messiahs.executor.launch import StarterSettings, end_starter
from messiahs.executor.os_process import OsProcessExecutor
from messiahs.executor.stub import StubExecutor

OFFSET_NS = 10**18
"""Instants of the host are not those of the machine."""

CLAIM = ClaimId(SystemId("leonardo"), Epoch(7), 1)


def now() -> Instant:
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) + OFFSET_NS)


def attempt_id(number: int) -> AttemptId:
    return AttemptId(TaskId(SystemId("blays"), Epoch(2**64 - 1), number), 1)


def start_of(
    number: int, *, seconds: float = 0, places: int = 100, limit_ns: int | None = None, lease_ns: int = 600 * SECOND
) -> StartAttempt:
    """Make a task that writes `hello` and runs for a time; the stub's tasks do the same, as long as it was told."""
    return StartAttempt(
        attempt=attempt_id(number),
        claim=CLAIM,
        command=Command(argv=("sh", "-c", f"printf hello; exec sleep {seconds}" if seconds else "printf hello")),
        places=places,
        limit_ns=limit_ns,
        lease_until=Instant(now() + lease_ns),
    )


class Rig:
    """An executor that was asked what runs, and what it has told since."""

    def __init__(self, make: Callable[[float], Executor], seconds: float) -> None:
        self.executor = make(seconds)
        self.seconds = seconds
        self.events: list[ExecutorEvent] = []

    async def started(self) -> "Rig":
        """Start, and ask, so that events are told."""
        await self.executor.start(self.events.append, pytest.fail)
        await self.executor.running()
        return self

    def start(self, number: int, *, places: int = 100, limit_ns: int | None = None, lease_s: float = 600) -> None:
        """Start a numbered attempt."""
        lease_ns = int(lease_s * SECOND)
        action = start_of(number, seconds=self.seconds, places=places, limit_ns=limit_ns, lease_ns=lease_ns)
        self.executor.perform(action)

    def ends(self) -> dict[AttemptId, AttemptEnded]:
        """Name the ends that were told."""
        return {event.attempt: event for event in self.events if isinstance(event, AttemptEnded)}

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is true."""
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, self.events
            await asyncio.sleep(0.005)

    async def end_of(self, number: int) -> AttemptEnded:
        """Wait for the end of an attempt."""
        await self.until(lambda: attempt_id(number) in self.ends())
        return self.ends()[attempt_id(number)]

    async def start_of(self, number: int) -> None:
        """Wait until an attempt runs."""
        await self.until(lambda: AttemptStarted(attempt=attempt_id(number)) in self.events)


Play = Callable[[Callable[[Rig], Awaitable[None]], float], None]


@pytest.fixture(params=["os_process", "stub"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Play a scene with a fresh executor whose tasks take a number of seconds."""
    fallback = Path(tempfile.mkdtemp(prefix="messiahs-test-"))
    # Tasks of a test that runs as root run as another account, which must get there.
    fallback.chmod(0o711)
    directory = tmp_path / "starter"

    def make(seconds: float) -> Executor:
        if request.param == "stub":
            return StubExecutor(delay_ns=int(seconds * SECOND), stdout=b"hello", boottime_offset_ns=OFFSET_NS)
        settings = StarterSettings(directory=directory, fallback=fallback)
        return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)

    async def scene(act: Callable[[Rig], Awaitable[None]], seconds: float) -> None:
        rig = await Rig(make, seconds).started()
        try:
            await act(rig)
        finally:
            await rig.executor.stop(end_tasks=True)

    yield lambda act, seconds: asyncio.run(scene(act, seconds))
    asyncio.run(end_starter(directory))
    shutil.rmtree(fallback)


def test_an_attempt_starts_and_ends_with_what_it_wrote(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        end = await rig.end_of(1)
        assert (end.exit_code, end.signal, end.cause) == (0, None, "")
        assert end.outputs == (Output(name="stdout", size_bytes=5), Output(name="stderr", size_bytes=0))
        assert rig.events[0] == AttemptStarted(attempt=attempt_id(1))
        assert rig.executor.read_output(attempt_id(1), "stdout", offset=1, limit=3) == b"ell"
        assert rig.executor.read_output(attempt_id(1), "stdout", offset=5, limit=3) == b""
        assert rig.executor.read_output(attempt_id(1), "stderr", offset=0, limit=3) == b""

    play(act, 0)


def test_a_second_start_runs_nothing_and_tells_the_end_again(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        first = await rig.end_of(1)
        rig.events.clear()
        rig.start(1)
        assert await rig.end_of(1) == first
        assert rig.events == [first]

    play(act, 0)


def test_at_most_as_many_attempts_of_a_claim_run_as_it_has_places(play: Play) -> None:
    async def act(rig: Rig) -> None:
        for number in range(1, 5):
            rig.start(number, places=2)
        await rig.start_of(2)
        states = [known.state for known in await rig.executor.running()]
        assert sorted(states) == [AttemptState.QUEUED] * 2 + [AttemptState.RUNNING] * 2
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=SECOND, cause="killed"))
        await rig.end_of(1)
        await rig.start_of(3)
        assert AttemptStarted(attempt=attempt_id(4)) not in rig.events

    play(act, 60)


def test_a_running_attempt_is_ended_by_a_signal_and_with_the_cause_that_was_given(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=20 * SECOND, cause="killed"))
        end = await rig.end_of(1)
        assert (end.exit_code, end.signal, end.cause) == (None, 15, "killed")

    play(act, 60)


def test_an_attempt_that_waits_or_is_unknown_is_ended_at_once(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=0)
        for number in (1, 2):
            rig.executor.perform(EndAttempt(attempt=attempt_id(number), grace_ns=SECOND, cause="killed"))
            end = await rig.end_of(number)
            assert (end.exit_code, end.signal, end.cause) == (None, None, "killed")
        rig.start(2)
        rig.start(3)
        await rig.start_of(3)
        assert AttemptStarted(attempt=attempt_id(2)) not in rig.events

    play(act, 60)


def test_an_attempt_ends_at_its_time_limit(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, limit_ns=SECOND // 10)
        end = await rig.end_of(1)
        assert end.cause == "time_limit"
        assert end.signal is not None

    play(act, 60)


def test_running_and_waiting_attempts_end_with_the_lease_of_their_claim(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=1, lease_s=0.3)
        rig.start(2, places=1, lease_s=0.3)
        assert (await rig.end_of(1)).cause == (await rig.end_of(2)).cause == "lease_expired"
        assert AttemptStarted(attempt=attempt_id(2)) not in rig.events

    play(act, 60)


def test_no_attempt_starts_under_an_expired_lease(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=-1)
        assert (await rig.end_of(1)).cause == "lease_expired"
        assert AttemptStarted(attempt=attempt_id(1)) not in rig.events

    play(act, 60)


def test_an_extended_lease_lets_an_attempt_run_on(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=0.5)
        rig.executor.perform(ExtendLease(claim=CLAIM, until=Instant(now() + 600 * SECOND)))
        assert (await rig.end_of(1)).exit_code == 0

    play(act, 1)


def test_an_ended_attempt_is_known_until_it_is_discarded(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        end = await rig.end_of(1)
        (known,) = await rig.executor.running()
        assert (known.state, known.ended) == (AttemptState.ENDED, end)
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        assert await rig.executor.running() == ()
        with pytest.raises(ExecutorError):
            rig.executor.read_output(attempt_id(1), "stdout", offset=0, limit=1)

    play(act, 0)


def test_an_attempt_that_waits_has_written_nothing(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=0)
        await rig.executor.running()
        assert rig.executor.read_output(attempt_id(1), "stdout", offset=0, limit=9) == b""

    play(act, 60)


def test_what_was_stopped_with_its_tasks_knows_them_as_lost(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=1)
        rig.start(2, places=1)
        await rig.start_of(1)
        await rig.executor.stop(end_tasks=True)
        await rig.executor.start(rig.events.append, pytest.fail)
        known = {one.attempt: one.ended for one in await rig.executor.running()}
        assert [end and end.cause for end in known.values()] == ["lost", "lost"]

    play(act, 60)


def test_a_host_that_comes_back_finds_what_it_left_running(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        await rig.executor.stop(end_tasks=False)
        rig.events.clear()
        await rig.executor.start(rig.events.append, pytest.fail)
        (known,) = await rig.executor.running()
        assert (known.attempt, known.state) == (attempt_id(1), AttemptState.RUNNING)
        assert (await rig.end_of(1)).exit_code == 0
        assert len(rig.events) == 1

    play(act, 1)
