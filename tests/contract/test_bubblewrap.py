"""What is special about boxes of bubblewrap: they need no root, and their tasks have the account of the starter."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.errors import ExecutorError
from messiahs.executor.attempt_values import TASK_PATH
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings, launch
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, starter_settings
from tests.contract.test_choice_of_isolation import FIND, SAY

pytestmark = pytest.mark.processes

_ORDINARY = ("unshare", "--user", "--map-user=1234", "--map-group=1234")
"""Who has no privilege, also where the tests run as root."""
_WITHOUT_NAMESPACES = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 1 >/proc/sys/user/max_user_namespaces; exec "$@"',
    "sh",
    *_ORDINARY,
)
_PATH_OF_TASK = FIND.replace("read -r n rest </proc/self/stat; echo $n $$; cat /proc/$$/comm", "echo $PATH")
_NOT_INSTALLED = "bwrap (the package bubblewrap) is not installed"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path, kind="bubblewrap") as settings:
        yield settings


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


def test_variables_of_a_task_do_not_reach_bubblewrap_outside_of_the_box(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        # With this one, the loader of every program shows its name; others make it load libraries of the task.
        rig.run(1, "/usr/bin/env", "true", env=(("LD_SHOW_AUXV", "1"),))
        assert (await rig.end_of(1)).exit_code == 0
        executed = [line.split()[1] for line in rig.output(1).splitlines() if line.startswith("AT_EXECFN")]
        assert executed == ["/usr/bin/env", "/usr/bin/true"]

    play_scene(act, lambda: executor_of(settings))


@pytest.fixture
def shown() -> Iterator[Path]:
    """Return a folder that a task sees if that is wanted: what is below /tmp is covered by the task's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to create a folder elsewhere than in /tmp")
    folder = Path(tempfile.mkdtemp(prefix="messiahs-test-", dir="/run"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_task_does_not_see_the_modules_below_a_folder_that_it_sees(settings: StarterSettings, shown: Path) -> None:
    module = shown / "modules" / "one"
    for folder in (shown / "data", module, module.parent / "other"):
        folder.mkdir(parents=True)
        folder.joinpath("file").write_text("text")

    async def act(rig: Rig) -> None:
        assert (module / "tasks").exists()
        rig.run(1, "find", str(shown), "-type", "f")
        await rig.end_of(1)
        assert rig.output(1).splitlines() == [f"{shown}/data/file"]

    seen = ("/usr", "/etc", str(shown))
    play_scene(act, lambda: executor_of(replace(settings, directory=module, shown=seen)))


def test_a_task_that_ends_by_itself_when_asked_has_its_time_for_that(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "trap 'sleep 0.2; echo saved; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
        await rig.until(lambda: rig.output(1) == "ready\n")
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=60 * SECOND, cause=Cause.KILLED))
        end = await rig.end_of(1)
        assert (end.exit_code, end.cause, rig.output(1)) == (3, "killed", "ready\nsaved\n")

    play_scene(act, lambda: executor_of(settings))


def test_what_a_task_used_is_counted_with_everything_in_its_box(settings: StarterSettings) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"

    async def act(rig: Rig) -> None:
        rig.run(1, "sh", "-c", f"python3 -c '{burn}'")
        usage = (await rig.end_of(1)).usage
        assert usage is not None
        assert (usage.cpu_ns or 0) >= 400_000_000

    play_scene(act, lambda: executor_of(settings))


def test_a_task_that_words_its_errors_as_bubblewrap_does_has_run(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        for number, text in enumerate(("bwrap: x", "bwrap: execvp x: No such file or directory"), 1):
            rig.run(number, "sh", "-c", f"echo {text} >&2; exit 1")
            end = await rig.end_of(number)
            assert (end.cause, end.exit_code, end.text) == ("", 1, "")
            assert rig.output(number, "stderr") == f"{text}\n"

    play_scene(act, lambda: executor_of(settings))


def test_a_box_that_fails_after_it_was_tried_is_reported_with_what_bubblewrap_says(
    settings: StarterSettings, shown: Path
) -> None:
    hidden = shown / "hidden"
    hidden.mkdir()

    async def act(rig: Rig) -> None:
        # Nothing can be mounted there any more.
        hidden.rmdir()
        rig.run(1, "true")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == (Cause.SPAWN_FAILED, None)
        assert end.text.startswith("its box cannot be set up: bwrap: ")

    play_scene(act, lambda: executor_of(replace(settings, shown=("/usr", "/etc", str(shown)), hidden=(str(hidden),))))


def test_no_box_is_made_as_long_as_a_folder_that_tasks_must_not_see_is_not_there(
    settings: StarterSettings, shown: Path
) -> None:
    async def act() -> None:
        with pytest.raises(ExecutorError, match=f"{shown}/sockets is not there, which tasks must not see"):
            await launch(replace(settings, shown=("/usr", "/etc", str(shown)), hidden=(f"{shown}/sockets",)))

    asyncio.run(act())


def test_a_folder_of_sockets_that_is_removed_and_made_again_is_hidden_from_later_tasks(
    settings: StarterSettings, shown: Path
) -> None:
    hidden = shown / "sockets"
    hidden.mkdir()

    async def act(rig: Rig) -> None:
        hidden.rmdir()
        hidden.mkdir()
        (hidden / "own.sock").touch()
        rig.run(1, "sh", "-c", f"ls -A {shown}; ls -A {hidden}")
        assert (await rig.end_of(1)).exit_code == 0
        assert rig.output(1) == "sockets\n"

    play_scene(act, lambda: executor_of(replace(settings, shown=("/usr", "/etc", str(shown)), hidden=(str(hidden),))))


@pytest.mark.parametrize(
    ("wrapper", "path", "isolation", "said"),
    [
        (_ORDINARY, None, "bubblewrap", "bubblewrap:"),
        (_ORDINARY, None, "", "process: no sandboxes: only root can set them up"),
        (_ORDINARY, None, "sandbox", "refused: tasks cannot be run in sandboxes here: only root can set them up"),
        (_ORDINARY, "/nowhere", "bubblewrap", f"refused: tasks cannot be run in sandboxes here: {_NOT_INSTALLED}"),
        (_WITHOUT_NAMESPACES, None, "bubblewrap", "refused: tasks cannot be run in sandboxes here: bwrap: "),
    ],
)
def test_an_ordinary_account_gets_boxes_or_is_told_why_not(
    tmp_path: Path, wrapper: tuple[str, ...], path: str | None, isolation: str, said: str
) -> None:
    if shutil.which("bwrap") is None or subprocess.run([*_ORDINARY, "true"], check=False).returncode:
        pytest.skip("needs the package bubblewrap, and user namespaces")
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    command = [shutil.which(wrapper[0]) or "", *wrapper[1:], sys.executable, "-c", SAY, str(tmp_path), isolation]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert told.startswith(said)


@pytest.mark.parametrize("isolation", ["process", "bubblewrap"])
def test_tasks_have_the_path_of_the_page_although_programs_of_boxes_are_found_on_that_of_the_daemon(
    tmp_path: Path, isolation: str
) -> None:
    if shutil.which("bwrap") is None or subprocess.run([*_ORDINARY, "true"], check=False).returncode:
        pytest.skip("needs the package bubblewrap, and user namespaces")
    programs = tmp_path / "login/bin"
    programs.mkdir(parents=True)
    for name in ("bwrap", "prlimit", "choom"):
        (programs / name).symlink_to(shutil.which(name) or "")
    command = [shutil.which(_ORDINARY[0]) or "", *_ORDINARY[1:], sys.executable, "-c", _PATH_OF_TASK]
    environment = {**os.environ, "PATH": str(programs)}
    told = subprocess.run(
        [*command, str(tmp_path), isolation], check=True, capture_output=True, text=True, env=environment
    )
    assert told.stdout.split() == [isolation, TASK_PATH]
