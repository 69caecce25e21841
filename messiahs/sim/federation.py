"""A federation in virtual time: the same cores as in the daemons, with a network, machines and disks of its own.

Every message passes through the codec and every row through its stored format. Nothing here reads a clock: one seed
gives one run, on any machine and under any hash seed.
"""

import hashlib
from collections.abc import Callable, Mapping

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
from messiahs.core.members import with_untried
from messiahs.core.module import SchedulingModule
from messiahs.core.neighbors import Neighbor
from messiahs.core.ports import Policy
from messiahs.core.resuming import Remains
from messiahs.core.rows import SubmissionRow, TaskRow
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
    """Hosts in one virtual time; `observe` sees every action that a host performs (mutable)."""

    def __init__(
        self,
        systems: Mapping[SystemId, SimulatedSystem],
        *,
        seed: int,
        run_times: RunTimes,
        conditions: Conditions | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.messages = 0
        self.ended: dict[TaskId, TaskRow] = {}
        self.answers: list[Answer] = []
        self.observe: Callable[[SystemId, Action], None] = lambda _system, _action: None
        self.conditions = conditions or Conditions()
        self.agenda = Agenda()
        self._digest = hashlib.sha256()
        self._watcher = watcher or Nobody()
        self.members: dict[SystemId, SimulatedHost] = {}
        pairs = {
            (name, neighbor.system): dials(name, neighbor)
            for name, system in systems.items()
            for neighbor in system.neighbors
        }
        self.connections = Connections(self.agenda, self.conditions, hosts=self.members, dials=pairs)
        tasks = TaskNetwork(self.agenda, self.conditions, hosts=self.members)
        self.connections.carried = tasks.carried = self._carried
        around = Surroundings(
            agenda=self.agenda,
            conditions=self.conditions,
            connections=self.connections,
            tasks=tasks,
            watcher=self._watcher,
            run_times=run_times,
            seed=seed,
            acted=self._acted,
        )
        for name, system in systems.items():
            self.members[name] = host = SimulatedHost(system, around)
            self.later(0, host.start)

    @property
    def now(self) -> Instant:
        """The present instant of virtual time."""
        return self.agenda.now

    @property
    def events(self) -> int:
        """How many events and timeouts were handled."""
        return sum(member.events for member in self.members.values())

    @property
    def digest(self) -> str:
        """A hash over every message with its time: equal for equal runs."""
        return self._digest.hexdigest()

    def run(self, is_done: Callable[[], bool], *, until: Instant) -> None:
        """Let time pass until `is_done`, or until nothing happens before `until`."""
        self.agenda.run(is_done, until=until)

    def post(self, system: SystemId, event: Event) -> None:
        """Let an event happen to a module now."""
        self.members[system].post(event)

    def later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Let something happen after a while."""
        self.agenda.later(delay_ns, happen)

    def _carried(self, sender: SystemId, to: SystemId, body: bytes) -> None:
        self.messages += 1
        self._digest.update(f"{self.now} {sender} {to} ".encode() + body)

    def _acted(self, system: SystemId, action: Action) -> None:
        self.observe(system, action)
        self._watcher.acted(system, action)
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
                if isinstance(action.row, SubmissionRow):
                    for untried in with_untried(action.row, ()):
                        self.ended.setdefault(untried.id, untried)
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
