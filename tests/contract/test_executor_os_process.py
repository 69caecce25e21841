"""Guarantees of an executor of real processes: accounts, signals, remains, and the loss of its starter."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt, EndAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import Output
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import STARTER_ENDED, folder_name
from messiahs.executor.linux.processes import is_alive, kill, wait_until_gone
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.protocol.layout import ATTEMPTS, task_account
from tests.contract.executor_rig import (
    KINDS,
    OFFSET_NS,
    Rig,
    attempt_id,
    is_one_of_tasks,
    play_scene,
    processes_of,
    root_of,
    starter_settings,
    work_seen,
)

pytestmark = pytest.mark.processes

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    """Return the settings of each kind of starter."""
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


@pytest.fixture
def play(settings: StarterSettings) -> Play:
    """Play a scene with a fresh executor."""
    return lambda act: play_scene(act, lambda: executor_of(settings))


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


def folder_of(settings: StarterSettings, number: int) -> Path:
    return root_of(settings) / ATTEMPTS / folder_name(attempt_id(number))


def test_a_task_sees_exactly_its_environment(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "env", env=(("COLOUR", "red"), ("LANG", "fr"), ("MESSIAHS_TASK_ID", "another")))
        await rig.end_of(1)
        seen = dict(line.split("=", 1) for line in rig.output(1).splitlines())
        work = work_seen(settings, 1)
        assert seen.pop("PATH")
        assert seen == {
            # Bubblewrap says where a task begins, as a shell does.
            **({"PWD": work} if settings.isolation == "bubblewrap" else {}),
            "LANG": "fr",
            "HOME": work,
            "TMPDIR": work,
            "USER": task_account(settings.task_uids).name,
            "MESSIAHS_TASK_ID": "blays.1",
            "MESSIAHS_ATTEMPT": "1",
            "COLOUR": "red",
        }

    play(act)


def test_a_task_is_never_root_and_starts_in_its_own_folder(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "id -u; id -G; pwd; cat; grep -c . /proc/self/environ >/dev/null; ls -a | wc -l")
        assert (await rig.end_of(1)).exit_code == 0
        uid, groups, folder, entries = rig.output(1).splitlines()
        assert is_one_of_tasks(settings, int(uid))
        assert (folder, entries.strip()) == (work_seen(settings, 1), "2")
        assert groups.split() == [uid if os.geteuid() == 0 else str(os.getegid())]

    play(act)


def test_a_missing_program_is_reported(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "no-such-program")
        rig.run(2, "./no-such-program")
        rig.run(3, "/etc/passwd")
        rig.run(4, "true", env=(("PATH", "/nowhere"),))
        ends = [await rig.end_of(number) for number in (1, 2, 3, 4)]
        assert [(end.cause, end.exit_code) for end in ends] == [("not_found", code) for code in (127, 127, 126, 127)]
        assert "no-such-program" in ends[0].text

    play(act)


def test_a_command_that_cannot_be_executed_does_not_affect_others(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "true", "nul\0inside")
        rig.run(2, "true", "x" * (1 << 20))
        rig.run(3)
        rig.run(4, "true")
        causes = [(await rig.end_of(number)).cause for number in (1, 2, 3, 4)]
        assert causes == ["spawn_failed", "not_found", "not_found", ""]

    play(act)


def test_exit_codes_and_signals_are_reported_unchanged(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "echo wrong >&2; exit 42")
        rig.run(2, "sh", "-c", "kill -9 $$")
        first, second = await rig.end_of(1), await rig.end_of(2)
        assert (first.exit_code, first.signal, first.outputs[1]) == (42, None, Output(name="stderr", size_bytes=6))
        assert (second.exit_code, second.signal, second.cause) == (None, signal.SIGKILL, "")

    play(act)


def test_a_task_that_ignores_sigterm_is_killed_after_its_grace(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 60; done")
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "ready\n")
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=SECOND // 5, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.signal, end.cause) == (signal.SIGKILL, "killed")
        assert end.ran_ns >= SECOND // 5

    play(act)


def test_no_process_of_a_task_runs_when_its_end_is_reported(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "setsid sleep 60 & sleep 61 & (setsid setsid sleep 62 &) ; wait_for_nothing=1")
        assert (await rig.end_of(1)).exit_code == 0
        assert processes_of(settings, 1) == []

    play(act)


def test_processes_left_by_one_task_do_not_end_another(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "setsid sleep 60 & echo ready; sleep 60; true")
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "ready\n" and len(processes_of(settings, 1)) == 3)
        rig.run(2, "sh", "-c", "setsid sleep 60 &")
        await rig.end_of(2)
        assert len(processes_of(settings, 1)) == 3

    play(act)


def test_a_used_folder_is_removed_and_the_next_task_gets_an_empty_one(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "mkdir -p a/b; touch a/b/c; chmod 500 a/b; ln -s / a/root")
        await rig.end_of(1)
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        root = folder_of(settings, 1).parents[1]
        await rig.until(lambda: not folder_of(settings, 1).exists() and not list((root / "trash").iterdir()))
        rig.run(2, "sh", "-c", "ls -A | wc -l")
        await rig.end_of(2)
        assert rig.output(2).strip() == "0"

    play(act)


def test_a_log_that_a_task_replaced_is_not_followed(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "ln -sf /etc/passwd ../stdout; rm ../stderr; mkfifo ../stderr")
        end = await rig.end_of(1)
        is_replaced = os.geteuid() != 0
        assert [output.size_bytes == 0 for output in end.outputs] == [True, is_replaced]
        for name in ("stdout", "stderr"):
            with pytest.raises(ExecutorError) if is_replaced else nullcontext():
                assert "root" not in rig.output(1, name)

    play(act)


def test_a_log_is_read_while_it_grows(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 60")
        await rig.start_of(1)
        await rig.until(lambda: rig.output(1) == "one\n")
        assert rig.ends() == {}

    play(act)


def test_a_dead_starter_is_replaced_and_its_attempts_are_lost(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "true")
        await rig.end_of(1)
        rig.run(2, "sh", "-c", "setsid sleep 60 & sleep 60; true")
        await rig.start_of(2)
        await rig.until(lambda: len(processes_of(settings, 2)) == 3)
        kill_starter(settings)
        end = await rig.end_of(2)
        assert (end.cause, end.text) == ("lost", STARTER_ENDED)
        assert len(rig.losses) == 1
        assert processes_of(settings, 2) == []
        known = {one.attempt: one.ended for one in await rig.executor.running()}
        assert known == rig.ends()
        rig.run(3, "true")
        assert (await rig.end_of(3)).exit_code == 0
        rig.events.clear()
        rig.run(2, "true")
        assert (await rig.end_of(2)).cause == "lost"

    play(act)


def test_a_starter_that_died_without_a_daemon_is_detected(settings: StarterSettings) -> None:
    async def first(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "exit 3")
        await rig.end_of(1)
        rig.run(2, "sleep", "60")
        await rig.start_of(2)
        await rig.executor.stop(end_tasks=False)
        kill_starter(settings)

    async def second(rig: Rig) -> None:
        ended = {one.attempt: one.ended for one in await rig.executor.running()}
        first_end = ended[attempt_id(1)]
        assert first_end is not None
        assert first_end == AttemptEnded(
            attempt=attempt_id(1),
            exit_code=3,
            ran_ns=ended_ns(first_end),
            usage=first_end.usage,
            containment=first_end.containment,
            outputs=(Output(name="stdout", size_bytes=0), Output(name="stderr", size_bytes=0)),
        )
        last = ended[attempt_id(2)]
        assert last is not None
        assert (last.cause, last.text) == ("lost", STARTER_ENDED)
        assert not rig.executor.has_rebooted
        assert processes_of(settings, 2) == []

    play_scene(first, lambda: executor_of(settings))
    play_scene(second, lambda: executor_of(settings))


def test_a_silent_starter_is_ended_with_its_tasks(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)
        assert starter is not None
        os.kill(starter.pid, signal.SIGSTOP)
        assert (await rig.end_of(1)).cause == "lost"
        assert "silent" in rig.losses[0]
        assert not is_alive(starter)

    play_scene(act, lambda: executor_of(replace(settings, silence_ns=SECOND // 2)))


def test_leases_end_attempts_while_there_is_no_daemon(settings: StarterSettings) -> None:
    async def first(rig: Rig) -> None:
        rig.start(1, lease_s=2)
        await rig.until(lambda: bool(processes_of(settings, 1)))
        await rig.executor.stop(end_tasks=False)
        await rig.until(lambda: processes_of(settings, 1) == [])
        starter = recorded_identity(settings.directory)
        await rig.executor.start(rig.events.append, pytest.fail)
        (known,) = await rig.executor.running()
        # The starter may learn a moment later that the last process is gone.
        assert (known.ended or await rig.end_of(1)).cause == "lease_expired"
        assert recorded_identity(settings.directory) == starter

    async def scene() -> None:
        rig = await Rig(executor_of(settings), seconds=60).started()
        try:
            await first(rig)
        finally:
            await rig.executor.stop(end_tasks=True)

    asyncio.run(scene())


def test_stopping_ends_every_process(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "setsid sleep 60 & sleep 60; true")
        await rig.start_of(1)
        await rig.until(lambda: len(processes_of(settings, 1)) == 3)

    play_scene(act, lambda: executor_of(settings))
    starter = recorded_identity(settings.directory)
    assert starter is not None
    assert not is_alive(starter)
    assert processes_of(settings, 1) == []


def test_sigterm_ends_the_starter_with_its_tasks(play: Play, settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        await rig.start_of(1)
        starter = recorded_identity(settings.directory)
        assert starter is not None
        os.kill(starter.pid, signal.SIGTERM)
        end = await rig.end_of(1)
        assert (end.cause, end.signal) == ("lost", signal.SIGTERM)
        assert wait_until_gone(starter, 10 * SECOND)

    play(act)


def test_a_task_cannot_end_a_starter_that_is_init(tmp_path: Path) -> None:
    async def act(rig: Rig) -> None:
        if rig.executor.degraded:
            pytest.skip(rig.executor.degraded)
        rig.run(1, "sh", "-c", "kill -TERM 1; kill -KILL 1; echo $?")
        assert (await rig.end_of(1)).exit_code == 0
        rig.run(2, "true")
        assert (await rig.end_of(2)).exit_code == 0
        assert rig.losses == []

    with starter_settings(tmp_path) as settings:
        play_scene(act, lambda: executor_of(settings))


def test_tasks_cannot_reach_the_starter_of_a_daemon_that_is_root(play: Play, settings: StarterSettings) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: an ordinary user's tasks have the daemon's own account")
    files = [settings.directory / name for name in ("starter.sock", "journal.0", "journal.1", "starter.pid")]

    async def act(rig: Rig) -> None:
        script = 'for file; do test -w "$file" -o -r "$file" && echo "$file"; done; true'
        rig.run(1, "sh", "-c", script, "sh", *map(str, files))
        assert (await rig.end_of(1)).exit_code == 0
        assert rig.output(1) == ""
        for file in files:
            assert (file.stat().st_uid, file.stat().st_mode & 0o077) == (0, 0)

    play(act)


def test_no_task_limits_the_starter_of_a_daemon_that_is_root(play: Play, settings: StarterSettings) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: an ordinary user's tasks have the daemon's own account")

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "prlimit --pid $PPID --nofile=3:3 --cpu=1:1 --fsize=0:0 2>&1; true")
        await rig.end_of(1)
        # In a box, the parent is the init of the box.
        assert ("failed" in rig.output(1)) == (settings.isolation != "bubblewrap")
        rig.run(2, "grep", "^Gid:", "/proc/self/status")
        assert (await rig.end_of(2)).exit_code == 0
        assert len(set(rig.output(2).split()[1:])) == 1
        assert rig.losses == []

    play(act)


def test_the_starter_imports_no_large_module() -> None:
    heavy = ("grpc", "google", "aiohttp", "networkx", "asyncio", "pydantic", "lark", "psutil")
    code = f"import sys, messiahs.executor.starter.process; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def kill_starter(settings: StarterSettings) -> None:
    starter = recorded_identity(settings.directory)
    assert starter is not None
    kill(starter)
    assert wait_until_gone(starter, 10 * SECOND)


def ended_ns(ended: AttemptEnded | None) -> int:
    assert ended is not None
    assert ended.ran_ns > 0
    return ended.ran_ns
