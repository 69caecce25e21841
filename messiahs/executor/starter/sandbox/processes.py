"""Tasks in sandboxes: each runs alone in a slot, whose zygote has prepared everything before.

A slot belongs to one account, number by number of the range that the administrator gives. It is used again once the
kernel has shown that none of its processes is left, and everything that its task could write to is gone.
"""

import errno
import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from pathlib import PurePath
from typing import assert_never

from msgspec.structs import replace

from messiahs.config.settings import OUTBOUND
from messiahs.core.interface.causes import Cause
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import NEVER, Held, NotSpawned
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.strays import Children
from messiahs.executor.linux.uid_locks import lock_uid
from messiahs.executor.protocol.layout import ATTEMPTS, SLOTS, WORK
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.process_groups import next_dead
from messiahs.executor.starter.process_trees import resident_bytes_below
from messiahs.executor.starter.sandbox.messages import (
    Became,
    Cleared,
    Continue,
    Kill,
    Left,
    Ready,
    Run,
    Stop,
    Stopped,
    Terminate,
    ToStarter,
    Unusable,
)
from messiahs.executor.starter.sandbox.outbound import Joining, OutboundNetworks, close_files
from messiahs.executor.starter.sandbox.slot import Slot, open_slot
from messiahs.executor.starter.sandbox.view import View
from messiahs.executor.starter.sandbox.work_folder import WorkFolder
from messiahs.executor.starter.sandbox.zygote import HOST, INPUTS, Plan
from messiahs.executor.starter.staging import is_quick
from messiahs.executor.starter.task_groups import TaskGroups
from messiahs.executor.starter.task_processes import Exited, Staged

