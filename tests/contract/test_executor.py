"""Guarantees of every executor, over the one with real processes and the stub."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt, EndAttempt, ExtendLease
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.task_files import Output
from messiahs.errors import ExecutorError
from messiahs.executor.contract import AttemptState
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.stub import StubExecutor
from tests.contract.executor_rig import CLAIM, KINDS, OFFSET_NS, Rig, attempt_id, now, play_scene, starter_settings

Play = Callable[[Callable[[Rig], Awaitable[None]], float], None]


@pytest.fixture(params=[*(pytest.param(kind, marks=pytest.mark.processes) for kind in KINDS), "stub"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Play a scene with a fresh executor whose tasks take a number of seconds and write `hello`."""
    with starter_settings(tmp_path, kind=request.param) as settings:

        def make(seconds: float) -> OsProcessExecutor | StubExecutor:
            if request.param == "stub":
                return StubExecutor(delay_ns=int(seconds * SECOND), stdout=b"hello", boottime_offset_ns=OFFSET_NS)
            return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)

        yield lambda act, seconds: play_scene(act, lambda: make(seconds), seconds=seconds)


def test_an_attempt_starts_and_ends_with_its_output(play: Play) -> None:
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


def test_a_second_start_runs_nothing_and_reports_the_end_again(play: Play) -> None:
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
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=SECOND, cause=Cause.KILLED))
        await rig.end_of(1)
        await rig.start_of(3)
        assert AttemptStarted(attempt=attempt_id(4)) not in rig.events

    play(act, 60)


def test_a_running_attempt_is_ended_by_a_signal_with_the_given_cause(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=20 * SECOND, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.exit_code, end.signal, end.cause) == (None, 15, "killed")

    play(act, 60)


def test_a_queued_or_unknown_attempt_is_ended_at_once(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=0)
        for number in (1, 2):
            rig.executor.perform(EndAttempt(attempt=attempt_id(number), grace_ns=SECOND, cause=Cause.KILLED))
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


def test_an_extended_lease_lets_an_attempt_continue(play: Play) -> None:
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


def test_a_queued_attempt_has_no_output(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=0)
        await rig.executor.running()
        assert rig.executor.read_output(attempt_id(1), "stdout", offset=0, limit=9) == b""

    play(act, 60)


def test_a_stopped_executor_reports_its_tasks_as_lost(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=1)
        rig.start(2, places=1)
        await rig.start_of(1)
        await rig.executor.stop(end_tasks=True)
        await rig.executor.start(rig.events.append, pytest.fail)
        known = {one.attempt: one.ended for one in await rig.executor.running()}
        assert [end and end.cause for end in known.values()] == ["lost", "lost"]

    play(act, 60)


def test_a_restarted_host_finds_its_running_attempts(play: Play) -> None:
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
