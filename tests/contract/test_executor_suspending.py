"""Suspending and resuming attempts: guarantees of every executor, and those of real processes only."""

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt, MeasureAttempts, ResumeAttempt, SuspendAttempt
from messiahs.core.interface.attempts import AttemptsMeasured
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.executor.contract import AttemptState, KnownAttempt
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.stub import StubExecutor
from tests.contract.executor_rig import KINDS, OFFSET_NS, Rig, attempt_id, play_scene, processes_of, starter_settings
from tests.contract.task_files import IMAGE, starter_files

Play = Callable[[Callable[[Rig], Awaitable[None]], float], None]

SUSPEND, RESUME = SuspendAttempt(attempt=attempt_id(1)), ResumeAttempt(attempt=attempt_id(1))
TREE = """
ticks() { while :; do :; done; }
setsid sh -c 'while :; do :; done' &
sh -c 'while :; do :; done; true' &
(setsid sh -c 'trap "" TERM; while :; do :; done' &)
echo ready
ticks
"""
"""Four busy processes: the leader, one in another session, a child, and an orphan in its own session."""


@pytest.fixture(params=[pytest.param("os_process", marks=pytest.mark.processes), "stub"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Play a scene with a fresh executor whose tasks take a number of seconds."""
    with starter_settings(tmp_path) as settings:

        def make(seconds: float) -> OsProcessExecutor | StubExecutor:
            if request.param == "stub":
                return StubExecutor(delay_ns=int(seconds * SECOND), stdout=b"hello", boottime_offset_ns=OFFSET_NS)
            return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)

        yield lambda act, seconds: play_scene(act, lambda: make(seconds), seconds=seconds)


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.processes) for kind in KINDS])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    """Return a starter's settings, with and without a process namespace."""
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


async def _known(rig: Rig) -> KnownAttempt:
    (known,) = await rig.executor.running()
    return known


def test_a_suspended_attempt_stops_and_a_resumed_one_ends_normally(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        rig.executor.perform(SUSPEND)
        rig.executor.perform(SUSPEND)
        assert (await _known(rig)).state is AttemptState.SUSPENDED
        await _wait(rig, suspended_ns=2 * SECOND)
        assert rig.ends() == {}
        rig.executor.perform(RESUME)
        rig.executor.perform(RESUME)
        known = await _known(rig)
        assert (known.state, known.suspended_ns) == (AttemptState.RUNNING, 0)
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (0, "")

    # A sleeping process wakes when it would have without the suspension: it must not have to end with the resumption.
    play(act, 5)


def test_the_time_limit_does_not_count_while_an_attempt_is_suspended(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, limit_ns=2 * SECOND)
        await rig.start_of(1)
        rig.executor.perform(SUSPEND)
        await _wait(rig, suspended_ns=3 * SECOND)
        assert rig.ends() == {}
        rig.executor.perform(RESUME)
        end = await rig.end_of(1)
        assert end.cause == "time_limit"

    play(act, 60)


def test_the_lease_counts_while_an_attempt_is_suspended(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, lease_s=2)
        await rig.start_of(1)
        rig.executor.perform(SUSPEND)
        assert (await rig.end_of(1)).cause == "lease_expired"

    play(act, 60)


def test_a_suspended_attempt_keeps_its_place_and_can_be_ended(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=1)
        await rig.start_of(1)
        rig.executor.perform(SUSPEND)
        rig.start(2, places=1)
        states = {known.attempt: known.state for known in await rig.executor.running()}
        assert states == {attempt_id(1): AttemptState.SUSPENDED, attempt_id(2): AttemptState.QUEUED}
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=30 * SECOND, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.signal, end.cause) == (signal.SIGTERM, "killed")

    play(act, 60)


def test_an_end_for_queued_attempts_does_not_end_a_running_one(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1, places=1)
        await rig.start_of(1)
        rig.start(2, places=1)
        for number in (1, 2):
            attempt = attempt_id(number)
            rig.executor.perform(EndAttempt(attempt=attempt, grace_ns=0, cause=Cause.VACATED, only_if_queued=True))
        end = await rig.end_of(2)
        assert (end.exit_code, end.signal, end.cause) == (None, None, "vacated")
        assert (await rig.end_of(1)).exit_code == 0

    play(act, 2)


def test_suspending_and_resuming_an_attempt_that_does_not_run_changes_nothing(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.executor.perform(SUSPEND)
        rig.executor.perform(RESUME)
        rig.start(1)
        assert (await rig.end_of(1)).exit_code == 0
        rig.executor.perform(SUSPEND)
        rig.executor.perform(RESUME)
        assert (await _known(rig)).state is AttemptState.ENDED

    play(act, 0)


def test_a_restarted_host_finds_a_suspended_attempt_suspended(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        rig.executor.perform(SUSPEND)
        assert (await _known(rig)).state is AttemptState.SUSPENDED
        await rig.executor.stop(end_tasks=False)
        await rig.executor.start(rig.events.append, pytest.fail)
        known = await _known(rig)
        assert known.state is AttemptState.SUSPENDED
        assert known.suspended_ns > 0
        rig.executor.perform(RESUME)
        assert (await rig.end_of(1)).exit_code == 0

    play(act, 1)


def test_the_memory_of_running_attempts_is_reported(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.start(1)
        await rig.start_of(1)
        rig.executor.perform(MeasureAttempts(attempts=(attempt_id(1), attempt_id(2))))
        await rig.until(lambda: any(isinstance(event, AttemptsMeasured) for event in rig.events))
        (measured,) = [event for event in rig.events if isinstance(event, AttemptsMeasured)]
        ((attempt, memory_bytes),) = measured.memory
        assert attempt == attempt_id(1)
        assert memory_bytes > 1 << 16

    play(act, 60)


@pytest.mark.processes
@pytest.mark.parametrize("kind", [*KINDS, IMAGE])
def test_every_process_of_a_suspended_task_is_stopped_wherever_it_hides(tmp_path: Path, kind: str) -> None:
    with starter_files(tmp_path, kind=kind) as files:

        async def act(rig: Rig) -> None:
            processes = await _start_tree(rig, files.settings)
            rig.executor.perform(SUSPEND)
            await _known(rig)
            assert {_state(process) for process in processes} == {"T"}
            ticks = [_ticks(process) for process in processes]
            await _wait(rig, suspended_ns=2 * SECOND)
            assert [_ticks(process) for process in processes] == ticks
            rig.executor.perform(RESUME)
            await rig.until(lambda: all(_ticks(one) > before for one, before in zip(processes, ticks, strict=True)))
            assert sorted(processes_of(files.settings, 1)) == processes

        files.play(act)


WITHOUT_FIRST_THREAD = """
import ctypes, platform, threading, time
def tick():
    while True:
        print(time.monotonic_ns(), flush=True)
        time.sleep(0.05)
threading.Thread(target=tick).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
"""Its first thread ends by the call of this thread alone, so that /proc shows an ended process."""


def test_a_process_whose_first_thread_has_ended_is_stopped_and_resumed(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", 'setsid python3 -c "$1" & exec sleep 600', "sh", WITHOUT_FIRST_THREAD)
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1).count("\n") > 2)
        rig.executor.perform(SUSPEND)
        await _wait(rig, suspended_ns=SECOND)
        written = rig.output(1)
        await _wait(rig, suspended_ns=3 * SECOND)
        assert rig.output(1) == written
        rig.executor.perform(RESUME)
        await rig.until(lambda: len(rig.output(1)) > len(written))

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_process_continued_by_somebody_else_is_stopped_again(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        processes = await _start_tree(rig, settings)
        rig.executor.perform(SUSPEND)
        await _known(rig)
        os.kill(processes[0], signal.SIGCONT)
        ticks = _ticks(processes[0])
        await rig.until(lambda: _ticks(processes[0]) > ticks or _state(processes[0]) == "T")
        await rig.until(lambda: {_state(process) for process in processes} == {"T"})

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_known_process_of_a_suspended_task_is_stopped_and_resumed_although_its_parents_died(
    settings: StarterSettings,
) -> None:
    """Another task runs meanwhile, so that it matters whose a process is that shows no folder."""

    async def act(rig: Rig) -> None:
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        rig.run(1, "sh", "-c", f"setsid sh -c ': parent_{os.getpid()}; {_hidden('left')}; true' & exec sleep 600")
        await rig.until(lambda: len(_named("left")) == 1 and len(_named("parent")) == 1)
        (process,) = _named("left")
        rig.executor.perform(SUSPEND)
        await rig.executor.running()
        assert _state(process) == "T"
        os.kill(_named("parent")[0], signal.SIGKILL)
        await rig.until(lambda: _named("parent") == [])
        os.kill(process, signal.SIGCONT)
        ticks = _ticks(process)
        await rig.until(lambda: _ticks(process) > ticks or _state(process) == "T")
        await rig.until(lambda: _state(process) == "T")
        rig.executor.perform(RESUME)
        await _goes_on(rig, process)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(1)
        assert _named("left") == []

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_process_that_hides_its_folder_is_stopped_and_resumed_with_its_own_task(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        rig.run(1, "sh", "-c", f"({_hidden('stowaway')} &); exec sleep 600")
        await rig.until(lambda: len(_named("stowaway")) == 1)
        (process,) = _named("stowaway")
        rig.executor.perform(SUSPEND)
        await rig.until(lambda: _state(process) == "T")
        rig.executor.perform(ResumeAttempt(attempt=attempt_id(1)))
        await _goes_on(rig, process)

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_process_of_an_unknown_task_is_stopped_while_all_tasks_are_suspended(settings: StarterSettings) -> None:
    if settings.isolation != "process":
        pytest.skip("in a sandbox, it is known of every process to which task it belongs")

    async def act(rig: Rig) -> None:
        rig.run(2, "sleep", "600")
        await rig.start_of(2)
        # The process changes its mark before it appears, so it is never seen with the one of its attempt.
        rig.run(1, "sh", "-c", f"prlimit --locks=123456789: sh -c '{_hidden('alien')} &'; exec sleep 600")
        await rig.until(lambda: len(_named("alien")) == 1)
        (process,) = _named("alien")
        rig.executor.perform(SUSPEND)
        await _goes_on(rig, process)
        rig.executor.perform(SuspendAttempt(attempt=attempt_id(2)))
        await rig.executor.running()
        assert _state(process) == "T"
        os.kill(process, signal.SIGCONT)
        ticks = _ticks(process)
        await rig.until(lambda: _ticks(process) > ticks or _state(process) == "T")
        await rig.until(lambda: _state(process) == "T")
        rig.executor.perform(ResumeAttempt(attempt=attempt_id(2)))
        await _goes_on(rig, process)

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_a_suspended_task_receives_sigterm(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "ready\n")
        rig.executor.perform(SUSPEND)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=30 * SECOND, cause=Cause.VACATED))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause, rig.output(1)) == (3, "vacated", "ready\nsaved\n")

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def test_the_memory_of_a_task_includes_all_its_processes(settings: StarterSettings) -> None:
    held = "import time; block = bytearray(64 << 20); print('ready', flush=True); time.sleep(600)"

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", f'setsid python3 -c "{held}" & python3 -c "{held}"')
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "ready\nready\n")
        rig.executor.perform(MeasureAttempts(attempts=(attempt_id(1),)))
        await rig.until(lambda: any(isinstance(event, AttemptsMeasured) for event in rig.events))
        (measured,) = [event for event in rig.events if isinstance(event, AttemptsMeasured)]
        ((_, memory_bytes),) = measured.memory
        assert 128 << 20 <= memory_bytes < 1 << 30

    play_scene(act, lambda: OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS))


def _hidden(name: str) -> str:
    """Return a command that is always busy and shows nothing of its attempt, except a name to this test."""
    return f'cd /; env -i setsid sh -c ": {name}_{os.getpid()}; while :; do :; done"'


def _named(name: str) -> list[int]:
    """Return the shells whose script begins by telling its name to this test, not what is about to become one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_text().startswith(f"sh\0-c\0: {name}_{os.getpid()};"):
                found.append(int(path.parent.name))
    return found


async def _wait(rig: Rig, *, suspended_ns: int) -> None:
    """Let the executor itself report that so much time has passed."""
    while (await _known(rig)).suspended_ns < suspended_ns:
        await rig.until(lambda: True)


async def _start_tree(rig: Rig, settings: StarterSettings) -> list[int]:
    rig.run(1, "sh", "-c", TREE)
    await rig.start_of(1)
    await rig.until(lambda: rig.output(1) == "ready\n" and len(processes_of(settings, 1)) == 4)
    return sorted(processes_of(settings, 1))


def _fields(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _state(process: int) -> str:
    return _fields(process)[0]


async def _goes_on(rig: Rig, process: int) -> None:
    """Wait until a process has used the processor for longer than it had."""
    ticks = _ticks(process)
    await rig.until(lambda: _ticks(process) > ticks)


def _ticks(process: int) -> int:
    return int(_fields(process)[11]) + int(_fields(process)[12])
