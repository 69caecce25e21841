"""The Python API: a client of the modules that a user can reach. The command line stands on it."""

import os
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Literal, Self, Unpack, cast

from messiahs.client.cleaning import Cleaned, clean_named, clean_older, joined
from messiahs.client.completion import ended_tasks, unknown_error, unknown_in
from messiahs.client.connection import PATIENCE_SECONDS, Document, OnConnection, untold
from messiahs.client.fetching import OutputFile, check_places, fetch_with_logs, outputs_of_all
from messiahs.client.history import ended_among
from messiahs.client.locating import (
    BY_ARGUMENTS,
    ModulePlace,
    Naming,
    array_of,
    locate_module,
    member_of,
    module_of,
    task_of,
)
from messiahs.client.member_logs import member_logs
from messiahs.client.members import SINGLE, Members
from messiahs.client.module import ModuleClient
from messiahs.client.plans import TaskPlan
from messiahs.client.preparing import planned_submission, prepared_submission, retry_at
from messiahs.client.progress import OnProgress, silent
from messiahs.client.status import Ended, Listed, TaskStatus, is_final
from messiahs.client.task_options import TaskOptions, checked_age, checked_folder, checked_timeout
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError


def connect(
    module: str | None = None, state: str | PathLike[str] | None = None, *, patience: float | None = PATIENCE_SECONDS
) -> "Client":
    """Return a client of a module, found as on the command line: `module`, MESSIAHS_MODULE, or the only one there is.

    `state` is the state directory (MESSIAHS_STATE). Nothing is contacted yet.
    """
    return Client(module, state, patience=patience)


