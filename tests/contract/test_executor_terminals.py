"""Guarantees of every executor about the terminals of tasks."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.terminals import TerminalSize, frame_of_keys, frame_of_size
from messiahs.executor.contract import TakenInput
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.starter.terminals import UNREAD_BYTES
from messiahs.executor.stub import StubExecutor
from tests import waiting
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, start_of
from tests.contract.task_files import ROOTS, Files, starter_files

pytestmark = pytest.mark.processes
SIZE = TerminalSize(rows=33, columns=101)
CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"
ALL_BYTES = bytes(range(256))


@pytest.fixture(params=ROOTS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as made:
        yield made


class Session:
    """A task with a terminal: what is typed, and what it shows (mutable)."""

    def __init__(self, rig: Rig, *argv: str, number: int = 1, inputs: tuple[InputFile, ...] = ()) -> None:
        self.rig, self.number, self._sent_bytes = rig, number, 0
        command = Command(argv=argv, takes_stdin=True, terminal=SIZE, inputs=inputs)
        rig.begin(replace(start_of(number), command=command))

    async def send(self, frames: bytes, *, is_end: bool = False) -> TakenInput:
        """Send frames, and return when they were taken."""
        begin = self._sent_bytes
        self._sent_bytes += len(frames)
        return await self.rig.executor.feed(attempt_id(self.number), frames, offset_bytes=begin, is_end=is_end)

    async def type(self, keys: bytes) -> None:
        """Type keys."""
        await self.send(frame_of_keys(keys))

    async def press(self, key: bytes, *, until: Callable[[], bool]) -> None:
        """Press a key until it has had its effect: what runs may not have been there at first."""
        for _ in range(100):
            await self.type(key)
            with suppress(AssertionError):
                await waiting.until(until, seconds=0.2)
                return
        pytest.fail(repr(self.shown[-500:]))

    @property
    def shown(self) -> bytes:
        """Everything that was shown."""
        return self.rig.executor.read_output(attempt_id(self.number), "stdout", offset=0, limit=1 << 23)

    async def shows(self, text: bytes) -> None:
        """Wait until a text was shown."""
        await self.rig.until(lambda: text in self.shown)


def test_a_task_has_a_terminal_of_its_size_that_controls_it(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = "stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo controlled > /dev/tty; exit 7"
        session = Session(rig, "sh", "-c", script)
        assert (await rig.end_of(1)).exit_code == 7
        assert session.shown == b"33 101\r\nall\r\ncontrolled\r\n"
        assert rig.output(1, "stderr") == ""

    files.play(act)


def test_the_size_changes_in_its_place_among_the_keys(files: Files) -> None:
    async def act(rig: Rig) -> None:
        # The trap interrupts `read`.
        loop = 'while [ "$line" != end ]; do read line && echo [$line]; done'
        session = Session(rig, "sh", "-c", f"trap 'stty size' WINCH; echo go; {loop}")
        await session.shows(b"go")
        first = await session.send(frame_of_size(TerminalSize(rows=50, columns=60)))
        assert first.has_terminal
        await session.shows(b"50 60")
        frames = frame_of_keys(b"one\n") + frame_of_size(TerminalSize(rows=3, columns=4)) + frame_of_keys(b"two\n")
        for at in range(len(frames)):
            await session.send(frames[at : at + 1])
        await session.shows(b"3 4")
        await session.shows(b"[two]")
        # Frames of later releases are ignored.
        await session.send(b"\x09\x00\x03abc\x01\x00\x01x\x00\x00\x00")
        await session.type(b"end\n")
        assert (await rig.end_of(1)).exit_code == 0
        assert b"abc" not in session.shown

    files.play(act)


def test_every_byte_passes_in_both_directions(files: Files) -> None:
    async def act(rig: Rig) -> None:
        session = Session(rig, "sh", "-c", "stty raw -echo; echo ready; head -c 25600")
        await session.shows(b"ready\n")
        for _ in range(100):
            await session.type(ALL_BYTES)
        assert (await rig.end_of(1)).exit_code == 0
        assert session.shown.endswith(ALL_BYTES * 100)
        assert len(session.shown) == len(b"ready\n") + 25_600

    files.play(act)


def test_ctrl_c_interrupts_what_is_in_the_foreground_alone(files: Files) -> None:
    async def act(rig: Rig) -> None:
        session = Session(rig, "sh", "-c", "trap 'echo caught' INT; echo go; sleep 60; echo after; exit 3")
        await session.shows(b"go")
        await session.press(CTRL_C, until=lambda: b"after" in session.shown)
        assert (await rig.end_of(1)).exit_code == 3
        assert b"^Ccaught\r\n" in session.shown
        other = Session(rig, "sleep", "60", number=2)
        await rig.start_of(2)
        await other.press(CTRL_C, until=lambda: attempt_id(2) in rig.ends())
        assert (await rig.end_of(2)).signal == 2

    files.play(act)


def test_ctrl_z_stops_a_job_of_a_shell_which_goes_on_with_it(files: Files) -> None:
    async def act(rig: Rig) -> None:
        session = Session(rig, "sh", "-c", "set -m; trap : INT; sleep 61; echo stopped; fg; echo over; exit 4")
        await session.press(CTRL_Z, until=lambda: b"stopped" in session.shown)
        await session.press(CTRL_C, until=lambda: b"over" in session.shown)
        assert (await rig.end_of(1)).exit_code == 4

    files.play(act)


def test_a_task_whose_user_is_gone_is_hung_up(files: Files) -> None:
    async def act(rig: Rig) -> None:
        first = Session(rig, "sh", "-c", "echo go; sleep 60")
        await first.shows(b"go")
        await first.send(b"", is_end=True)
        assert (await rig.end_of(1)).signal == 1
        second = Session(rig, "sh", "-c", "trap '' TERM; echo go; sleep 60", number=2)
        await second.shows(b"go")
        rig.executor.perform(EndAttempt(attempt=attempt_id(2), grace_ns=60 * SECOND, cause=Cause.KILLED))
        assert (await rig.end_of(2)).signal == 1

    files.play(act)


def test_the_last_thing_shown_is_in_the_log_before_the_end(files: Files) -> None:
    async def act(rig: Rig) -> None:
        for number in range(1, 6):
            session = Session(rig, "sh", "-c", f"seq 2000; echo last{number}", number=number)
            end = await rig.end_of(number)
            shown = session.shown
            assert shown.endswith(b"last%d\r\n" % number)
            assert end.outputs[0].size_bytes == len(shown)

    files.play(act)


def test_a_task_waits_until_what_it_has_shown_is_read(files: Files) -> None:
    async def act(rig: Rig) -> None:
        session = Session(rig, "sh", "-c", "head -c 4000000 /dev/zero")
        await rig.until(lambda: len(session.shown) >= UNREAD_BYTES)
        await rig.executor.running()
        assert len(session.shown) < UNREAD_BYTES + (1 << 18)
        assert not rig.ends()

        def has_ended() -> bool:
            rig.executor.note_read(attempt_id(1), len(session.shown))
            return bool(rig.ends())

        await rig.until(has_ended)
        assert len(session.shown) == 4_000_000

    files.play(act)


def test_a_task_that_copies_its_inputs_itself_has_a_terminal(files: Files) -> None:
    async def act(rig: Rig) -> None:
        large = files.add("large", bytes(1 << 20))
        session = Session(rig, "sh", "-c", "wc -c < large; stty size < /dev/tty", inputs=(large,))
        assert (await rig.end_of(1)).exit_code == 0
        assert session.shown == b"1048576\r\n33 101\r\n"

    files.play(act)


def test_a_terminal_outlives_the_daemon(files: Files) -> None:
    async def scene() -> None:
        first = await Rig(files.executor, image=files.image).started()
        session = Session(first, "sh", "-c", "while read line; do echo [$line]; done; exit 5")
        await session.type(b"one\n")
        await session.shows(b"[one]")
        await first.executor.stop(end_tasks=False)
        second = await Rig(OsProcessExecutor(files.settings, boottime_offset_ns=OFFSET_NS)).started()
        try:
            session.rig = second
            await session.type(b"two\n")
            await session.shows(b"[two]")
            await session.type(CTRL_D)
            assert (await second.end_of(1)).exit_code == 5
        finally:
            await second.executor.stop(end_tasks=True)

    asyncio.run(scene())


def test_a_program_that_is_not_there_is_said_with_its_exit_code(files: Files) -> None:
    async def act(rig: Rig) -> None:
        session = Session(rig, "no-such-program")
        end = await rig.end_of(1)
        assert end.exit_code == 127
        assert "no-such-program" in end.text + session.shown.decode()

    files.play(act)


def test_a_back_end_without_processes_refuses_a_terminal() -> None:
    async def act(rig: Rig) -> None:
        Session(rig, "true")
        end = await rig.end_of(1)
        assert (end.cause, end.text) == (Cause.SPAWN_FAILED, "nothing runs here that could have a terminal")

    play_scene(act, lambda: StubExecutor(boottime_offset_ns=OFFSET_NS))
