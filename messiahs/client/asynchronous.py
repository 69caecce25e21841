"""The Python API for asyncio: the methods of `Client`, each awaited while a thread carries it out."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeVar, Unpack

from messiahs.client.cleaning import Cleaned
from messiahs.client.connection import PATIENCE_SECONDS, Connection, Document, OnConnection
from messiahs.client.locating import task_of
from messiahs.client.members import SINGLE, Members
from messiahs.client.plans import TaskPlan
from messiahs.client.progress import OnProgress, silent
from messiahs.client.status import TaskStatus
from messiahs.client.task_options import TaskOptions
from messiahs.client.tasks import Client

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_THREADS: Final = 32
_AHEAD: Final = 16
"""Pieces of a stream that may wait for their reader."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a stream, with the error that ended it."""

    error: BaseException | None


class AsyncClient:
    """`Client` for asyncio: the same methods with the same errors, in one event loop.

    Cancelling an awaited method leaves what it asked for to the module: a submit may have been stored. Each `wait`,
    `as_completed` and `logs` has a thread and a connection while it is awaited; to wait for many tasks, pass all of
    their ids to one.
    """

    def __init__(
        self,
        module: str | None = None,
        state: str | PathLike[str] | None = None,
        *,
        patience: float | None = PATIENCE_SECONDS,
    ) -> None:
        self._client = Client(module, state, patience=patience)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="messiahs")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, when the calls that run have returned."""
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def submit(
        self,
        command: Sequence[str | PathLike[str]],
        *,
        members: Members = SINGLE,
        on_progress: OnProgress = silent,
        **options: Unpack[TaskOptions],
    ) -> str:
        """Submit a task and return its id (`Client.submit`); progress is reported in another thread."""
        submit = partial(self._client.submit, command, members=members, on_progress=on_progress, **options)
        return await self._call(submit)

    async def plan(
        self,
        command: Sequence[str | PathLike[str]],
        *,
        members: Members = SINGLE,
        on_progress: OnProgress = silent,
        **options: Unpack[TaskOptions],
    ) -> TaskPlan:
        """Return what would become of a task if it were submitted now (`Client.plan`)."""
        return await self._call(
            partial(self._client.plan, command, members=members, on_progress=on_progress, **options)
        )

    async def submit_file(
        self, path: str | PathLike[str], *, key: str | None = None, on_progress: OnProgress = silent
    ) -> dict[str, str]:
        """Submit the tasks of a file and return their ids by name (`Client.submit_file`)."""
        return await self._call(partial(self._client.submit_file, path, key=key, on_progress=on_progress))

    async def map(
        self,
        command: Sequence[str | PathLike[str]],
        items: Iterable[object],
        *,
        at_once: int | None = None,
        **options: Unpack[TaskOptions],
    ) -> str:
        """Submit an array with one task for each item and return its id (`Client.map`)."""
        return await self._call(partial(self._client.map, command, items, at_once=at_once, **options))

    async def status(
        self, *ids: str, members: bool = False, user: str | None = None, active: bool = False
    ) -> list[TaskStatus]:
        """Return the state of tasks, or of all tasks of the module (`Client.status`)."""
        return await self._call(partial(self._client.status, *ids, members=members, user=user, active=active))

    async def explain(self, task: str) -> TaskStatus:
        """Return the state of a task with its reasons and its history (`Client.explain`)."""
        return await self._call(partial(self._client.explain, task))

    async def history(self, *, since: float | str = "7d", user: str | None = None) -> list[TaskStatus]:
        """Return the tasks that ended in the last `since`, the first to end first (`Client.history`)."""
        return await self._call(partial(self._client.history, since=since, user=user))

    async def wait(self, *ids: str, timeout: float | None = None) -> list[TaskStatus]:  # noqa: ASYNC109 - as `Client`
        """Wait until all tasks have ended, and return their states in the order of `ids` (`Client.wait`)."""
        ended = {task["id"]: task async for task in self.as_completed(ids, timeout=timeout)}
        return [ended[task_of(name)] for name in ids]

    def as_completed(self, ids: Iterable[str], *, timeout: float | None = None) -> AsyncGenerator[TaskStatus, None]:
        """Yield the state of each task once it has ended (`Client.as_completed`)."""
        return _streamed(partial(self._client.as_completed, ids, timeout=timeout))

    def logs(
        self, task: str, *, stream: Literal["stdout", "stderr"] = "stdout", follow: bool = False
    ) -> AsyncGenerator[bytes, None]:
        """Yield what a task wrote, piece by piece (`Client.logs`)."""
        return _streamed(partial(self._client.logs, task, stream=stream, follow=follow))

    def member_logs(
        self,
        array: str,
        *,
        stream: Literal["stdout", "stderr"] = "stdout",
        follow: bool = False,
        failed: bool = False,
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield what the members of an array wrote, each piece with the member's number (`Client.member_logs`)."""
        return _streamed(partial(self._client.member_logs, array, stream=stream, follow=follow, failed=failed))

    async def fetch(self, *ids: str, into: str | PathLike[str] = ".", on_progress: OnProgress = silent) -> list[Path]:
        """Write the outputs of ended tasks below a folder and return their paths (`Client.fetch`, `submit`)."""
        return await self._call(partial(self._client.fetch, *ids, into=into, on_progress=on_progress))

    async def cancel(self, *ids: str) -> list[Document]:
        """Request the end of tasks and of all members of arrays (`Client.cancel`)."""
        return await self._call(partial(self._client.cancel, *ids))

    async def retry(
        self,
        task: str,
        *,
        killed: bool = False,
        inputs: Iterable[str | PathLike[str]] = (),
        on_progress: OnProgress = silent,
    ) -> int:
        """Run a failed task, or the failed members of an array, again; return their number (`Client.retry`)."""
        return await self._call(
            partial(self._client.retry, task, killed=killed, inputs=inputs, on_progress=on_progress)
        )

    async def clean(self, *ids: str, older_than: float | str | None = None) -> Cleaned:
        """Forget ended tasks and arrays now, and return what that has freed (`Client.clean`)."""
        return await self._call(partial(self._client.clean, *ids, older_than=older_than))

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Streaming(Protocol[T_co]):
    """A method of `Client` that is called with its arguments, and yields pieces."""

    def __call__(self, *, on_connection: OnConnection) -> Generator[T_co, None, None]: ...


