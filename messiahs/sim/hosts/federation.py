"""A federation in virtual time: the same cores as in the daemons, with a network, machines and disks of its own.

Every message passes through the codec and every row through its stored format. No file here reads a clock: one seed
gives one run, on any machine and with any hash seed.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from messiahs.config.topology.reach import dials
from messiahs.core.interface.actions import Action, Answer, Effect, Forget, Store, TaskEnded
from messiahs.core.interface.events import Event
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.ids import SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.origin.array_members import with_untried
from messiahs.sim.hosts.host import SimulatedHost, Surroundings
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.agenda import Agenda
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.connections import Connections
from messiahs.sim.world.observer import NoWatcher, Watcher
from messiahs.sim.world.task_channel import TaskNetwork


class SimulatedFederation:
    """Hosts in one virtual time; `observe` is called with every row stored and every effect performed (mutable)."""

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
        self._watcher = watcher or NoWatcher()
        self.members: dict[SystemId, SimulatedHost] = {}
        pairs = {
            (name, neighbor.system): dials(system, systems[neighbor.system], neighbor=neighbor)
            for name, system in systems.items()
            for neighbor in system.neighbors
        }
        self.connections = Connections(self.agenda, self.conditions, hosts=self.members, dials=pairs)
        self.tasks = TaskNetwork(self.agenda, self.conditions, hosts=self.members)
        self.connections.carried = self.tasks.carried = self._carried
        self.tasks.observed = self._watcher.carried
        around = Surroundings(
            agenda=self.agenda,
            conditions=self.conditions,
            connections=self.connections,
            tasks=self.tasks,
            watcher=self._watcher,
            run_times=run_times,
            seed=seed,
            committed=self._committed,
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
        """The number of events and timeouts handled."""
        return sum(member.events for member in self.members.values())

    @property
    def digest(self) -> str:
        """A hash over every message with its time: equal for equal runs."""
        return self._digest.hexdigest()

    def run(self, is_done: Callable[[], bool], *, until: Instant) -> None:
        """Advance time until `is_done`, or until nothing is scheduled before `until`."""
        self.agenda.run(is_done, until=until)

    def post(self, system: SystemId, event: Event) -> None:
        """Post an event to a module now."""
        self.members[system].post(event)

    def later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call after a delay."""
        self.agenda.later(delay_ns, happen)

    def _carried(self, sender: SystemId, to: SystemId, body: bytes) -> None:
        self.messages += 1
        self._digest.update(f"{self.now} {sender} {to} ".encode() + body)
        self._watcher.carried(sender, to, body)

    def _committed(self, system: SystemId, writes: Sequence[Store | Forget]) -> None:
        self._watcher.committed(system, writes)
        for write in writes:
            self.observe(system, write)
            match write:
                case Store(row=TaskRow() as row) if row.ended_at is not None:
                    self.ended[row.id] = row
                case Store(row=SubmissionRow() as submission):
                    for untried in with_untried(submission, ()):
                        self.ended.setdefault(untried.id, untried)
                case _:
                    continue

    def _acted(self, system: SystemId, effect: Effect) -> None:
        self.observe(system, effect)
        self._watcher.acted(system, effect)
        match effect:
            case Answer():
                self.answers.append(effect)
            case TaskEnded():
                self._digest.update(f"{self.now} {effect.task}".encode())
            case _:
                return
