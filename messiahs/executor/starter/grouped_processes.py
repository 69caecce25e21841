"""Tasks as process groups below the starter, all with the account of the starter."""

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from weakref import WeakSet

from messiahs.core.interface.causes import Cause
from messiahs.core.model.output_names import STDERR
from messiahs.core.model.task_limits import TaskLimits
from messiahs.core.model.usage import Usage
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import Held, NotSpawned
from messiahs.executor.linux.cgroups.contract import Group
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.strays import Children
from messiahs.executor.protocol.layout import ATTEMPTS
from messiahs.executor.starter.bubblewrap.boxes import has_executed, new_status, noted_start
from messiahs.executor.starter.bubblewrap.ends import problem_of_box, terminate_inside, true_end
from messiahs.executor.starter.bubblewrap.outbound import Networks
from messiahs.executor.starter.leftovers import Clearing
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.process_groups import next_dead, signal_group
from messiahs.executor.starter.process_trees import ProcessTrees, children_of, descendants_of
from messiahs.executor.starter.sandbox.unpacking import what_of
from messiahs.executor.starter.spawn import Process, Spawner, problem_in
from messiahs.executor.starter.suspension import Suspended
from messiahs.executor.starter.task_groups import TaskGroups
from messiahs.executor.starter.task_processes import Exited, Staged
from messiahs.executor.starter.used_resources import together, usage_of

_NO_ARCHIVES = "the task needs {}, which only a machine with `isolation: sandbox` can unpack"
_NO_ACCOUNTS = "the machine's policy gives the task an account of the host, which only `isolation: sandbox` can do"
_NO_NETWORKS = "the machine's policy limits the network of the task, which only sandboxes can do"
_REPORT_BYTES = 65_536
_ROOM = 1 << 20
"""More than any machine has slots."""


