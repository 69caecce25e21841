"""The simulated host of one module: the daemon's driver and host in virtual time.

Rows of a batch are committed before its other actions are performed; actions that arrive during a commit form the next
batch. A crash, which may come between any two actions or in the middle of a commit, loses everything but disk and
machine.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Never

from messiahs.config.topology.reach import is_border, is_dialable
from messiahs.core import queries
from messiahs.core.interface.actions import (
    Action,
    DiscardAttempt,
    DropLink,
    Effect,
    EndAttempt,
    EndFetch,
    ExtendLease,
    FetchOutputs,
    Forget,
    Link,
    MeasureAttempts,
    Readmit,
    RefuseTransfer,
    ResumeAttempt,
    SendControl,
    SendTasks,
    SendVector,
    ShutOff,
    StartAttempt,
    Store,
    SuspendAttempt,
    TakeOutputs,
    Unlink,
)
from messiahs.core.interface.batches import Batch, Batches
from messiahs.core.interface.events import Event, Measured, PolicyChanged
from messiahs.core.interface.parts import Policy
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import Epoch, IdsGiven, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from messiahs.core.state.module import Identity, ModuleState
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.probe.contract import KEYBOARD_IDLE
from messiahs.sim.hosts.machine import MachineParts, RunTimes, SimulatedMachine
from messiahs.sim.hosts.reading import answer_read
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.agenda import Agenda
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.connections import Connections
from messiahs.sim.world.console import Console
from messiahs.sim.world.disk import Disk
from messiahs.sim.world.observer import Watcher
from messiahs.sim.world.randomness import SeededRandomness
from messiahs.sim.world.sites import border_key_of, key_of
from messiahs.sim.world.task_channel import Answer, Passing, Read, TaskNetwork

_RETRY_NS = 1 * SECOND
_PERFORMED_AT_MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The shared parts of a federation; `committed` and `acted` are called with what a host stores and performs."""

    agenda: Agenda
    conditions: Conditions
    connections: Connections
    tasks: TaskNetwork
    watcher: Watcher
    run_times: RunTimes
    seed: int
    committed: Callable[[SystemId, Sequence[Store | Forget]], None]
    acted: Callable[[SystemId, Effect], None]


