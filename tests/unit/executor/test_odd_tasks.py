"""A problem with one attempt ends that attempt, and no other."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.executor.attempt_values import folder_name
from messiahs.executor.protocol.frames import MeasureMemory, Suspend
from messiahs.executor.protocol.layout import ATTEMPTS
from messiahs.executor.starter.runner import Runner
from tests.unit.executor.apart import as_ordinary_user, in_own_process
from tests.unit.executor.runner_rig import (
    absent_input,
    attempt_of,
    ends,
    make_runner,
    start_of,
    turn,
    turns_until,
)

pytestmark = pytest.mark.processes

FIRST, SECOND = attempt_of(1), attempt_of(2)
TURNS = 20


def test_an_attempt_whose_folder_cannot_be_set_up_ends_alone(tmp_path: Path) -> None:
    def act() -> None:
        runner = make_runner(tmp_path)
        in_the_way = tmp_path / "tasks" / ATTEMPTS / folder_name(FIRST)
        in_the_way.mkdir()
        (in_the_way / "file").touch()
        for attempt in (FIRST, SECOND):
            runner.apply(start_of(attempt, "true"))
        turns_until(runner, lambda: len(ends(runner)) == 2)
        assert ends(runner)[FIRST].cause == "spawn_failed"
        assert ends(runner)[FIRST].text.startswith("the task cannot be set up: ")
        assert (ends(runner)[SECOND].exit_code, ends(runner)[SECOND].cause) == (0, "")

    in_own_process(act)


def test_an_attempt_for_which_no_process_can_be_made_ends_alone_and_leaves_nothing_open(public: Path) -> None:
    def act() -> None:
        runner = make_runner(public)
        runner.apply(start_of(SECOND, "sleep", "600"))
        turn(runner)
        opened = _descriptors()
        with _no_more_processes():
            runner.apply(start_of(FIRST, "true", inputs=(absent_input(),)))
            turns_until(runner, lambda: FIRST in ends(runner))
        assert ends(runner)[FIRST].cause == "spawn_failed"
        assert "Resource temporarily unavailable" in ends(runner)[FIRST].text
        assert _descriptors() == opened
        assert SECOND not in ends(runner)
        _end(runner)

    as_ordinary_user(act, public)


def test_an_attempt_ends_once_children_can_be_listed_again(tmp_path: Path) -> None:
    def act() -> None:
        runner = make_runner(tmp_path)
        runner.apply(start_of(SECOND, "sleep", "600"))
        restore = _break_list_of_children()
        runner.apply(start_of(FIRST, "true"))
        turns_until(runner, lambda: runner.is_clearing)
        for _ in range(TURNS):
            turn(runner)
        assert ends(runner) == {}
        restore()
        turns_until(runner, lambda: FIRST in ends(runner))
        assert ends(runner)[FIRST].exit_code == 0
        _end(runner)

    in_own_process(act)


@pytest.mark.parametrize("command", [Suspend(attempt=SECOND), MeasureMemory(attempts=(SECOND,))])
def test_attempts_are_suspended_and_weighed_though_children_cannot_be_listed(
    tmp_path: Path, command: Suspend | MeasureMemory
) -> None:
    def act() -> None:
        runner = make_runner(tmp_path)
        runner.apply(start_of(SECOND, "sleep", "600"))
        turn(runner)
        restore = _break_list_of_children()
        runner.apply(command)
        turn(runner)
        restore()
        _end(runner)

    in_own_process(act)


def _break_list_of_children() -> Callable[[], None]:
    """Let the kernel's list of children be unreadable until what is given is called."""
    (descriptor,) = (number for number in _descriptors() if _is_list_of_children(number))
    kept = os.dup(descriptor)
    unreadable = os.open(os.devnull, os.O_WRONLY)
    os.dup2(unreadable, descriptor)
    return lambda: (os.dup2(kept, descriptor), None)[1]


def _is_list_of_children(number: int) -> bool:
    return str(Path(f"/proc/self/fd/{number}").readlink()).endswith("/children")


def _descriptors() -> list[int]:
    """Name what is open in this process."""
    with os.scandir("/proc/self/fd") as entries:
        numbers = sorted(int(entry.name) for entry in entries)
    return [number for number in numbers if Path(f"/proc/self/fd/{number}").is_symlink()]


@contextmanager
def _no_more_processes() -> Iterator[None]:
    """Let this process, which is not root, start no other one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


def _end(runner: Runner) -> None:
    runner.end_all()
    turns_until(runner, lambda: runner.is_idle)