class GroupedProcesses:
    """Processes of attempts without a sandbox (mutable).

    `_leaders` has exactly the attempts whose first process is not reaped yet, so that a number in it still refers to
    the process that was started.
    """

    def __init__(self, *, spawner: Spawner, children: Children, pool: Pool, groups: TaskGroups) -> None:
        self.has_unpacked = False
        """Whether the process that unpacks environments was reaped."""
        self._spawner, self._pool, self._groups, self._children = spawner, pool, groups, children
        self._listed: WeakSet[Group] = WeakSet()
        """Groups in which a thread starts processes, and whose children are known."""
        self._leaders: dict[int, Held] = {}
        self._statuses: dict[int, int] = {}
        """The files to which boxes write what becomes of them, by their first processes, like `_leaders`."""
        self._networks = Networks()
        self._staging: list[Held] = []
        self._reports = select.epoll()
        """Waits for the reports of processes that copy inputs."""
        self._trees = ProcessTrees(children, pool, self._leaders)
        self._clearing = Clearing(children=children, trees=self._trees, pool=pool, leaders=self._leaders, groups=groups)
        self._suspended = Suspended(self._trees, self._leaders)

    @property
    def degraded(self) -> str:
        """Why processes that hide their attempts are recognised later than elsewhere, or tasks have fewer limits."""
        return "; ".join(filter(None, (self._trees.degraded, self._groups.degraded)))

    @property
    def room(self) -> int:
        """Any number of attempts can be started."""
        return _ROOM

    @property
    def must_show_files(self) -> bool:
        """In boxes: outside of them, tasks of an ordinary account have other ways to hide."""
        return self._spawner.boxes is not None

    def fileno(self) -> int:
        """Return a descriptor that is readable when a process has become its task, or has reported why it cannot."""
        return self._reports.fileno()

    def account(self, start: Start) -> None:
        """Return None: all attempts have the starter's account."""

    def start(self, held: Held, taken: Taken) -> NotSpawned | None:
        """Start the leader of a new process group, marked as of this attempt."""
        assert held.start is not None
        if held.start.archive is not None:
            text = _NO_ARCHIVES.format(what_of(held.start.archive).replace("the ", "an "))
            return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=text)
        if held.start.account:
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=_NO_ACCOUNTS)
        if held.start.network and self._spawner.boxes is None:
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=_NO_NETWORKS)
        self._trees.begin(held.folder)
        try:
            group = self._groups.begin(held) if self._needs_group(held.start.limits) else None
            if group is not None and group.has_inside and group not in self._listed:
                group.inside(self._children.add_thread)
                self._listed.add(group)
            outcome = self._spawned(held.start, taken, group)
        except Exception:
            self._groups.release(held)
            raise
        if isinstance(outcome, NotSpawned):
            self._groups.release(held)
            return outcome
        held.process, held.report, said = outcome
        if said >= 0:
            self._networks.add(held.process, said)
        self._leaders[held.process] = held
        if held.report >= 0:
            held.is_staging = True
            self._staging.append(held)
            # The process is there, and must be known; every step looks for its report anyway.
            with suppress(OSError):
                self._reports.register(held.report, select.EPOLLIN)
        return None

    def events(self) -> Iterator[Staged | Exited]:
        """Reap ended processes, and read the reports of those that copy inputs."""
        while (info := next_dead()) is not None:
            process = info.si_pid
            held = self._leaders.pop(process, None)
            if held is not None:
                # The dead leader still holds its number, so the group cannot be another one.
                signal_group(process, signal.SIGKILL)
            group = os.getpgid(process) if held is None else 0
            _, _, used = os.wait4(process, 0)
            self._trees.reaped(process)
            if held is not None:
                held.usage = together(held.usage or Usage(), usage_of(used))
                self._networks.forget(process)
                self._groups.kill(held)
                if held.is_staging and self._is_staged(held):
                    yield self._staged(held)
                self._clearing.add(held)
                yield self._exited(held, info)
            elif process == self._pool.remover:
                self._pool.removed()
            elif process == self._pool.unpacker:
                self.has_unpacked = True
            elif group in self._leaders:
                # The init of a box is reaped before the first process, or after it.
                leader = self._leaders[group]
                leader.usage = together(leader.usage or Usage(), usage_of(used))
            else:
                self._clearing.add_usage(group, usage_of(used))
        for held in self._staging.copy():
            if self._is_staged(held):
                yield self._staged(held)
        for process, text in self._networks.ended(starting={held.process for held in self._staging}):
            # No task runs without the network that it was promised.
            why = f"the network of the sandbox ended: {text}"
            held = self._leaders[process]
            held.problem = held.problem or NotSpawned(cause=Cause.LOST, exit_code=None, text=why)
            signal_group(process, signal.SIGKILL)

    def cleared(self) -> Iterator[tuple[Held, str]]:
        """Yield attempts without remaining processes, and kill those that remain."""
        if self._clearing:
            for held, text in self._clearing.ended():
                yield held, self._groups.end(held, text)

    @property
    def is_clearing(self) -> bool:
        """Whether killed processes are about to disappear."""
        return bool(self._clearing)

    def terminate(self, held: Held) -> None:
        """Signal the group."""
        if self._spawner.boxes is not None and not held.is_staging:
            terminate_inside(self._children, held.process)
            return
        signal_group(held.process, signal.SIGTERM)
        # A suspended task must be resumed to end by itself.
        signal_group(held.process, signal.SIGCONT)

    def kill(self, held: Held) -> None:
        """Signal the group; processes that left it are killed when its leader has ended."""
        signal_group(held.process, signal.SIGKILL)

    def suspend(self, held: Held) -> None:
        """Stop the group at once, and other processes in the next step."""
        self._suspended.suspend(held)

    def resume(self, held: Held) -> None:
        """Resume the group at once, and other processes in the next step."""
        self._suspended.resume(held)

    @property
    def due_at(self) -> int:
        """When suspended attempts must be looked at."""
        return self._suspended.due_at

    def step(self, now: int) -> None:
        """Stop and resume processes outside of their groups."""
        self._suspended.step(now)

    def memory_bytes(self, running: Sequence[Held]) -> list[int]:
        """Search for the processes of the attempts; shared memory counts for each of them."""
        roots = self._trees.roots() if running else {}
        return [self._trees.memory_bytes(held.folder, roots) for held in running]

    def processes(self, held: Held) -> Iterator[bytes]:
        """Yield the first process and those below it; in a box of bubblewrap, these are all, without its own two."""
        name = self._children.name_of(held.process)
        if name is None:
            return
        if self._spawner.boxes is None or held.is_staging:
            yield name
            yield from descendants_of(name)
        else:
            for init in children_of(name):
                yield from descendants_of(init)

    def forget(self, held: Held) -> None:
        """Release the mark of the attempt."""
        self._trees.forget(held.folder)

    def _needs_group(self, limits: TaskLimits) -> bool:
        """Return whether a task states what a control group limits, or is in a box, which must hold it in any case.

        A group makes each start a third more expensive.
        """
        return limits.memory_bytes is not None or limits.processors > 1 or self._spawner.boxes is not None

    def _spawned(self, start: Start, taken: Taken, group: Group | None) -> Process | NotSpawned:
        """Start the first process of a task, and keep the file to which its box writes, if it has one."""
        if self._spawner.boxes is None:
            return self._spawner.spawn(start, taken, group=group)
        status = new_status()
        try:
            outcome = self._spawner.spawn(start, taken, group=group, status=status)
        except Exception:
            os.close(status)
            raise
        if isinstance(outcome, Process):
            self._statuses[outcome.number] = status
        else:
            os.close(status)
        return outcome

    def _exited(self, held: Held, info: os.waitid_result) -> Exited:
        """Return how the first process has ended; a box that has never executed its task is a problem."""
        status = self._statuses.pop(info.si_pid, None)
        is_executed = status is None or has_executed(status)
        if status is not None:
            os.close(status)
        if info.si_code != os.CLD_EXITED:
            return Exited(held, None, info.si_status)
        exit_code, number = (info.si_status, None) if status is None else true_end(info.si_status)
        if held.problem is None and number is None and not is_executed:
            log = f"{self._pool.root}/{ATTEMPTS}/{held.folder}/{STDERR}"
            problem = problem_of_box(log)
            with suppress(OSError):
                # The task has written nothing.
                os.truncate(log, 0)
            is_unfit = problem.cause is Cause.SPAWN_FAILED and held.start is not None and bool(held.start.shown)
            # Boxes can be set up here: one was tried.
            held.problem = replace(problem, cause=Cause.NO_PLACE) if is_unfit else problem
        return Exited(held, exit_code, number)

    def _staged(self, held: Held) -> Staged:
        """Return that a process has become its task. A box has noted when: the report may be read much later."""
        status = self._statuses.get(held.process)
        return Staged(held, (0 if status is None else noted_start(status)) or boottime_ns())

    def _is_staged(self, held: Held) -> bool:
        """Whether a process has become its task; for one that has ended, this is the final check."""
        try:
            report = os.read(held.report, _REPORT_BYTES)
        except BlockingIOError:
            return False
        with suppress(OSError):
            self._reports.unregister(held.report)
        os.close(held.report)
        held.report, held.is_staging = -1, False
        self._staging.remove(held)
        if report:
            held.problem = problem_in(report)
            if held.process in self._leaders:
                # Whatever it reported, it never becomes the task.
                signal_group(held.process, signal.SIGKILL)
        return not report