class SimulatedHost:
    """A module with its disk and machine (mutable); `life` counts the starts of its daemon."""

    def __init__(self, system: SimulatedSystem, around: Surroundings) -> None:
        self.system = system
        self.disk = Disk()
        self.console = Console()
        self.events = 0
        self.life = 0
        self._first_epoch = Epoch(1)
        self.is_up = False
        self.module = self._new_module(around)
        """The state of the daemon; of one that is down, its last state."""
        self._around = around
        self.machine = self._new_machine() if system.machine is not None else None
        self._inbox: deque[Event] = deque()
        self._batches = Batches[Never]()
        self._is_busy = self._is_paused = self._is_commit_due = False
        self._performs_left: int | None = None
        self._forgotten: IdsGiven | None = None
        """The ids issued after a restored copy of the database, according to the mark beside it."""
        self._wakes_at: Instant | None = None

    def now(self) -> Instant:
        """Return the time of the host's own clock."""
        return self.system.clock.read(self._around.agenda.now)

    @property
    def epoch(self) -> Epoch:
        """The epoch in which the module issues ids."""
        return queries.epoch_of(self.module.state)

    def start(self, *, has_rebooted: bool = False) -> None:
        """Start the daemon, from its rows and from the attempts on its machine."""
        assert not self.is_up
        if self.life:
            self.module = self._new_module(self._around)
        self.life += 1
        if has_rebooted:
            self._step_clock()
        self.is_up, self._is_busy = True, True
        running = self.machine.known() if self.machine is not None else ()
        if self.machine is not None:
            self.machine.report = self.post
        rows, forgotten, self._forgotten = tuple(self.disk.live_rows()), self._forgotten, None
        remains = Remains(
            rows=rows, running=running, has_rebooted=has_rebooted, forgotten=forgotten, stored_at=self.disk.newest
        )
        self._around.connections.configure(self.system.name)
        self._take(self.module.resume(remains, self.now()))
        self._is_busy = False
        self.measure()
        self._around.connections.start(self.system.name, refused=queries.summary_of(self.module.state).shut_off)
        self._wake_later()

    def measure(self) -> None:
        """Post the description of the machine, and the idle time of its console."""
        if self.system.machine is not None:
            idle = self.console.idle_seconds(self._around.agenda.now)
            here = self.system.machine.description() | ({} if idle is None else {KEYBOARD_IDLE: idle})
            self.post(Measured(sdv=SDV(sorted_pairs(here)), counted=self.system.counted))

    def load_policy(self, policy: Policy) -> None:
        """Replace the policy; a daemon that is down reads the new one when it starts."""
        self.system = replace(self.system, policy=policy)
        self.post(PolicyChanged(policy=policy))

    def crash(self, *, with_machine: bool = False) -> None:
        """End the daemon at once; a commit in progress may or may not complete."""
        if self.is_up:
            batch = self._batches.storing
            if batch is not None and batch.writes and not self.disk.is_full and self._around.conditions.happens(50):
                self._write(batch)
            self.is_up = False
            self.life += 1
            self._inbox.clear()
            self._batches, self._is_paused, self._is_commit_due = Batches(), False, False
            self._performs_left = self._wakes_at = None
            if self.machine is not None:
                self.machine.report = None
            self._around.connections.end_of(self.system.name, with_machine=with_machine)
            self._around.tasks.end_of(self.system.name)
        if with_machine and self.machine is not None:
            self.machine.lose_starter()

    def crash_soon(self) -> None:
        """Crash before one of the next actions is performed."""
        self._performs_left = self._around.conditions.up_to(_PERFORMED_AT_MOST)

    def cancel_crash(self) -> None:
        """Cancel `crash_soon`, if the crash has not happened."""
        self._performs_left = None

    def wipe(self) -> None:
        """Delete the state directory of a daemon that is down; its successor has a new epoch."""
        assert not self.is_up
        self.disk.wipe()
        self._first_epoch = Epoch(self._first_epoch + 1)
        if self.machine is not None:
            self.machine.wipe()

    def restore_database(self) -> None:
        """Replace the database of a daemon that is down by an older copy; the mark beside it stays."""
        assert not self.is_up
        self.disk.restore()
        self._forgotten = queries.ids_given(self.module.state)

    def pause(self) -> None:
        """Pause the daemon; events wait."""
        self._is_paused = True

    def unpause(self) -> None:
        """Continue a paused daemon."""
        if self._is_paused:
            self._is_paused = False
            if self._is_commit_due:
                self._is_commit_due = False
                self._commit()
            if self.is_up:
                self._turn()
            if self.is_up:
                self._expire()

    def post(self, event: Event) -> None:
        """Post an event to the module, after those in progress; while the daemon is down, events are lost."""
        if self.is_up:
            self._inbox.append(event)
            if not self._is_busy and not self._is_paused:
                self._turn()

    def answer_read(self, read: Read | Passing, /) -> Answer:
        """Answer a peer that reads outputs, or whose connection is passed on; None if the daemon is down or paused."""
        return answer_read(self.module, self.machine, read) if self.is_up and not self._is_paused else None

    def _turn(self) -> None:
        self._is_busy = True
        life = self.life
        while self._inbox and self.life == life and not self._is_paused:
            event = self._inbox.popleft()
            self.events += 1
            self._around.watcher.happened(self.system.name, event)
            self._take(self.module.handle(event, self.now()))
        self._is_busy = False
        self._wake_later()

    def _expire(self) -> None:
        self.events += 1
        self._is_busy = True
        now = self.now()
        actions: list[Action] = []
        while (deadline := self.module.next_deadline()) is not None and deadline <= now:
            actions += self.module.expire(now)
        self._take(tuple(actions))
        self._turn()

    def _take(self, actions: tuple[Action, ...]) -> None:
        self._around.watcher.handled(self.module.state)
        self._batches.add(actions)
        self._flush()

    def _flush(self) -> None:
        batch = self._batches.begin()
        if batch is None:
            return
        conditions = self._around.conditions
        if batch.writes and (conditions.commit_ns or self.disk.is_full):
            self._later(conditions.up_to(conditions.commit_ns), self._commit)
            return
        self._write(batch)
        self._batches.on_stored()
        self._perform_all(batch.effects)

    def _commit(self) -> None:
        batch = self._batches.storing
        assert batch is not None
        if self._is_paused:
            self._is_commit_due = True
            return
        if self.disk.is_full:
            change = self._batches.on_failed()
            if change is not None:
                self.post(change)
            self._later(_RETRY_NS, self._commit)
            return
        self._write(batch)
        change = self._batches.on_stored()
        if change is not None:
            # Handled after this batch: its results belong to the next one.
            self._inbox.append(change)
        was_busy, self._is_busy = self._is_busy, True
        self._perform_all(batch.effects)
        self._is_busy = was_busy
        if self.is_up:
            self._flush()
            if not self._is_paused:
                self._turn()

    def _write(self, batch: Batch[Never]) -> None:
        if batch.writes:
            self.disk.commit(batch.writes, self.now())
            self._around.committed(self.system.name, batch.writes)

    def _perform_all(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if self._performs_left is not None:
                if not self._performs_left:
                    self.crash()
                    return
                self._performs_left -= 1
            self._around.acted(self.system.name, effect)
            self._perform(effect)

    def _perform(self, action: Effect) -> None:
        around, name = self._around, self.system.name
        match action:
            case SendControl():
                around.connections.send_control(name, action.to, action.message)
            case SendVector():
                around.connections.send_vector(name, action.to, action.message)
            case SendTasks():
                around.tasks.send(name, action)
            case (
                StartAttempt()
                | EndAttempt()
                | SuspendAttempt()
                | ResumeAttempt()
                | MeasureAttempts()
                | ExtendLease()
                | DiscardAttempt()
            ):
                assert self.machine is not None, "only a system with a machine grants claims"
                self.machine.perform(action)
            case RefuseTransfer():
                around.tasks.refuse(name, action)
            case FetchOutputs():
                around.tasks.fetch(name, action)
            case TakeOutputs():
                around.tasks.take(name, action)
            case EndFetch():
                around.tasks.end_fetch(name, action.attempt)
            case DropLink():
                around.connections.drop(name, action.neighbor)
            case Link():
                around.connections.link(name, action.neighbor.system, dials=bool(action.address))
            case Unlink():
                around.connections.unlink(name, action.neighbor)
            case ShutOff() | Readmit():
                around.connections.admit(name, action.neighbor, is_off=isinstance(action, ShutOff))

    def _step_clock(self) -> None:
        """Step the clock of a machine that was off; like the daemon's, it is not behind the last commit."""
        around = self._around
        self.system.clock.step(around.agenda.now, step_ns=around.conditions.clock_step(), lowest=self.disk.newest)

    def _wake_later(self) -> None:
        if not self.is_up:
            return
        deadline = self.module.next_deadline()
        if deadline is None or (self._wakes_at is not None and self._wakes_at <= deadline):
            return
        self._wakes_at = deadline
        self._later(self.system.clock.delay_until(deadline, self._around.agenda.now), partial(self._wake, deadline))

    def _wake(self, deadline: Instant) -> None:
        if self._wakes_at == deadline:
            self._wakes_at = None
        due = self.module.next_deadline()
        if due is not None and due > self.now():
            # The timeout was postponed.
            self._wake_later()
        elif not self._is_paused:
            self._expire()

    def _later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call, unless the daemon has ended by then."""
        life = self.life

        def unless_gone() -> None:
            if self.life == life and self.is_up:
                happen()

        self._around.agenda.later(delay_ns, unless_gone)

    def _new_module(self, around: Surroundings) -> SchedulingModule:
        system, life = self.system, f"/{self.life}" if self.life else ""
        state = ModuleState(
            identity=Identity(
                system=system.name,
                epoch=self._first_epoch,
                address=f"{system.name}:1" if is_dialable(system) else "",
                trust=system.trust,
                apart=tuple(system.apart),
                apart_roots=tuple(system.apart.values()),
                other_sites=system.other_sites,
                maxima=system.maxima,
                key=key_of(system.name),
                border_key=border_key_of(system.name, self._first_epoch) if is_border(system) else b"",
            ),
            neighbors={neighbor.system: neighbor for neighbor in system.neighbors},
            policy=system.policy,
            parse=predicate_parser,
            randomness=SeededRandomness(f"{around.seed}/{system.name}{life}"),
        )
        return SchedulingModule(state)

    def _new_machine(self) -> SimulatedMachine:
        around = self._around
        parts = MachineParts(
            system=self.system.name,
            agenda=around.agenda,
            clock=self.system.clock,
            disk=self.disk,
            conditions=around.conditions,
            watcher=around.watcher,
            run_times=around.run_times,
        )
        return SimulatedMachine(parts)
