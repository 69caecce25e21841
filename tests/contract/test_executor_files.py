"""Inputs and declared outputs of tasks that are real processes."""

import asyncio
import hashlib
import os
import signal
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt, ResumeAttempt, SuspendAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_files import Output
from messiahs.daemon.transfer.output_sources import AttemptOutput
from messiahs.errors import ExecutorError
from messiahs.executor.contract import AttemptState, KnownAttempt
from tests.contract.executor_rig import BACK_ENDS, Rig, attempt_folder, attempt_id, start_of
from tests.contract.task_files import LARGE, Files, run, starter_files

pytestmark = pytest.mark.processes

C_LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33, of threads, have no names: the `posix_spawn` of glibc lets every program ignore them."""

_INTERPRETER = 3
"""PT_INTERP of the headers of a program in the ELF format."""


@pytest.fixture(params=BACK_ENDS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


def declared(end: AttemptEnded) -> list[Output]:
    return [output for output in end.outputs if output.name.startswith("work/")]


def read(rig: Rig, name: str) -> bytes:
    return rig.executor.read_output(attempt_id(1), name, offset=0, limit=1 << 20)


@pytest.mark.parametrize("content", [b"small", LARGE])
def test_a_task_ignores_and_blocks_no_signal_whatever_its_inputs(files: Files, content: bytes) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="exec grep -E '^Sig(Blk|Ign)' /proc/self/status", inputs=(files.add("in", content),))
        await rig.end_of(1)
        _, blocked, _, ignored = read(rig, "stdout").split()
        assert (int(blocked, 16), int(ignored, 16) & ~C_LIBRARY_SIGNALS) == (0, 0)

    files.play(act)


@pytest.mark.parametrize("content", [b"small", LARGE])
def test_inputs_keep_their_modes_and_belong_to_the_task(files: Files, content: bytes) -> None:
    async def act(rig: Rig) -> None:
        inputs = (
            files.add("data/deep/in", content),
            files.add("tool", b"#!/bin/sh\necho run\n", is_executable=True),
            files.add("empty", b""),
        )
        script = "./tool; stat -c '%a %s %h %u' data/deep/in tool empty; echo more >> data/deep/in; id -u"
        run(rig, 1, script=script, inputs=inputs)
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause, end.text) == (0, "", "")
        *seen, user = rig.output(1).splitlines()
        assert seen == [
            "run",
            f"644 {len(content)} 1 {user}",
            f"755 {inputs[1].size_bytes} 1 {user}",
            f"644 0 1 {user}",
        ]
        assert (files.root / inputs[0].sha256.hex()).read_bytes() == content

    files.play(act)


@pytest.mark.parametrize("content", [b"small", LARGE])
def test_a_missing_input_fails_the_staging(files: Files, content: bytes) -> None:
    async def act(rig: Rig) -> None:
        gone, short, other = files.add("gone", content), files.add("short", content + b"!"), files.add("x", b"1")
        (files.root / gone.sha256.hex()).unlink()
        run(rig, 1, script="echo ran", inputs=(other, gone), outputs=("out",))
        run(rig, 2, script="echo ran", inputs=(replace(short, size_bytes=short.size_bytes - 1),))
        run(rig, 3, script="echo ran", inputs=(other, files.add("x/below", content + b"?")))
        ends = [await rig.end_of(number) for number in (1, 2, 3)]
        assert [(end.cause, end.exit_code, end.signal) for end in ends] == [(Cause.STAGING_FAILED, None, None)] * 3
        assert "gone" in ends[0].text
        assert rig.output(1) == ""

    files.play(act)


def test_a_program_that_no_machine_can_run_ends_its_task(files: Files) -> None:
    async def act(rig: Rig) -> None:
        beyond = struct.pack("<IIQQQQQQ", _INTERPRETER, 4, 1 << 20, 0, 0, 20, 20, 1)
        header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
        contents = {"itself": b"#!./itself\n", "cut": header + beyond}
        inputs = tuple(files.add(name, content, is_executable=True) for name, content in contents.items())
        calls = (("./itself",), ("./cut",), ("./" + "x" * 300,), ("true", "x" * (1 << 17)))
        for number, argv in enumerate(calls, start=1):
            rig.executor.perform(replace(start_of(number), command=Command(argv=argv, inputs=inputs)))
        ends = [await rig.end_of(number) for number in range(1, len(calls) + 1)]
        assert [(end.cause, end.exit_code) for end in ends] == [("not_found", 126)] * len(calls), ends

    files.play(act)


def test_a_missing_program_is_reported_after_large_inputs_too(files: Files) -> None:
    async def act(rig: Rig) -> None:
        inputs = (files.add("data", LARGE), files.add("tool", b"no program", is_executable=True))
        for number, program in enumerate(("no-such-program", "./data", "./tool"), start=1):
            command = Command(argv=(program,), inputs=inputs)
            rig.executor.perform(replace(start_of(number), command=command))
        ends = [await rig.end_of(number) for number in (1, 2, 3)]
        # Bubblewrap lets a shell try a file of no known format, like every shell.
        tried = ("", 127) if files.settings.isolation == "bubblewrap" else ("not_found", 126)
        assert [(end.cause, end.exit_code) for end in ends] == [("not_found", 127), ("not_found", 126), tried]

    files.play(act)


def test_a_task_that_waits_for_a_large_input_can_be_killed_and_its_limit_has_not_begun(files: Files) -> None:
    async def act(rig: Rig) -> None:
        waits = files.add_absent("waits", LARGE)
        start = replace(start_of(1, limit_ns=SECOND // 10), command=Command(argv=("true",), inputs=(waits,)))
        rig.executor.perform(start)
        await rig.start_of(1)
        run(rig, 2, script="sleep 1")
        assert (await rig.end_of(2)).exit_code == 0
        assert attempt_id(1) not in rig.ends()
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=20 * SECOND, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.signal, end.cause) == (signal.SIGTERM, "killed")

    files.play(act)


def start_of_a_task_that_lacks_an_input(files: Files, rig: Rig) -> Path:
    """Start a task that waits for its inputs until the returned path is opened for writing."""
    waits = files.add_absent("waits", b"")
    command = Command(argv=("sh", "-c", "ls; wc -c < data; sleep 60"), inputs=(files.add("data", LARGE), waits))
    rig.executor.perform(replace(start_of(1, limit_ns=SECOND), command=command))
    return files.path_of(waits)


async def known(rig: Rig) -> KnownAttempt:
    (known,) = await rig.executor.running()
    return known


def test_a_task_suspended_during_its_inputs_resumes_them_and_its_limit_begins_afterwards(files: Files) -> None:
    async def act(rig: Rig) -> None:
        path = start_of_a_task_that_lacks_an_input(files, rig)
        await rig.start_of(1)
        rig.executor.perform(SuspendAttempt(attempt=attempt_id(1)))
        assert (await known(rig)).state is AttemptState.SUSPENDED
        # Blocks until somebody reads, which a suspended process does not.
        coming = asyncio.create_task(asyncio.to_thread(path.write_bytes, b""))
        while (suspended := await known(rig)).suspended_ns < 2 * SECOND:
            assert suspended.state is AttemptState.SUSPENDED
        assert (rig.output(1), rig.ends()) == ("", {})
        rig.executor.perform(ResumeAttempt(attempt=attempt_id(1)))
        await coming
        end = await rig.end_of(1)
        assert (rig.output(1).split(), end.cause) == (["data", "waits", str(len(LARGE))], "time_limit")
        assert end.ran_ns >= SECOND

    files.play(act)


def test_a_task_suspended_during_its_inputs_can_be_ended(files: Files) -> None:
    async def act(rig: Rig) -> None:
        start_of_a_task_that_lacks_an_input(files, rig)
        await rig.start_of(1)
        rig.executor.perform(SuspendAttempt(attempt=attempt_id(1)))
        assert (await known(rig)).state is AttemptState.SUSPENDED
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=20 * SECOND, cause=Cause.VACATED))
        end = await rig.end_of(1)
        assert (end.signal, end.cause, rig.output(1)) == (signal.SIGTERM, "vacated", "")

    files.play(act)


def test_the_limit_of_a_task_begins_after_its_large_inputs(files: Files) -> None:
    async def act(rig: Rig) -> None:
        large = files.add("data", LARGE)
        command = Command(argv=("sleep", "60"), inputs=(large,))
        rig.executor.perform(replace(start_of(1, limit_ns=SECOND // 2), command=command))
        end = await rig.end_of(1)
        assert end.cause == "time_limit"
        assert end.ran_ns >= SECOND // 2

    files.play(act)


def test_declared_files_and_folders_are_reported_and_read(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = """
            mkdir -p out/deep; printf abc > one; echo x > out/deep/two
            echo '#!' > out/run; chmod 700 out/run; : > out/0
        """
        run(rig, 1, script=script, outputs=("one", "out", "out/deep/two"))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause, end.text) == (0, "", "")
        assert declared(end) == [
            Output(name="work/one", size_bytes=3),
            Output(name="work/out/0", size_bytes=0),
            Output(name="work/out/deep/two", size_bytes=2),
            Output(name="work/out/run", size_bytes=3, is_executable=True),
        ]
        assert read(rig, "work/one") == b"abc"
        assert rig.executor.read_output(attempt_id(1), "work/out/deep/two", offset=1, limit=9) == b"\n"

    files.play(act)


@pytest.mark.parametrize("code", [0, 3])
def test_a_missing_output_is_a_cause_and_the_exit_code_is_kept(files: Files, code: int) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script=f": > here; exit {code}", outputs=("here", "gone", "gone/too"))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (code, Cause.OUTPUT_MISSING)
        assert end.text == "missing at the end: gone, gone/too"
        assert declared(end) == [Output(name="work/here", size_bytes=0)]

    files.play(act)


def test_a_killed_task_keeps_its_cause_and_its_output_and_a_signal_hides_nothing_that_is_missing(files: Files) -> None:
    async def act(rig: Rig) -> None:
        outputs = ("here", "gone", "*.none", "pipe")
        run(rig, 1, script="echo x > here; mkfifo pipe; kill -9 $$", outputs=outputs)
        run(rig, 2, script="echo x > here; mkfifo pipe; echo ready; exec sleep 60", outputs=outputs)
        await rig.start_of(2)
        await rig.until(lambda: rig.output(2) == "ready\n")
        rig.executor.perform(EndAttempt(attempt=attempt_id(2), grace_ns=20 * SECOND, cause=Cause.KILLED))
        ends = [await rig.end_of(number) for number in (1, 2)]
        assert [(end.cause, end.signal) for end in ends] == [("", 9), ("killed", 15)]
        assert [end.text for end in ends] == ["missing at the end: gone, *.none, pipe; omitted: pipe (a pipe)", ""]
        assert [declared(end) for end in ends] == [[Output(name="work/here", size_bytes=2)]] * 2

    files.play(act)


def test_a_task_at_its_time_limit_names_what_it_did_not_leave(files: Files) -> None:
    async def act(rig: Rig) -> None:
        command = Command(argv=("sh", "-c", "mkfifo pipe; exec sleep 60"), outputs=("gone", "pipe"))
        rig.executor.perform(replace(start_of(1, limit_ns=SECOND), command=command))
        end = await rig.end_of(1)
        assert (end.cause, end.text) == ("time_limit", "missing at the end: gone, pipe; omitted: pipe (a pipe)")

    files.play(act)


def test_an_output_that_is_changed_in_place_while_it_is_read_arrives_as_it_was_read(files: Files) -> None:
    half = 1 << 20

    async def act(rig: Rig) -> None:
        run(rig, 1, script=f"head -c {2 * half} /dev/zero > out", outputs=("out",))
        await rig.end_of(1)
        source = AttemptOutput(rig.executor, attempt_id(1), name="work/out", is_hashed=True)
        buffer = memoryview(bytearray(half))
        assert source.read_into(buffer) == half
        with (attempt_folder(files.settings, 1) / "work" / "out").open("r+b") as file:
            file.write(b"x" * 2 * half)
        begin = bytes(buffer)
        assert source.read_into(buffer) == half
        assert (begin + buffer) == bytes(half) + b"x" * half
        assert source.read_into(memoryview(bytearray(1))) == 0
        assert source.sha256 == hashlib.sha256(begin + buffer).digest()
        source.close()

    files.play(act)


def test_links_are_never_followed(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = """
            mkdir out real; echo x > real/file; echo x > out/plain
            ln -s /etc/passwd out/link; ln -s ../real out/folder; mkfifo out/pipe
            ln -s real way; ln -s real/file file
        """
        run(rig, 1, script=script, outputs=("out", "file", "way/file", "way"))
        end = await rig.end_of(1)
        assert end.cause == Cause.OUTPUT_MISSING
        assert end.text == (
            "missing at the end: way/file; "
            "omitted: out/link (a link to /etc/passwd, out of the working directory), out/pipe (a pipe)"
        )
        assert declared(end) == [
            Output(name="work/out/folder", size_bytes=0, link_target="../real"),
            Output(name="work/out/plain", size_bytes=2),
            Output(name="work/file", size_bytes=0, link_target="real/file"),
            Output(name="work/way", size_bytes=0, link_target="real"),
        ]
        for name in ("work/out/link", "work/file", "work/way/file", "work/out/pipe", "work/out", "work/none"):
            with pytest.raises(ExecutorError) as caught:
                read(rig, name)
            assert not caught.value.transient

    files.play(act)


def test_names_that_cannot_be_sent_and_unreadable_files_are_harmless(files: Files) -> None:
    async def act(rig: Rig) -> None:
        script = r"""
            mkdir out; echo x > out/shut; chmod 0 out/shut
            : > "out/$(printf 'a\377')"; : > "out/$(printf 'a\nb')"
        """
        run(rig, 1, script=script, outputs=("out",))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (0, "")
        assert end.text == (
            r"omitted: out/a\nb (its name is too long, or has control characters), out/a\udcff (its name is not UTF-8)"
        )
        assert declared(end) == [Output(name="work/out/shut", size_bytes=2)]
        assert read(rig, "work/out/shut") == b"x\n"

    files.play(act)


def test_more_files_than_can_be_reported_are_a_cause(files: Files) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="mkdir out; cd out; touch $(seq 1100)", outputs=("out",))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause) == (0, Cause.TOO_MANY_OUTPUTS)
        assert len(declared(end)) == 1_024

    files.play(act)


def test_outputs_are_known_to_a_restarted_host(files: Files) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, script="echo x > one", outputs=("one",))
        end = await rig.end_of(1)
        await rig.executor.stop(end_tasks=True)
        await rig.executor.start(rig.events.append, pytest.fail)
        (known,) = await rig.executor.running()
        assert known.ended == end
        assert read(rig, "work/one") == b"x\n"

    files.play(act)


def test_the_task_account_cannot_list_the_files(files: Files) -> None:
    async def act(rig: Rig) -> None:
        one = files.add("in", b"x")
        run(rig, 1, script=f"cat {files.root}/{one.sha256.hex()}; ls {files.root} 2>/dev/null || echo no")
        await rig.end_of(1)
        # In a sandbox it cannot even open them.
        expected = "xno\n" if files.settings.isolation == "process" else "no\n"
        assert rig.output(1) == expected or os.geteuid() != 0

    files.play(act)


def test_many_tasks_with_large_inputs_run_side_by_side(files: Files) -> None:
    async def act(rig: Rig) -> None:
        large = files.add("data", LARGE)
        for number in range(1, 31):
            run(rig, number, script="wc -c < data", inputs=(large,))
        ends = await asyncio.gather(*(rig.end_of(number) for number in range(1, 31)))
        assert {(end.exit_code, end.cause) for end in ends} == {(0, "")}
        assert {rig.output(number).strip() for number in range(1, 31)} == {str(len(LARGE))}

    files.play(act)
