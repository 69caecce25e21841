"""An executor under test with its recorded events, for all suites of executors."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.messages import Command
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.task_files import InputFile
from messiahs.core.model.task_limits import TaskLimits
from messiahs.executor.attempt_values import folder_name
from messiahs.executor.contract import Executor, ExecutorEvent
from messiahs.executor.linux.strays import all_below
from messiahs.executor.os_process.launch import StarterSettings, end_starter
from messiahs.executor.protocol.identity import recorded_identity
from messiahs.executor.protocol.layout import ATTEMPTS, can_traverse, task_account
from tests.waiting import until

OFFSET_NS = 10**18
"""Instants of the host are not those of the machine."""

CLAIM = ClaimId(SystemId("leonardo"), Epoch(7), 1)


def now() -> Instant:
    return Instant(time.clock_gettime_ns(time.CLOCK_BOOTTIME) + OFFSET_NS)


def attempt_id(number: int) -> AttemptId:
    return AttemptId(TaskId(SystemId("blays"), Epoch(2**64 - 1), number), 1)


def start_of(
    number: int, *, seconds: float = 0, places: int = 100, limit_ns: int | None = None, lease_ns: int = 600 * SECOND
) -> StartAttempt:
    """Return the start of a task that writes `hello` and runs for a time; the stub does the same."""
    return StartAttempt(
        attempt=attempt_id(number),
        claim=CLAIM,
        command=Command(argv=("sh", "-c", f"printf hello; exec sleep {seconds}" if seconds else "printf hello")),
        places=places,
        limit_ns=limit_ns,
        lease_until=Instant(now() + lease_ns),
    )


class Rig:
    """An executor after its first `running`, and the events since then."""

    def __init__(self, executor: Executor, *, seconds: float = 0, image: InputFile | None = None) -> None:
        self.executor = executor
        self.seconds = seconds
        self.image = image
        """The image in which commands run; None: none."""
        self.events: list[ExecutorEvent] = []
        self.losses: list[str] = []

    async def started(self) -> "Rig":
        """Start, and call `running`, so that events are reported."""
        await self.executor.start(self.events.append, self.losses.append)
        await self.executor.running()
        return self

    def start(self, number: int, *, places: int = 100, limit_ns: int | None = None, lease_s: float = 600) -> None:
        """Start a numbered attempt."""
        lease_ns = int(lease_s * SECOND)
        action = start_of(number, seconds=self.seconds, places=places, limit_ns=limit_ns, lease_ns=lease_ns)
        self.executor.perform(action)

    def run(
        self,
        number: int,
        *argv: str,
        env: tuple[tuple[str, str], ...] = (),
        limits: TaskLimits = TaskLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        """Start any command."""
        self.begin(replace(start_of(number), command=Command(argv=argv, env=env), limits=limits))

    def begin(self, action: StartAttempt) -> None:
        """Start an attempt, in the image if there is one."""
        if self.image is not None:
            command = replace(action.command, inputs=(*action.command.inputs, self.image))
            action = replace(action, command=command, image=self.image.sha256.hex())
        self.executor.perform(action)

    def output(self, number: int, name: str = "stdout") -> str:
        """Read what an attempt wrote."""
        return self.executor.read_output(attempt_id(number), name, offset=0, limit=1 << 20).decode()

    def ends(self) -> dict[AttemptId, AttemptEnded]:
        """Return the reported ends."""
        return {event.attempt: event for event in self.events if isinstance(event, AttemptEnded)}

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is true."""
        await until(condition, self.events)

    async def end_of(self, number: int) -> AttemptEnded:
        """Wait for the end of an attempt."""
        await self.until(lambda: attempt_id(number) in self.ends())
        return self.ends()[attempt_id(number)]

    async def start_of(self, number: int) -> None:
        """Wait until an attempt runs."""
        await self.until(lambda: AttemptStarted(attempt=attempt_id(number)) in self.events)


