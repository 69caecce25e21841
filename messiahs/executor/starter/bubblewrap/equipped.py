"""Tasks in boxes that wait for their environments, before the others begin them."""

import signal
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import NEVER, Held, NotSpawned
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.starter.bubblewrap.view import WHOLE, BoxView, environment_arguments, shown_in_boxes
from messiahs.executor.starter.grouped_processes import GroupedProcesses
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.sandbox.environments import bound, not_shown, variables_of, why_not_usable
from messiahs.executor.starter.sandbox.images import Images, Unpacked, Waiting
from messiahs.executor.starter.task_processes import Exited, Staged

_TEXT_LETTERS: Final = 300


class EquippedProcesses:
    """The attempts in boxes, of which some wait for an environment (mutable).

    `_used` has the environments of those that run, by the folders of the attempts.
    """

    def __init__(self, boxed: GroupedProcesses, *, images: Images, view: BoxView, path: str) -> None:
        self._boxed, self._images, self._view, self._path = boxed, images, view, path
        self._used: dict[str, str] = {}
        self._ended: list[Exited] = []
        self._cleared: list[tuple[Held, str]] = []

    @property
    def degraded(self) -> str:
        """What is said of the boxes."""
        return self._boxed.degraded

    @property
    def room(self) -> int:
        """That of the boxes."""
        return self._boxed.room

    @property
    def must_show_files(self) -> bool:
        """As in boxes."""
        return self._boxed.must_show_files

    def fileno(self) -> int:
        """Return that of the boxes; when an environment is there, a process has ended."""
        return self._boxed.fileno()

    def account(self, start: Start) -> None:
        """Return None: all attempts have the starter's account."""

    def start(self, held: Held, taken: Taken) -> NotSpawned | None:
        """Start the task, when its environment is there if it has one."""
        assert held.start is not None
        if not Images.is_of_environment(held.start):
            return self._boxed.start(held, taken)
        self._images.ask(held, taken)
        held.is_staging = True
        return None

    def events(self) -> Iterator[Staged | Exited]:
        """Yield those of the boxes, after beginning the attempts that wait no longer."""
        yield from self._boxed.events()
        if self._boxed.has_unpacked:
            self._boxed.has_unpacked = False
            self._images.unpacked()
        for waiting, archive in self._images.ready():
            yield from self._entered(waiting, archive)
        ended, self._ended = self._ended, []
        yield from ended

    def cleared(self) -> Iterator[tuple[Held, str]]:
        """Yield attempts without remaining processes; nobody uses their environments for them any more."""
        cleared, self._cleared = self._cleared, []
        yield from cleared
        for held, text in self._boxed.cleared():
            self._release(held)
            yield held, text

    @property
    def is_clearing(self) -> bool:
        """Whether killed processes are about to disappear."""
        return bool(self._cleared) or self._boxed.is_clearing

    def terminate(self, held: Held) -> None:
        """Signal the group, or let an attempt wait no longer."""
        if not self._give_up(held, signal.SIGTERM):
            self._boxed.terminate(held)

    def kill(self, held: Held) -> None:
        """Signal the group, or let an attempt wait no longer."""
        if not self._give_up(held, signal.SIGKILL):
            self._boxed.kill(held)

    def suspend(self, held: Held) -> None:
        """Stop the attempt; one that waits has no process yet."""
        if held.process:
            self._boxed.suspend(held)

    def resume(self, held: Held) -> None:
        """Resume the attempt, as above."""
        if held.process:
            self._boxed.resume(held)

    @property
    def due_at(self) -> int:
        """When the boxes must be looked at, or an environment is there or may have become old."""
        if self._ended or self._images.has_ready:
            return 0
        return min(self._boxed.due_at, self._images.due_at, NEVER)

    def step(self, now: int) -> None:
        """Do what is due."""
        self._boxed.step(now)
        self._images.step(now)

    def memory_bytes(self, running: Sequence[Held]) -> list[int]:
        """Return what the attempts use."""
        return self._boxed.memory_bytes(running)

    def processes(self, held: Held) -> Iterator[bytes]:
        """Yield the processes of an attempt."""
        return self._boxed.processes(held) if held.process else iter(())

    def forget(self, held: Held) -> None:
        """Release the mark of the attempt."""
        self._boxed.forget(held)

    def _entered(self, waiting: Waiting, archive: Unpacked | NotSpawned) -> Iterator[Staged | Exited]:
        """Start an attempt with its environment, or end it because there is none."""
        held = waiting.held
        held.is_staging = False
        try:
            problem = archive if isinstance(archive, NotSpawned) else self._begun(held, waiting.taken, archive)
        except Exception as error:  # noqa: BLE001 - one attempt that cannot start must not end all others
            text = f"the task cannot be set up: {error}"[:_TEXT_LETTERS]
            problem = NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=text)
        finally:
            waiting.taken.close()
        if problem is not None:
            self._release(held)
            held.problem = problem
            self._cleared.append((held, problem.text))
            yield Exited(held)
            return
        if not held.is_staging:
            yield Staged(held, boottime_ns())
        if held.suspended_at:
            self._boxed.suspend(held)

    def _begun(self, held: Held, taken: Taken, archive: Unpacked) -> NotSpawned | None:
        """Start an attempt in its environment; return why it cannot be started."""
        start, environment = held.start, archive.environment
        assert start is not None
        assert environment is not None
        self._used[held.folder] = archive.digest
        problem = why_not_usable(environment, seen=shown_in_boxes(self._view), whole=WHOLE)
        if problem is not None:
            return problem
        env = (*start.env, *variables_of(environment, dict(start.env).get("PATH", self._path)))
        try:
            shown = environment_arguments(self._view, *bound(archive.root, environment))
        except OSError as error:
            return not_shown(error, environment.path)
        held.start = replace(start, env=env, archive=None, shown=shown)
        return self._boxed.start(held, taken)

    def _release(self, held: Held) -> None:
        digest = self._used.pop(held.folder, None)
        if digest is not None:
            self._images.release(digest)

    def _give_up(self, held: Held, number: int) -> bool:
        if not self._images.give_up(held):
            return False
        self._ended.append(Exited(held, None, number))
        self._cleared.append((held, ""))
        return True
