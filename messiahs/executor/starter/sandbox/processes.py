"""Tasks in sandboxes: each runs alone in a slot, whose zygote has prepared everything before.

A slot belongs to one account, number by number of the range that the administrator gives, or to an account of the
host that the policy names. It is used again once the kernel has shown that none of its processes is left, and
everything that its task could write to is gone, for tasks with the same network. One with an image, connections,
devices or an account of the host ends.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import assert_never

from msgspec.structs import replace

from messiahs.config.device_files import device_at
from messiahs.core.interface.causes import Cause
from messiahs.core.model.terms import narrower_of
from messiahs.executor.attempt_values import Start
from messiahs.executor.attempts import NEVER, Held, NotSpawned
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.linux.local_accounts import account_for_tasks
from messiahs.executor.linux.strays import Children
from messiahs.executor.protocol.layout import ATTEMPTS, WORK
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.process_groups import next_dead
from messiahs.executor.starter.process_trees import descendants_of, resident_bytes_below
from messiahs.executor.starter.sandbox.environments import variables_of, why_not_usable
from messiahs.executor.starter.sandbox.images import Images, Unpacked, Waiting
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
from messiahs.executor.starter.sandbox.slot import Slot
from messiahs.executor.starter.sandbox.slots import Site, Slots, Special
from messiahs.executor.starter.sandbox.view import SYSTEM, shown_folders
from messiahs.executor.starter.sandbox.zygote import INPUTS
from messiahs.executor.starter.staging import is_quick
from messiahs.executor.starter.task_processes import Exited, Staged

_PATIENCE_NS = 10_000_000_000
"""How long killed processes may take to end before their zygote is killed, and how long it may take after that."""
_STOP_AGAIN_NS = 1_000_000_000
_TEXT_LETTERS = 300
_STUCK = "a process of the task was killed and is not gone"
_NEVER_SET_UP = "its sandbox cannot be set up: "
_BROKEN = "the sandbox of the task ended"


class SandboxedProcesses:
    """The attempts in slots (mutable), and those that wait for their images and environments."""

    def __init__(self, site: Site, *, pool: Pool, children: Children, images: Images) -> None:
        self._site, self._pool, self._children, self._images = site, pool, children, images
        self._slots = Slots(site, pool=pool, children=children, images=images)
        self._busy: dict[str, Slot] = {}
        self._stuck: list[Slot] = []
        self._early: list[tuple[Slot, ToStarter]] = []
        """What zygotes sent while the starter waited for something else."""
        self._given_up: list[Exited] = []
        """Attempts that were to end while they waited for their image."""
        self._cleared: list[tuple[Held, str]] = []
        self._suspended: dict[str, int] = {}

    @property
    def degraded(self) -> str:
        """Nothing is: a slot that cannot be set up is not used."""
        return ""

    @property
    def room(self) -> int:
        """The slots without an attempt, and without one that waits for its image."""
        return max(0, self._slots.room - self._images.waiting)

    def try_out(self) -> str:
        """Return why no slot can be set up here; empty if one can, which then waits for an attempt."""
        return self._slots.try_out()

    @property
    def must_show_files(self) -> bool:
        """Whether the starter lacks the right to see them anyway is said by `degraded`."""
        return False

    def fileno(self) -> int:
        """Return a descriptor that is readable when a zygote has sent something."""
        return self._slots.fileno()

    def account(self, start: Start) -> int:
        """Return the account of the next slot with the network of an attempt, which waits for one then.

        Raises `OSError`.
        """
        return self._slots.next_account(self._narrowed(start))

    def start(self, held: Held, taken: Taken) -> NotSpawned | None:
        """Let a slot start the task, when its image is there if it has one."""
        assert held.start is not None
        if held.start.archive is None:
            slot = self._slot_for(held.start)
            return slot if isinstance(slot, NotSpawned) else self._start_in(slot, held, taken)
        self._images.ask(held, taken)
        held.is_staging = True
        return None

    def _slot_for(self, start: Start, archive: Unpacked | None = None) -> Slot | NotSpawned:
        """Return a slot for a task, or why its environment or account of the host cannot be used now.

        Raises `OSError`.
        """
        if archive is not None and archive.environment is not None:
            seen = shown_folders(self._site.view)
            problem = why_not_usable(archive.environment, seen=seen, whole=SYSTEM)
            if problem is not None:
                return problem
        account = account_for_tasks(start.account, others=self._site.others) if start.account else None
        if isinstance(account, str):
            # Its origin reads this, and need not know the name.
            text = f"the account that the machine's policy gives the task cannot be used: {account}"
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)
        devices = tuple(map(device_at, start.devices))
        return self._slots.take(
            Special(archive=archive, account=account, network=self._narrowed(start), devices=devices)
        )

    def _narrowed(self, start: Start) -> str:
        """Return the network of a task if it is narrower than the machine's, which none exceeds; else empty."""
        network = narrower_of(start.network, self._site.network) if start.network else self._site.network
        return "" if network == self._site.network else network

    def _start_in(self, slot: Slot, held: Held, taken: Taken, archive: Unpacked | None = None) -> NotSpawned | None:
        """Let the zygote of a slot start the task, whose folder belongs to the account of that slot."""
        assert held.start is not None
        held.slot = slot.number
        try:
            if slot.is_for_one:
                # They were prepared for another slot.
                os.chown(f"{taken.folder}/{WORK}", slot.uid, slot.account.gid)
                for log in (taken.stdout, taken.stderr):
                    os.fchown(log, slot.uid, slot.account.gid)
            slot.work.begin()
            self._site.groups.begin(held)
            stdin = () if taken.stdin is None else (taken.stdin,)
            run = Run(start=_within(held.start, archive, self._site), has_stdin=bool(stdin))
            slot.send(run, (taken.stdout, taken.stderr, *stdin))
        except Exception as error:  # noqa: BLE001 - as in the runner
            slot.end()
            self._site.groups.release(held)
            self._return_folder(slot, held)
            # A slot that cannot be set up has perhaps ended already.
            said = next((_NEVER_SET_UP + each.text for each in slot.received() if isinstance(each, Unusable)), "")
            text = said or f"the task cannot be set up: {error}"
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)
        slot.held, slot.has_exited, slot.killed_at = held, False, 0
        held.uid, held.is_staging = slot.uid, not is_quick(held.start.inputs)
        self._busy[held.folder] = slot
        return None

    def events(self) -> Iterator[Staged | Exited]:
        """Take what the zygotes have sent, and reap those that ended."""
        given_up, self._given_up = self._given_up, []
        yield from given_up
        early, self._early = self._early, []
        for slot, message in early:
            yield from self._taken(slot, message)
        for slot, message in self._slots.received():
            yield from self._taken(slot, message)
        while (info := next_dead()) is not None:
            os.waitpid(info.si_pid, 0)
            self._children.reaped(info.si_pid)
            if info.si_pid == self._pool.remover:
                self._pool.removed()
            elif info.si_pid == self._pool.unpacker:
                self._images.unpacked()
            elif (lost := self._slots.reaped(info.si_pid)) is not None:
                yield from self._left(lost, lost.problem or _BROKEN)
            else:
                self._slots.cut_off(info.si_pid)
        while self._stuck:
            yield from self._left(self._stuck.pop(), _STUCK)
        for waiting, archive in self._images.ready():
            yield from self._entered(waiting, archive)

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
        self._give_up_waiting(held, signal.SIGTERM)
        self._tell(held, Terminate())

    def kill(self, held: Held) -> None:
        """Let the zygote kill everything in the slot; if it does not, it is killed itself."""
        self._give_up_waiting(held, signal.SIGKILL)
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
        """When processes must be stopped again, a zygote does not react, or images may have become old."""
        if self._early or self._given_up or self._images.has_ready:
            return 0
        killed = (slot.killed_at + _PATIENCE_NS for slot in self._busy.values() if slot.killed_at)
        return min(*self._suspended.values(), *killed, self._images.due_at, NEVER)

    def step(self, now: int) -> None:
        """Stop suspended attempts again, end zygotes whose processes do not end, and drop old images."""
        if now < self.due_at:
            return
        self._images.step(now)
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

    def processes(self, held: Held) -> Iterator[bytes]:
        """Yield everything below the zygote of the slot, which is the init of all of it."""
        slot = self._busy.get(held.folder)
        name = None if slot is None else self._children.name_of(slot.zygote)
        return iter(()) if name is None else descendants_of(name)

    def forget(self, held: Held) -> None:
        """Nothing is remembered of an attempt that has left its slot."""

    def _entered(self, waiting: Waiting, archive: Unpacked | NotSpawned) -> Iterator[Staged | Exited]:
        """Start an attempt with its archive, in a slot of its own, or end it because there is none."""
        held, problem, now = waiting.held, None, boottime_ns()
        try:
            if isinstance(archive, NotSpawned):
                problem = archive
            else:
                assert held.start is not None
                slot = self._slot_for(held.start, archive)
                if isinstance(slot, NotSpawned):
                    problem = slot
                    self._images.release(archive.digest)
                else:
                    problem = self._start_in(slot, held, waiting.taken, archive)
        except Exception as error:  # noqa: BLE001 - one attempt that cannot start must not end all others
            text = f"the task cannot be set up: {error}"[:_TEXT_LETTERS]
            problem = NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=text)
            if isinstance(archive, Unpacked):
                self._images.release(archive.digest)
        finally:
            waiting.taken.close()
        if problem is not None:
            held.problem = problem
            self._cleared.append((held, problem.text))
            yield Exited(held)
        else:
            if not held.is_staging:
                yield Staged(held, now)
            if held.suspended_at:
                self.suspend(held)

    def _give_up_waiting(self, held: Held, number: int) -> None:
        if self._images.give_up(held):
            self._given_up.append(Exited(held, None, number))
            self._cleared.append((held, ""))

    def _taken(self, slot: Slot, message: ToStarter) -> Iterator[Staged | Exited]:
        held = slot.held
        match message:
            case Ready() | Stopped():
                pass
            case Unusable():
                slot.problem, slot.cause = message.text, message.cause
                if message.cause is Cause.SPAWN_FAILED:
                    slot.problem = _NEVER_SET_UP + message.text
            case Became() if held is not None:
                held.is_staging = False
                yield Staged(held, boottime_ns())
            case Left() if held is not None:
                slot.has_exited, slot.killed_at, held.usage = True, boottime_ns(), message.usage
                if message.cause:
                    held.problem = NotSpawned(cause=message.cause, exit_code=message.exit_code, text=message.text)
                yield Exited(held, message.exit_code, message.signal)
            case Cleared() if held is not None:
                slot.is_spent = message.is_spent
                self._empty(
                    slot, held, "" if held.problem is None else held.problem.text, was_alone=not message.is_spent
                )
                self._slots.give_back(slot)
            case Became() | Left() | Cleared():
                # Its attempt was given up.
                pass
            case _:
                assert_never(message)

    def _left(self, slot: Slot, text: str) -> Iterator[Exited]:
        """End the attempt of a slot, if any, without its zygote."""
        held = slot.held
        if held is not None:
            if not slot.has_exited:
                held.cause = held.cause or slot.cause
                yield Exited(held, None, signal.SIGKILL)
            self._empty(slot, held, text)

    def _empty(self, slot: Slot, held: Held, text: str, *, was_alone: bool = False) -> None:
        self._return_folder(slot, held, was_alone=was_alone and not slot.is_for_one)
        self._cleared.append((held, text))
        del self._busy[held.folder]
        self._suspended.pop(held.folder, None)
        slot.held, slot.killed_at = None, 0

    def _return_folder(self, slot: Slot, held: Held, *, was_alone: bool = False) -> None:
        if was_alone:
            self._pool.note_alone(held.folder)
        try:
            slot.work.end(f"{self._pool.root}/{ATTEMPTS}/{held.folder}/{WORK}", is_alone=was_alone)
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


def _within(start: Start, archive: Unpacked | None, site: Site) -> Start:
    """Return what is started in a slot, with the variables of its image below its own, or those of its environment.

    Inputs are read through the zygote's open folder, because tasks do not see where they are.
    """
    if archive is not None:
        env = (*archive.variables, *start.env)
        if archive.environment is not None:
            env += variables_of(archive.environment, dict(start.env).get("PATH", site.path))
        start = replace(start, env=env, archive=None)
    if not start.inputs or site.inputs is None:
        return start
    # Below that folder is one whose name is no argument of this process, which every account could read.
    inputs = tuple(
        replace(one, source=f"{INPUTS}/{PurePath(one.source).relative_to(site.inputs)}") if one.source else one
        for one in start.inputs
    )
    return replace(start, inputs=inputs)
