"""Guarantees of every executor about standard input, and what tasks see of it."""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.errors import ExecutorError
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import end_starter
from messiahs.executor.stub import StubExecutor
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, start_of
from tests.contract.task_files import ROOTS, Files, starter_files

Play = Callable[[Callable[[Rig], Awaitable[None]]], None]
PIPE_BYTES = 1 << 16


class Fed(NamedTuple):
    """What was taken of standard input."""

    offset_bytes: int
    is_closed: bool


@pytest.fixture(params=[*(pytest.param(kind, marks=pytest.mark.processes) for kind in ROOTS), "stub"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Play]:
    """Play a scene with a fresh executor."""
    if request.param == "stub":
        yield lambda act: play_scene(act, lambda: StubExecutor(delay_ns=60 * SECOND, boottime_offset_ns=OFFSET_NS))
        return
    with starter_files(tmp_path, kind=request.param) as files:
        yield files.play


@pytest.fixture(params=ROOTS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as made:
        yield made


def start(rig: Rig, number: int, *argv: str, places: int = 100, inputs: tuple[InputFile, ...] = ()) -> None:
    """Start a command that takes standard input."""
    command = Command(argv=argv, takes_stdin=True, inputs=inputs)
    rig.begin(replace(start_of(number, places=places), command=command))


async def fed(rig: Rig, content: bytes = b"", *, at: int = 0, is_end: bool = False, number: int = 1) -> Fed:
    taken = await rig.executor.feed(attempt_id(number), content, offset_bytes=at, is_end=is_end)
    assert not taken.has_terminal
    return Fed(taken.offset_bytes, taken.is_closed)


async def waiting(rig: Rig) -> "asyncio.Future[Fed]":
    """Start a task that reads nothing, fill its pipe, and return the call with the piece that waits."""
    start(rig, 1, "sleep", "60")
    assert await fed(rig, bytes(PIPE_BYTES)) == (PIPE_BYTES, False)
    call = asyncio.ensure_future(fed(rig, b"more", at=PIPE_BYTES))
    # The starter answers later questions, so it has seen the piece.
    await rig.executor.running()
    assert not call.done()
    return call


def test_each_byte_is_taken_once_and_a_gap_is_not(play: Play) -> None:
    async def act(rig: Rig) -> None:
        start(rig, 1, "sleep", "60")
        assert await fed(rig) == (0, False)
        assert await fed(rig, b"one two ") == (8, False)
        assert await fed(rig, b"two three", at=4) == (13, False)
        assert await fed(rig, b"one", at=0) == (13, False)
        assert await fed(rig, b"five", at=14, is_end=True) == (13, False)
        assert await fed(rig, at=13, is_end=True) == (13, True)
        assert await fed(rig) == (13, True)

    play(act)


def test_an_attempt_that_takes_no_input_has_none(play: Play) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sleep", "60")
        assert (await fed(rig, b"one")).is_closed
        assert (await fed(rig, b"one", number=2)).is_closed
        start(rig, 3, "sleep", "60")
        rig.executor.perform(EndAttempt(attempt=attempt_id(3), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(3)
        assert (await fed(rig, b"one", number=3)).is_closed

    play(act)


@pytest.mark.processes
def test_a_task_reads_what_it_is_fed_and_then_the_end(files: Files) -> None:
    content = random.Random(1).randbytes(1_000_003)

    async def act(rig: Rig) -> None:
        start(rig, 1, "sha256sum")
        at = 0
        while at < len(content):
            at, is_closed = await fed(rig, content[at : at + PIPE_BYTES], at=at)
            assert not is_closed
        assert await fed(rig, at=at, is_end=True) == (len(content), True)
        assert (await rig.end_of(1)).exit_code == 0
        assert rig.output(1).split()[0] == hashlib.sha256(content).hexdigest()

    files.play(act)


@pytest.mark.processes
def test_a_task_that_does_not_read_makes_its_feeder_wait(files: Files) -> None:
    async def act(rig: Rig) -> None:
        call = await waiting(rig)
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        assert await call == (PIPE_BYTES, True)

    files.play(act)


@pytest.mark.processes
def test_a_task_that_closes_its_input_takes_no_more(files: Files) -> None:
    async def act(rig: Rig) -> None:
        start(rig, 1, "sh", "-c", "head -c 3; exec <&-; exec sleep 60")
        at, is_closed = 0, False
        while not is_closed:
            at, is_closed = await fed(rig, bytes(PIPE_BYTES), at=at)
        assert rig.output(1) == "\0\0\0"
        assert not rig.ends()

    files.play(act)


@pytest.mark.processes
def test_input_waits_for_an_attempt_that_is_queued(files: Files) -> None:
    async def act(rig: Rig) -> None:
        start(rig, 1, "sleep", "60", places=1)
        await rig.start_of(1)
        start(rig, 2, "cat", places=1)
        call = asyncio.ensure_future(fed(rig, b"early", number=2, is_end=True))
        await rig.executor.running()
        assert not call.done()
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        assert await call == (5, True)
        await rig.end_of(2)
        assert rig.output(2) == "early"

    files.play(act)


@pytest.mark.processes
def test_a_task_that_copies_its_inputs_itself_reads_its_standard_input(
    files: Files,
) -> None:
    async def act(rig: Rig) -> None:
        large = files.add("large", bytes(1 << 20))
        start(rig, 1, "sh", "-c", "wc -c < large; cat", inputs=(large,))
        assert await fed(rig, b"fed\n", is_end=True) == (4, True)
        assert (await rig.end_of(1)).exit_code == 0
        assert rig.output(1) == "1048576\nfed\n"

    files.play(act)


@pytest.mark.processes
def test_a_later_call_replaces_the_piece_that_waits(files: Files) -> None:
    async def act(rig: Rig) -> None:
        call = await waiting(rig)
        assert await fed(rig) == (PIPE_BYTES, False)
        with pytest.raises(ExecutorError, match="later stream"):
            await call

    files.play(act)


def folders_like(files: Files, pattern: str) -> tuple[Path, ...]:
    return (*files.settings.directory.glob(pattern), *files.settings.fallback.glob(f"*/{pattern}"))


@pytest.mark.processes
def test_the_next_daemon_continues_at_the_byte_where_the_last_one_stopped(files: Files) -> None:
    content = random.Random(2).randbytes(300_000)

    async def scene() -> None:
        first = await Rig(files.executor, image=files.image).started()
        start(first, 1, "sh", "-c", "echo here >&2; while [ ! -e go ]; do sleep 0.01; done; exec sha256sum")
        assert await fed(first, content[:PIPE_BYTES]) == (PIPE_BYTES, False)
        # Its pipe is filled before a new sandbox has the folder in which it works.
        await first.until(lambda: first.output(1, "stderr") == "here\n")
        call = asyncio.ensure_future(fed(first, content[PIPE_BYTES : PIPE_BYTES + 10], at=PIPE_BYTES))
        await first.executor.running()
        await first.executor.stop(end_tasks=False)
        with pytest.raises(ExecutorError):
            await call
        second = await Rig(OsProcessExecutor(files.settings, boottime_offset_ns=OFFSET_NS)).started()
        try:
            at, _ = await fed(second)
            assert at == PIPE_BYTES
            # While a task in a sandbox works in its slot, its folder has an empty one.
            for work in folders_like(files, "**/slots/*/work") or folders_like(files, "**/attempts/*/work"):
                (work / "go").touch()
            while at < len(content):
                at, _ = await fed(second, content[at : at + PIPE_BYTES], at=at)
            assert await fed(second, at=at, is_end=True) == (len(content), True)
            assert (await second.end_of(1)).exit_code == 0
            assert second.output(1).split()[0] == hashlib.sha256(content).hexdigest()
        finally:
            await second.executor.stop(end_tasks=True)

    asyncio.run(scene())


@pytest.mark.processes
def test_a_lost_starter_fails_the_call(files: Files) -> None:
    async def act(rig: Rig) -> None:
        call = await waiting(rig)
        await end_starter(files.settings.directory)
        with pytest.raises(ExecutorError, match="starter was lost"):
            await call
        await rig.end_of(1)

    files.play(act)