class Client:
    """Submits, follows and fetches tasks. All threads of a process may share one.

    Ids are those of the command line: `laptop.17` is a task or an array, `laptop.17.3` a member. Unless a module is
    named, tasks of any module of this host are found by their ids.

    Every method waits through a restart of the module for `patience` seconds (None: without limit), and then raises
    `ModuleUnreachableError`. It raises `UnknownTaskError` for an id that the module does not know, and `ClientError`
    for everything else that the module or this client refuses: the text says what to do.
    """

    _naming: ClassVar[Naming] = BY_ARGUMENTS

    def __init__(
        self,
        module: str | None = None,
        state: str | PathLike[str] | None = None,
        *,
        patience: float | None = PATIENCE_SECONDS,
    ) -> None:
        self._module = module
        self._state = None if state is None else Path(state)
        self._patience = patience
        self._places: dict[str, ModulePlace] = {}
        self._idle: dict[Path, list[ModuleClient]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones. No task is affected."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for module in (one for some in idle.values() for one in some):
            module.close()

    def submit(
        self,
        command: Sequence[str | PathLike[str]],
        *,
        members: Members = SINGLE,
        on_progress: OnProgress = silent,
        **options: Unpack[TaskOptions],
    ) -> str:
        """Submit a task and return its id; it is stored when this returns, and runs whatever becomes of this process.

        Input files are read and uploaded before.
        """
        with self.at() as module:
            submission = prepared_submission(module, command, options=options, members=members, on_progress=on_progress)
            return module.submit(submission)

    def plan(
        self,
        command: Sequence[str | PathLike[str]],
        *,
        members: Members = SINGLE,
        on_progress: OnProgress = silent,
        **options: Unpack[TaskOptions],
    ) -> TaskPlan:
        """Return what would become of a task if it were submitted now, and why; nothing is submitted, sent or stored.

        The options are those of `submit`; those that do not concern its place, such as `key`, have no effect. Input
        files are read, for what they tell about the machine that is needed, and not uploaded. Raises `ClientError` for
        what `submit` would refuse.
        """
        submission = planned_submission(command, options=options, members=members, on_progress=on_progress)
        with self.at() as module:
            return cast("TaskPlan", module.plan(submission))

    def submit_file(
        self, path: str | PathLike[str], *, key: str | None = None, on_progress: OnProgress = silent
    ) -> dict[str, str]:
        """Submit the tasks of a file (YAML), all or none, and return their ids by name; they are stored by then.

        A `WorkflowError` has every problem of the file with its line and column; nothing was submitted then. Repeating
        it with the same `key` submits nothing a second time.
        """
        from messiahs.client.workflows import submit_workflow  # noqa: PLC0415 - others start faster without YAML

        with self.at() as module:
            return submit_workflow(module, path, key=key, on_progress=on_progress)

    def map(
        self,
        command: Sequence[str | PathLike[str]],
        items: Iterable[object],
        *,
        at_once: int | None = None,
        **options: Unpack[TaskOptions],
    ) -> str:
        """Submit an array with one task for each item, for which `{}` stands in the command, and return its id.

        Member N has the Nth item, counted from 1. At most `at_once` of them (None: all) run at the same time.
        """
        members = Members.of_items([str(item) for item in items])
        return self.submit(command, members=members if at_once is None else members.limited(at_once), **options)

    def status(
        self, *ids: str, members: bool = False, user: str | None = None, active: bool = False
    ) -> list[TaskStatus]:
        """Return the state of tasks in the order of `ids`, or of all tasks of the module; `members` unfolds arrays.

        `user` leaves out the tasks of others, and `active` those that have ended.
        """
        tasks, unknown = self.found(*ids, members=members, among=Listed(user, active))
        if unknown:
            raise unknown_error(unknown)
        return cast("list[TaskStatus]", tasks)

    def found(
        self, *ids: str, members: bool = False, explained: bool = False, among: Listed | None = None
    ) -> tuple[list[Document], dict[str, str]]:
        """Return the state of the tasks that are known, and the ids that are not, each with a sentence.

        Both are in the order of `ids`. `among` leaves out all other tasks.
        """
        tasks: list[Document] = []
        unknown: dict[str, str] = {}
        for names in self._by_module(ids) if ids else ((),):
            with self.at(*names[:1]) as module:
                answer = module.tasks(*names, members=members, explained=explained, among=among)
            tasks += [task for task in answer["tasks"] if among is None or among.has(task)]
            unknown |= unknown_in(answer)
        places = {task_of(name): place for place, name in reversed(list(enumerate(ids)))}
        tasks.sort(key=lambda task: places.get(task["id"], places.get(array_of(task["id"]), 0)))
        return tasks, dict(sorted(unknown.items(), key=lambda each: places[task_of(each[0])]))

    def explain(self, task: str) -> TaskStatus:
        """Return the state of a task with the `reasons` why it waits or was denied, hop by hop, and its `history`.

        `search` has who was asked for its place, and in which order and why. While it waits, `round` says for what; of
        one that waits or was denied, `machines` says how many fit, and what would have to change so that more do.
        """
        tasks, unknown = self.found(task, explained=True)
        if unknown:
            raise unknown_error(unknown)
        return cast("TaskStatus", tasks[0])

    def history(self, *, since: float | str = "7d", user: str | None = None) -> list[TaskStatus]:
        """Return the tasks that ended in the last `since`, in seconds or such as `"90min"`, the first to end first.

        `user` names whose tasks; None means those of all users of the module.
        """
        seconds = checked_age("since", since)
        begin = datetime.fromtimestamp(max(0.0, time.time() - seconds), UTC)
        with self.at() as module:
            tasks = module.tasks(members=True, among=Ended(begin.timestamp(), user))["tasks"]
        return cast("list[TaskStatus]", ended_among(tasks, begin=begin, user=user))

    def wait(self, *ids: str, timeout: float | None = None) -> list[TaskStatus]:
        """Wait until all tasks have ended, and return their states in the order of `ids`.

        Raises `TimeoutError` if some have not after `timeout` seconds; they run on.
        """
        ended = {task["id"]: task for task in self.as_completed(ids, timeout=timeout)}
        return [ended[task_of(name)] for name in ids]

    def as_completed(
        self, ids: Iterable[str], *, timeout: float | None = None, on_connection: OnConnection = untold
    ) -> Generator[TaskStatus, None, None]:
        """Yield the state of each task or array once it has ended, the first to end first.

        While a module is away, those of the others wait. Raises `TimeoutError` if some have not ended `timeout` seconds
        after the first call of `next`.
        """
        if isinstance(ids, str):
            raise TypeError("`as_completed` takes a list of ids, not one: [id]")
        timeout = checked_timeout(timeout)
        with ExitStack() as lent:
            modules = [(lent.enter_context(self.at(names[0])), names) for names in self._by_module(tuple(ids))]
            for document in ended_tasks(modules, timeout=timeout, on_connection=on_connection):
                yield cast("TaskStatus", document)

    def logs(
        self,
        task: str,
        *,
        stream: Literal["stdout", "stderr"] = "stdout",
        follow: bool = False,
        on_connection: OnConnection = untold,
    ) -> Generator[bytes, None, None]:
        """Yield what a task wrote, piece by piece; with `follow` until it has ended and everything was sent."""
        with self.at(task) as module:
            yield from module.logs(task, stream=stream, follow=follow, on_connection=on_connection)

    def member_logs(
        self,
        array: str,
        *,
        stream: Literal["stdout", "stderr"] = "stdout",
        follow: bool = False,
        failed: bool = False,
        on_connection: OnConnection = untold,
    ) -> Generator[tuple[int, bytes], None, None]:
        """Yield what the members of an array wrote, piece by piece, each with the member's number.

        All pieces of a member follow one another, except with `follow`: then those of members that run come as they are
        written, and an empty one when a member has ended. With `failed`, only those that failed, when they have.
        """
        with self.at(array) as module:
            yield from member_logs(
                module, array, stream=stream, follow=follow, failed=failed, on_connection=on_connection
            )

    def fetch(self, *ids: str, into: str | PathLike[str] = ".", on_progress: OnProgress = silent) -> list[Path]:
        """Write the outputs of ended tasks below a folder and return their paths; those of member 3 go to `3/`.

        With an array or a member come the files `stdout` and `stderr` of members, unless outputs have these names. An
        existing file is replaced once its successor is complete. Raises `ClientError` for a task that has not ended,
        and `TypeError` without any id, which is not to mean all tasks.
        """
        if not ids:
            raise TypeError("`fetch` takes at least one id: the outputs of all tasks are not fetched at once")
        into = checked_folder("into", into)
        found = [(task["id"], is_final(cast("Document", task))) for task in self.status(*ids, members=True)]
        running = next((name for name, has_ended in found if not has_ended), None)
        if running is not None:
            raise ClientError(f"{running} has not ended yet")
        written: list[Path] = []
        outputs: dict[str, tuple[OutputFile, ...]] = {}
        for names in self._by_module(list(dict.fromkeys(name for name, _ in found))):
            with self.at(names[0]) as module:
                outputs |= outputs_of_all(module, names)
        check_places(one for some in outputs.values() for one in some)
        asked, grouped = set(ids), dict[str, list[str]]()
        for task in outputs:
            grouped.setdefault(array if (array := array_of(task)) in asked else task, []).append(task)
        for name, tasks in grouped.items():
            some = [one for task in tasks for one in outputs[task]]
            members = [number for task in tasks if (number := member_of(task))]
            with self.at(name) as module:
                files = fetch_with_logs(module, name, outputs=some, into=into, members=members, on_progress=on_progress)
                written += [into / one.place for one in files]
        return written

    def cancel(self, *ids: str) -> list[Document]:
        """Request the end of tasks and of all members of arrays; `wait` returns once they have ended.

        Returns `{"id", "cancelled", "members"}` for each: how many of how many tasks this ends. One that had ended
        before also has `has_ended` and its `states`.
        """
        cancelled = []
        for name in ids:
            with self.at(name) as module:
                cancelled.append(module.cancel(name))
        return cancelled

    def retry(
        self,
        task: str,
        *,
        killed: bool = False,
        inputs: Iterable[str | PathLike[str]] = (),
        on_progress: OnProgress = silent,
    ) -> int:
        """Run a failed task, or the failed members of an array, again under the same ids; return their number.

        With `killed`, only those that a cancel, a limit, a signal or the system ended. They get the files of their
        submit, except for `inputs`: each of these replaces the input of its name (`"FILE:NAME"`), for all later
        attempts of the task or array. Raises `ClientError` for a file that cannot be read, or that is no input.
        """
        with self.at(task) as module:
            return retry_at(module, task, killed=killed, inputs=inputs, on_progress=on_progress)

    def clean(self, *ids: str, older_than: float | str | None = None) -> Cleaned:
        """Forget ended tasks and arrays now, with their outputs, and return what that has freed.

        Without ids, all own tasks of the module that ended `older_than` ago or earlier, in seconds or such as `"2d"`.
        Those that have not ended, that others need, or that belong to another user are `kept`, each with a sentence.
        """
        if bool(ids) == (older_than is not None):
            raise TypeError("clean takes ids, or older_than")
        if older_than is None:
            answers: list[Document] = []
            for names in self._by_module(ids):
                with self.at(names[0]) as module:
                    answers += clean_named(module, names)
            return joined(answers)
        seconds = checked_age("older_than", older_than)
        with self.at() as module:
            return joined(clean_older(module, seconds))

    @contextmanager
    def at(self, task: str | None = None) -> Iterator[ModuleClient]:
        """Lend the requests of the local API at the module of a task, or at the one that tasks are submitted to."""
        socket = self._place(task).socket
        if os.getpid() != self._process:
            # The connections are those of the process from which this one was forked.
            self._process, self._idle, self._lock = os.getpid(), {}, threading.Lock()
        with self._lock:
            idle = self._idle.setdefault(socket, [])
            module = idle.pop() if idle else ModuleClient(socket, patience=self._patience)
        try:
            yield module
        except BaseException:
            # Part of an answer may still be unread.
            module.close()
            raise
        with self._lock:
            self._idle.setdefault(socket, []).append(module)

    def _place(self, task: object) -> ModulePlace:
        if task is not None and not isinstance(task, str):
            raise TypeError(
                f"an id is a text such as `laptop.17`, not {printable(repr(task))[:100]}; pass a list as `*ids`"
            )
        name = "" if task is None else module_of(task)
        if name not in self._places:
            self._places[name] = locate_module(self._module, task=task, state=self._state, naming=self._naming)
        return self._places[name]

    def _by_module(self, ids: Sequence[str]) -> list[list[str]]:
        """Group ids by the modules that know them, so that each module is asked once."""
        grouped: dict[Path, list[str]] = {}
        for name in ids:
            grouped.setdefault(self._place(name).socket, []).append(name)
        return list(grouped.values())
