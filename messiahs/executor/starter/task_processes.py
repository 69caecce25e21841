"""The processes of running attempts, as the runner sees them; each way of containing tasks implements this."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import Held, NotSpawned
from messiahs.executor.starter.pool import Taken


class Staged(NamedTuple):
    """The process of an attempt has copied its inputs and has become the task, not before `at`."""

    held: Held
    at: int


class Exited(NamedTuple):
    """The first process of an attempt has ended, and all others were killed; some may not be gone yet.

    If `held.problem` is set, the process has never become the task.
    """

    held: Held
    exit_code: int | None = None
    signal: int | None = None


class TaskProcesses(Protocol):
    """Starts, signals and reaps the processes of attempts.

    An attempt that was started exits once, and is cleared after that, when none of its processes runs any more.
    """

    @property
    def degraded(self) -> str:
        """Why tasks are less contained than elsewhere; empty if they are not."""

    @property
    def room(self) -> int:
        """How many attempts can be started now."""

    @property
    def must_show_files(self) -> bool:
        """Whether no process may hide what it has open, which would not count as disk of its task."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when there are events; SIGCHLD announces others."""

    def account(self, start: Start) -> int | None:
        """Return the account to which the files of an attempt belong that is next; None: the starter's.

        Raises `OSError`.
        """

    def start(self, held: Held, taken: Taken) -> NotSpawned | None:
        """Start an attempt in its folder; a result other than None is why it cannot be. Raises `OSError`.

        If `held.is_staging` is set afterwards, its process copies inputs before it becomes the task.
        """

    def events(self) -> Iterator[Staged | Exited]:
        """Yield what has happened since the last call."""

    def cleared(self) -> Iterator[tuple[Held, str]]:
        """Yield attempts that exited and of which no process remains, each with a text for its end."""

    @property
    def is_clearing(self) -> bool:
        """Whether processes were killed whose end no event announces."""

    def terminate(self, held: Held) -> None:
        """Ask the first process and its group to end, and let them run if they are suspended."""

    def kill(self, held: Held) -> None:
        """Kill the first process and its group."""

    def suspend(self, held: Held) -> None:
        """Stop all processes of a running attempt, and keep them stopped."""

    def resume(self, held: Held) -> None:
        """Let all processes of a suspended attempt run."""

    @property
    def due_at(self) -> int:
        """When `step` is due; 0 for at once."""

    def step(self, now: int) -> None:
        """Continue what suspending and resuming have begun."""

    def memory_bytes(self, running: Sequence[Held]) -> list[int]:
        """Return the resident memory of each of these running attempts."""

    def processes(self, held: Held) -> Iterator[bytes]:
        """Yield the numbers in /proc of the processes of a running attempt; without a sandbox, from its first down."""

    def forget(self, held: Held) -> None:
        """Note that an attempt has ended."""