_PATIENCE_NS = 10_000_000_000
"""How long killed processes may take to end before their zygote is killed, and how long it may take after that."""
_STOP_AGAIN_NS = 1_000_000_000
_TRIAL_SECONDS = 15.0
_STUCK = "a process of the task was killed and is not gone"
_BROKEN = "the sandbox of the task ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all slots of a machine share; slot n has the account `uids[n]`.

    `groups` has a control group for each slot, in which its zygote and tasks are.
    """

    uids: range
    view: View
    network: str
    path: str
    inputs: str | None
    groups: TaskGroups


class SandboxedProcesses:
    """Slots and the attempts in them (mutable).

    `_slots` has every slot whose zygote is not reaped yet, by the zygote's number; `_idle` those that take an attempt;
    `_free` the numbers of all others, the lowest first.
    """

    def __init__(self, site: Site, *, pool: Pool, children: Children) -> None:
        self._site, self._pool, self._children = site, pool, children
        self._slots: dict[int, Slot] = {}
        self._by_link: dict[int, Slot] = {}
        self._busy: dict[str, Slot] = {}
        self._idle: list[Slot] = []
        self._free = list(range(len(site.uids)))
        heapify(self._free)
        self._stuck: list[Slot] = []
        self._early: list[tuple[Slot, ToStarter]] = []
        """What zygotes sent while the starter waited for something else."""
        self._cleared: list[tuple[Held, str]] = []
        self._suspended: dict[str, int] = {}
        self._links = select.epoll()
        self._networks = OutboundNetworks(site.path)

    @property
    def degraded(self) -> str:
        """Nothing is: a slot that cannot be set up is not used."""
        return ""

    @property
    def room(self) -> int:
        """The slots without an attempt."""
        return len(self._idle) + len(self._free)

    def try_out(self) -> str:
        """Return why no slot can be set up here; empty if one can, which then waits for an attempt."""
        try:
            slot = self._opened()
        except OSError as error:
            return error.strerror or str(error)
        self._links.poll(_TRIAL_SECONDS)
        match slot.received():
            case [Ready(), *_]:
                self._idle.append(slot)
                return ""
            case [Unusable(text), *_]:
                return text
            case _:
                slot.end()
                return "the first slot gives no sign"

    def fileno(self) -> int:
        """Return a descriptor that is readable when a zygote has sent something."""
        return self._links.fileno()

    def account(self) -> int:
        """Return the account of the next slot, which waits for an attempt then. Raises `OSError`."""
        if not self._idle:
            self._idle.append(self._opened())
        return self._idle[-1].uid

    def start(self, held: Held, taken: Taken) -> NotSpawned | None:
        """Let the zygote of the next slot start the task, whose folder belongs to the account of that slot."""
        assert held.start is not None
        slot = self._idle.pop()
        held.slot = slot.number
        try:
            slot.work.begin()
            self._site.groups.begin(held)
            stdin = () if taken.stdin is None else (taken.stdin,)
            run = Run(start=_with_inputs(held.start), has_stdin=bool(stdin))
            slot.send(run, (taken.stdout, taken.stderr, *stdin))
        except OSError as error:
            slot.end()
            self._site.groups.release(held)
            self._return_folder(slot, held)
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"the task cannot be set up: {error}")
        slot.held, slot.has_exited, slot.killed_at = held, False, 0
        held.uid, held.is_staging = slot.uid, not is_quick(held.start.inputs)
        self._busy[held.folder] = slot
        return None

    def events(self) -> Iterator[Staged | Exited]:
        """Take what the zygotes have sent, and reap those that ended."""
        early, self._early = self._early, []
        for slot, message in early:
            yield from self._taken(slot, message)
        for link, _ in self._links.poll(0):
            slot = self._by_link[link]
            for message in slot.received():
                yield from self._taken(slot, message)
            if slot.is_closed:
                self._links.unregister(link)
                del self._by_link[link]
        while (info := next_dead()) is not None:
            os.waitpid(info.si_pid, 0)
            self._children.reaped(info.si_pid)
            if info.si_pid == self._pool.remover:
                self._pool.removed()
            elif (slot_of := self._slots.pop(info.si_pid, None)) is not None:
                yield from self._lost(slot_of)
            elif (text := self._networks.reaped(info.si_pid)) is not None:
                self._cut_off(info.si_pid, text)
        while self._stuck:
            yield from self._left(self._stuck.pop(), _STUCK)

    def cleared(self) -> Iterator[tuple[Held, str]]:
        """Yield the attempts whose slots are empty."""
        cleared, self._cleared = self._cleared, []
        for held, text in cleared:
            yield held, self._site.groups.end(held, text)

    @property
    def is_clearing(self) -> bool:
        """Nothing is: zygotes tell when they are done."""
        return bool(self._cleared)

    def terminate(self, held: Held) -> None:
        """Let the zygote signal the group."""
        self._tell(held, Terminate())

    def kill(self, held: Held) -> None:
        """Let the zygote kill everything in the slot; if it does not, it is killed itself."""
        self._tell(held, Kill())
        slot = self._busy.get(held.folder)
        if slot is not None:
            slot.killed_at = boottime_ns()

    def suspend(self, held: Held) -> None:
        """Stop everything in the slot, and again from time to time: an administrator could let it run."""
        slot = self._busy.get(held.folder)
        if slot is not None:
            self._early += ((slot, message) for message in slot.stop())
            self._suspended[held.folder] = boottime_ns() + _STOP_AGAIN_NS

    def resume(self, held: Held) -> None:
        """Let everything in the slot run."""
        self._suspended.pop(held.folder, None)
        self._tell(held, Continue())

    @property
    def due_at(self) -> int:
        """When processes must be stopped again, or a zygote does not react."""
        if self._early:
            return 0
        killed = (slot.killed_at + _PATIENCE_NS for slot in self._busy.values() if slot.killed_at)
        return min(*self._suspended.values(), *killed, NEVER, NEVER)

    def step(self, now: int) -> None:
        """Stop suspended attempts again, and end zygotes whose processes do not end."""
        if now < self.due_at:
            return
        for folder, due in list(self._suspended.items()):
            if due <= now:
                self._suspended[folder] = now + _STOP_AGAIN_NS
                self._busy[folder].tell(Stop())
        for slot in list(self._busy.values()):
            if slot.killed_at and slot.killed_at + _PATIENCE_NS <= now:
                self._give_up(slot, now)

    def memory_bytes(self, running: Sequence[Held]) -> list[int]:
        """Add up the memory of all processes of each slot."""
        names = {}
        with suppress(OSError):
            names = {child.number: name for name, child in self._children.known().items()} if running else {}
        slots = [self._busy.get(held.folder) for held in running]
        zygotes = [None if slot is None else names.get(slot.zygote) for slot in slots]
        return [0 if zygote is None else resident_bytes_below(zygote) for zygote in zygotes]

    def forget(self, held: Held) -> None:
        """Nothing is remembered of an attempt that has left its slot."""

    def _opened(self) -> Slot:
        number, lock = self._taken_number()
        folder = f"{self._pool.root}/{SLOTS}/{number}"
        try:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
            os.chmod(folder, 0o711)  # noqa: PTH101, S103 - its task passes through it
            slot = self._begun(number, folder, lock)
        except OSError:
            os.close(lock)
            heappush(self._free, number)
            raise
        self._pool.expect(slot.uid)
        self._slots[slot.zygote] = self._by_link[slot.link.fileno()] = slot
        self._links.register(slot.link, select.EPOLLIN)
        return slot

    def _begun(self, number: int, folder: str, lock: int) -> Slot:
        """Start the zygote of a slot, and what its network needs, with an empty folder. Raises `OSError`."""
        uid, groups = self._site.uids[number], self._site.groups.entries(number)
        work = WorkFolder(path=f"{folder}/{WORK}", account=uid, is_kept=self._site.network != HOST)
        self._pool.dispose_of(work.path)
        work.prepare()
        process = 0
        network: str | Joining = self._site.network
        if network == OUTBOUND:
            process, network = self._networks.open(uid, groups)
        plan = Plan(
            uid=uid,
            folder=folder,
            view=self._site.view,
            network=network,
            path=self._site.path,
            inputs=self._site.inputs,
            groups=groups,
        )
        try:
            slot = open_slot(number, plan, work=work, lock=lock)
        except OSError:
            self._networks.end(process)
            raise
        finally:
            if isinstance(network, Joining):
                close_files(network)
        slot.network = process
        return slot

    def _taken_number(self) -> tuple[int, int]:
        """Take the lowest free number whose account no other starter of the machine uses; return it with its lock."""
        others: list[int] = []
        try:
            while self._free:
                number = heappop(self._free)
                lock = lock_uid(self._site.uids[number])
                if lock is not None:
                    return number, lock
                others.append(number)
        finally:
            for other in others:
                heappush(self._free, other)
        raise BlockingIOError(errno.EAGAIN, "other modules of this machine use all accounts of tasks")

    def _taken(self, slot: Slot, message: ToStarter) -> Iterator[Staged | Exited]:
        held = slot.held
        match message:
            case Ready() | Stopped():
                pass
            case Unusable():
                slot.problem = message.text
            case Became() if held is not None:
                held.is_staging = False
                yield Staged(held)
            case Left() if held is not None:
                slot.has_exited, slot.killed_at, held.usage = True, boottime_ns(), message.usage
                if message.cause:
                    held.problem = NotSpawned(cause=message.cause, exit_code=message.exit_code, text=message.text)
                yield Exited(held, message.exit_code, message.signal)
            case Cleared() if held is not None:
                self._empty(slot, held, "" if held.problem is None else held.problem.text)
                if slot.network:
                    # Its connections outlive the task, and would be those of the next one.
                    slot.end()
                else:
                    self._idle.append(slot)
            case Became() | Left() | Cleared():
                # Its attempt was given up.
                pass
            case _:
                assert_never(message)

    def _lost(self, slot: Slot) -> Iterator[Exited]:
        """Note that a zygote was reaped: nothing of the slot is left, and its number is free."""
        slot.link.close()
        os.close(slot.lock)
        self._networks.end(slot.network)
        if slot in self._idle:
            self._idle.remove(slot)
        heappush(self._free, slot.number)
        yield from self._left(slot, slot.problem or _BROKEN)

    def _cut_off(self, process: int, text: str) -> None:
        """End the slot whose network has ended: no task runs without the network that it was promised."""
        for slot in self._slots.values():
            if slot.network == process:
                slot.problem = slot.problem or f"the network of the sandbox ended: {text}"
                slot.end()

    def _left(self, slot: Slot, text: str) -> Iterator[Exited]:
        """End the attempt of a slot, if any, without its zygote."""
        held = slot.held
        if held is not None:
            if not slot.has_exited:
                held.cause = held.cause or Cause.LOST
                yield Exited(held, None, signal.SIGKILL)
            self._empty(slot, held, text)

    def _empty(self, slot: Slot, held: Held, text: str) -> None:
        self._return_folder(slot, held)
        self._cleared.append((held, text))
        del self._busy[held.folder]
        self._suspended.pop(held.folder, None)
        slot.held, slot.killed_at = None, 0

    def _return_folder(self, slot: Slot, held: Held) -> None:
        try:
            slot.work.end(f"{self._pool.root}/{ATTEMPTS}/{held.folder}/{WORK}")
        except OSError:
            # Somebody has removed the folder of the attempt, or the disk is full.
            with suppress(OSError):
                slot.work.dispose(self._pool)

    def _give_up(self, slot: Slot, now: int) -> None:
        """Kill a zygote whose processes do not end; if it does not end either, its attempt ends without it."""
        if slot.is_given_up:
            self._stuck.append(slot)
        slot.end()
        slot.is_given_up, slot.killed_at = True, now

    def _tell(self, held: Held, message: Terminate | Kill | Stop | Continue) -> None:
        slot = self._busy.get(held.folder)
        if slot is not None:
            slot.tell(message)


def _with_inputs(start: Start) -> Start:
    """Let inputs be read through the zygote's open folder, because tasks do not see where they are."""
    if not start.inputs:
        return start
    inputs = tuple(
        replace(one, source=f"{INPUTS}/{PurePath(one.source).name}") if one.source else one for one in start.inputs
    )
    return replace(start, inputs=inputs)