KINDS = ("namespace", "degraded", "sandbox", "bubblewrap")
"""Ways of containing real tasks: in a process namespace, without one, and in sandboxes of two makes."""
BACK_ENDS = tuple(kind for kind in KINDS if kind != "degraded")
"""Those that differ in more than how the end of a starter ends its tasks."""


@contextmanager
def starter_settings(tmp_path: Path, *, kind: str = "namespace") -> Iterator[StarterSettings]:
    """Return a place for a starter of a kind; afterwards neither it nor its folders remain."""
    if kind == "sandbox" and os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("needs the package bubblewrap")
    # Tasks of a test that runs as root run as another account, which must get to its folders.
    fallback = Path(tempfile.mkdtemp(prefix="messiahs-test-"))
    fallback.chmod(0o711)
    settings = StarterSettings(
        directory=tmp_path / "starter",
        fallback=fallback,
        uses_namespace=kind != "degraded",
        isolation=kind if kind in ("sandbox", "bubblewrap") else "process",
        task_uids=_uids_of_worker(),
    )
    yield settings
    asyncio.run(end_starter(settings.directory))
    shutil.rmtree(fallback)


def _uids_of_worker() -> tuple[int, int]:
    """Return accounts that no other worker's tests use meanwhile: a starter takes the first free ones."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 2_100_100_000 + 1_024 * worker
    return first, first + 1_023


def root_of(settings: StarterSettings) -> Path:
    """Return the folder below which the starter's tasks have theirs."""
    account = task_account(settings.task_uids)
    roots = [settings.directory / "tasks"] if can_traverse(settings.directory, account) else settings.fallback.iterdir()
    (root,) = (root for root in roots if root.name != "files" and "messiahs-files" not in root.name)
    return root


def attempt_folder(settings: StarterSettings, number: int) -> Path:
    """Return the folder of an attempt that has ended, or runs without a sandbox."""
    return root_of(settings) / ATTEMPTS / folder_name(attempt_id(number))


def is_one_of_tasks(settings: StarterSettings, uid: int) -> bool:
    """Whether an account can be that of a task."""
    if os.geteuid() != 0:
        return uid == os.geteuid()
    first, last = settings.task_uids
    # Tasks in sandboxes have the first free ones, and others that of their starter.
    return uid == first if settings.isolation == "sandbox" else first <= uid <= last


def work_seen(settings: StarterSettings, number: int) -> str:
    """Return the path of its working directory that a task sees."""
    if settings.isolation != "process":
        return "/task/work"
    return str(attempt_folder(settings, number) / "work")


def processes_of(settings: StarterSettings, number: int) -> list[int]:
    """Return the processes of an attempt; in sandboxes those of all attempts, without what keeps the sandboxes."""
    if settings.isolation == "process":
        return list(all_below(os.fsencode(attempt_folder(settings, number))))
    starter = recorded_identity(settings.directory)
    return [] if starter is None else list(_below_slots(starter.pid))


def _below_slots(starter: int) -> Iterator[int]:
    children = _children_of(starter)
    keepers = [child for child in children if _name_of(child) == "messiahs-slot"]
    # In a box of bubblewrap, a child of its first process is the init.
    keepers += [init for child in children if _name_of(child) == "bwrap" for init in _children_of(child)]
    waiting = [child for keeper in keepers for child in _children_of(keeper)]
    while waiting:
        yield (process := waiting.pop())
        waiting += _children_of(process)


def _children_of(process: int) -> list[int]:
    found: list[int] = []
    # A thread of the starter may have started the task.
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, children.read_text().split())
    return found


def _name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def play_scene(
    act: Callable[[Rig], Awaitable[None]],
    make: Callable[[], Executor],
    *,
    seconds: float = 0,
    image: InputFile | None = None,
) -> None:
    """Start an executor, act, and end it with its tasks."""

    async def scene() -> None:
        rig = await Rig(make(), seconds=seconds, image=image).started()
        try:
            await act(rig)
        finally:
            await rig.executor.stop(end_tasks=True)

    asyncio.run(scene())