class _Reader:
    """Whoever takes the pieces of a stream, as its producing thread sees it (shared by both)."""

    def __init__(self) -> None:
        self.room = threading.Semaphore(_AHEAD)
        self.has_left = False
        self._connections: list[Connection] = []
        self._lock = threading.Lock()

    def leave(self) -> None:
        """Let the thread end, also while it waits for a module."""
        with self._lock:
            self.has_left = True
            for connection in self._connections:
                connection.end()
        self.room.release()

    def note(self, connection: Connection) -> None:
        """Note a connection that the thread is about to use."""
        with self._lock:
            self._connections.append(connection)
            if self.has_left:
                connection.end()


async def _streamed(stream: _Streaming[T]) -> AsyncGenerator[T, None]:
    """Yield what a method of the client yields in a thread of its own, which a reader that leaves does not wait for."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[T | _End] = asyncio.Queue()
    reader = _Reader()

    def pass_on(one: T | _End) -> None:
        with suppress(RuntimeError):
            # The loop may be closed by now.
            loop.call_soon_threadsafe(arrived.put_nowait, one)

    def produce() -> None:
        try:
            with closing(stream(on_connection=reader.note)) as pieces:
                for one in pieces:
                    reader.room.acquire()
                    if reader.has_left:
                        return
                    pass_on(one)
        except BaseException as error:  # noqa: BLE001 - raised again by the reader
            pass_on(_End(error))
        else:
            pass_on(_End(None))

    threading.Thread(target=produce, daemon=True, name="messiahs-stream").start()
    try:
        while not isinstance(one := await arrived.get(), _End):
            reader.room.release()
            yield one
        if one.error is not None:
            raise one.error
    finally:
        reader.leave()
