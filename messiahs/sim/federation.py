"""A federation in virtual time: the same cores as in the daemons, with a network, machines and a disk of its own.

Every message passes through the codec and every row through its stored format. Nothing here reads a clock: one seed
gives one run, on any machine and under any hash seed.
"""

import hashlib
import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from messiahs.core.actions import (
    Action,
    Answer,
    DiscardAttempt,
    EndAttempt,
    ExtendLease,
    FetchOutputs,
    Forget,
    SendControl,
    SendTasks,
    SendVector,
    StartAttempt,
    Store,
    TaskEnded,
)
from messiahs.core.descriptions import SDV
from messiahs.core.events import (
    ControlReceived,
    Event,
    LinkUp,
    Measured,
    OutputsHome,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.ids import Epoch, SystemId, TaskId
from messiahs.core.instants import MILLISECOND, Instant
from messiahs.core.module import SchedulingModule
from messiahs.core.neighbors import Neighbor
from messiahs.core.ports import Policy
from messiahs.core.resuming import Remains
from messiahs.core.rows import TaskRow
from messiahs.core.state import Identity, ModuleState
from messiahs.language.predicates import predicate_parser
from messiahs.sim.machine import RunTimes, SimulatedMachine
from messiahs.trace.rows import encode_key, encode_row
from messiahs.wire.codec import (
    control_from_bytes,
    control_to_bytes,
    status_vector_from_bytes,
    status_vector_to_bytes,
    transfer_from_bytes,
    transfer_to_bytes,
)

HOP_DELAY_NS = MILLISECOND
START = Instant(0)


class SeededRandomness:
    """Random numbers that a seed decides."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 - a simulation wants to be repeated

    def bits(self, count: int, /) -> int:
        """Give a random integer of `count` bits."""
        return self._random.getrandbits(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSystem:
    """What a system is made from; `machine` describes its machine, None if it has none."""

    name: SystemId
    neighbors: tuple[Neighbor, ...]
    machine: SDV | None
    policy: Policy


@dataclass(slots=True)
class Member:
    """A module in the simulation with its disk and machine (mutable)."""

    module: SchedulingModule
    machine: SimulatedMachine | None
    disk: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    wakes_at: Instant | None = None


class SimulatedFederation:
    """Runs modules until nothing is due; `observe` sees every action that leaves a core (mutable)."""

    def __init__(self, systems: Mapping[SystemId, SimulatedSystem], *, seed: int, run_times: RunTimes) -> None:
        self.now = START
        self.events = 0
        self.messages = 0
        self.ended: dict[TaskId, TaskRow] = {}
        self.answers: list[Answer] = []
        self.observe: Callable[[SystemId, Action], None] = lambda _system, _action: None
        self._digest = hashlib.sha256()
        self._agenda: list[tuple[Instant, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.members = {name: self._member(system, seed, run_times) for name, system in systems.items()}
        for name, system in systems.items():
            self._start(name, system)

    @property
    def digest(self) -> str:
        """A hash over every message with its time: equal for equal runs."""
        return self._digest.hexdigest()

    def run(self, is_done: Callable[[], bool], *, until: Instant) -> None:
        """Let time pass until `is_done`, or until nothing happens before `until`."""
        while self._agenda and not is_done() and self._agenda[0][0] <= until:
            self.now, _, happen = heapq.heappop(self._agenda)
            happen()

    def post(self, system: SystemId, event: Event) -> None:
        """Let an event happen to a module now."""
        self.events += 1
        self._perform(system, self.members[system].module.handle(event, self.now))

    def later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Let something happen after a while."""
        heapq.heappush(self._agenda, (Instant(self.now + delay_ns), next(self._order), happen))

    def _member(self, system: SimulatedSystem, seed: int, run_times: RunTimes) -> Member:
        name = system.name
        state = ModuleState(
            identity=Identity(system=name, epoch=Epoch(1), address=f"{name}:1"),
            neighbors={neighbor.system: neighbor for neighbor in system.neighbors},
            policy=system.policy,
            parse=predicate_parser,
            randomness=SeededRandomness(f"{seed}/{name}"),
        )
        machine = None
        if system.machine is not None:
            machine = SimulatedMachine(run_times=run_times, later=self.later, tell=lambda event: self.post(name, event))
        return Member(module=SchedulingModule(state), machine=machine)

    def _start(self, name: SystemId, system: SimulatedSystem) -> None:
        def begin() -> None:
            self._perform(name, self.members[name].module.resume(Remains(), self.now))
            if system.machine is not None:
                self.post(name, Measured(sdv=system.machine))
            for neighbor in system.neighbors:
                self.post(name, LinkUp(neighbor=neighbor.system))

        self.later(0, begin)

    def _perform(self, name: SystemId, actions: tuple[Action, ...]) -> None:
        for action in actions:
            self.observe(name, action)
            self._perform_one(name, action)
        self._wake_later(name)

    def _perform_one(self, name: SystemId, action: Action) -> None:
        member = self.members[name]
        match action:
            case SendControl():
                body = control_to_bytes((action.message,))
                for message in control_from_bytes(body):
                    self._deliver(name, action.to, body, ControlReceived(sender=name, message=message))
            case SendVector():
                body = status_vector_to_bytes(action.message)
                received = VectorReceived(sender=name, message=status_vector_from_bytes(body))
                self._deliver(name, action.to, body, received)
            case SendTasks():
                body = transfer_to_bytes(action.message)
                received_tasks = TransferReceived(sender=name, message=transfer_from_bytes(body))
                self._deliver(name, action.to, body, received_tasks)
            case Store():
                kind, key, row = encode_row(action.row)
                member.disk[kind, key] = row
                if isinstance(action.row, TaskRow) and action.row.ended_at is not None:
                    self.ended[action.row.id] = action.row
            case Forget():
                member.disk.pop(encode_key(action.key), None)
            case StartAttempt() | EndAttempt() | ExtendLease() | DiscardAttempt():
                assert member.machine is not None, "only a system with a machine grants claims"
                member.machine.perform(action)
            case FetchOutputs():
                self._happen_later(name, OutputsHome(attempt=action.attempt))
            case Answer():
                self.answers.append(action)
            case TaskEnded():
                self._digest.update(f"{self.now} {action.task}".encode())
            case _:
                return

    def _deliver(self, name: SystemId, to: SystemId, body: bytes, event: Event) -> None:
        self.messages += 1
        self._digest.update(f"{self.now} {name} {to} ".encode() + body)
        self._happen_later(to, event)

    def _happen_later(self, to: SystemId, event: Event) -> None:
        self.later(HOP_DELAY_NS, lambda: self.post(to, event))

    def _wake_later(self, name: SystemId) -> None:
        member = self.members[name]
        deadline = member.module.next_deadline()
        if deadline is None or (member.wakes_at is not None and member.wakes_at <= deadline):
            return
        member.wakes_at = deadline
        self.later(max(0, deadline - self.now), lambda: self._wake(name, deadline))

    def _wake(self, name: SystemId, deadline: Instant) -> None:
        member = self.members[name]
        if member.wakes_at == deadline:
            member.wakes_at = None
        self.events += 1
        self._perform(name, member.module.expire(self.now))
