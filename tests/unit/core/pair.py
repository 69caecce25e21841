"""Two modules in memory, each with a disk and a back end, one of which can be killed between a commit and what follows.

`left` has users and no machine, `right` has a machine. A batch of actions is committed whole, then performed. A kill
loses everything but the rows, what is in flight on the link, and what waits to be performed; the back end of `right`,
like the starter, outlives it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from messiahs.core.interface.actions import (
    Action,
    Answer,
    DiscardAttempt,
    EndAttempt,
    FetchOutputs,
    Forget,
    SendControl,
    SendTasks,
    SendVector,
    StartAttempt,
    Store,
)
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.events import (
    ControlReceived,
    Event,
    LinkDown,
    LinkUp,
    Measured,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.rows import Row, RowKey, TaskRow, key_of
from messiahs.core.invariants import violations
from messiahs.core.model.ids import AttemptId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Usage
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains, RunningAttempt
from tests.unit.core.agenda import Agenda
from tests.unit.core.rig import make_module, sdv

LEFT, RIGHT = SystemId("left"), SystemId("right")
NEIGHBOR_OF = {
    LEFT: Neighbor(system=RIGHT, is_child=True, is_primary_child=True),
    RIGHT: Neighbor(system=LEFT, is_parent=True, is_primary_parent=True),
}
START = Instant(0)
RUN_NS = 300 * MILLISECOND
DOWN_NS = 700 * MILLISECOND


@dataclass(slots=True)
class Host:
    """One module with what outlives it (mutable)."""

    module: SchedulingModule
    rows: dict[RowKey, Row] = field(default_factory=dict)
    is_up: bool = True
    life: int = 0


@dataclass(slots=True)
class Pair:
    """Both modules and the world around them; `kill_at` is the (system, commit) that is its last before a restart.

    With `before_commit` the batch of that commit is lost too (mutable).
    """

    kill_at: tuple[SystemId, int] | None = None
    before_commit: bool = False
    now: Instant = START
    commits: dict[SystemId, int] = field(default_factory=lambda: {LEFT: 0, RIGHT: 0})
    started: list[AttemptId] = field(default_factory=list)
    backend: dict[AttemptId, AttemptEnded | None] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    hosts: dict[SystemId, Host] = field(default_factory=dict)
    _agenda: Agenda = field(default_factory=Agenda)

    def start(self) -> None:
        """Start both modules and connect them."""
        for name in (LEFT, RIGHT):
            self.hosts[name] = Host(module=make_module(system=name, neighbors=(NEIGHBOR_OF[name],)))
            self._begin(name)
        self._connect()

    def run(self, is_done: Callable[[], bool], *, for_ns: int) -> None:
        """Let time pass until something is so, or for so long."""
        end = after(self.now, for_ns)
        while not is_done():
            deadlines = [
                (deadline, name)
                for name, host in self.hosts.items()
                if host.is_up and (deadline := host.module.next_deadline()) is not None
            ]
            if self._agenda.is_due(min(deadlines)[0] if deadlines else None):
                at, happen = self._agenda.take()
                self.now = max(self.now, at)
                happen()
            else:
                deadline, name = min(deadlines)
                self.now = max(self.now, deadline)
                self._perform(name, self.hosts[name].module.expire(self.now))
            if self.now > end:
                return

    def post(self, name: SystemId, event: Event) -> None:
        """Let an event happen to a module, if it is up."""
        host = self.hosts[name]
        if host.is_up:
            self._perform(name, host.module.handle(event, self.now))

    def ended(self) -> list[TaskRow]:
        """Return the tasks that have ended, as the disk of `left` says."""
        return [row for row in self.hosts[LEFT].rows.values() if isinstance(row, TaskRow) and row.ended_at is not None]

    def _later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        self._agenda.add(after(self.now, delay_ns), happen)

    def _begin(self, name: SystemId) -> None:
        host = self.hosts[name]
        running: tuple[RunningAttempt, ...] = ()
        if name == RIGHT:
            running = tuple(
                RunningAttempt(attempt=attempt, is_running=ended is None, ended=ended)
                for attempt, ended in self.backend.items()
            )
        self._perform(name, host.module.resume(Remains(rows=tuple(host.rows.values()), running=running), self.now))
        if name == RIGHT:
            self.post(RIGHT, Measured(sdv=sdv(slots=2)))

    def _connect(self) -> None:
        for name in (LEFT, RIGHT):
            self.post(name, LinkUp(neighbor=NEIGHBOR_OF[name].system))

    def _perform(self, name: SystemId, actions: tuple[Action, ...]) -> None:
        host = self.hosts[name]
        assert violations(host.module.state) == ()
        stored = [action for action in actions if isinstance(action, Store | Forget)]
        dies = False
        if stored:
            self.commits[name] += 1
            dies = self.kill_at == (name, self.commits[name])
        if dies and self.before_commit:
            self._kill(name)
            return
        for action in stored:
            if isinstance(action, Store):
                host.rows[key_of(action.row)] = action.row
            else:
                host.rows.pop(action.key, None)
        if dies:
            self._kill(name)
            return
        for each in actions:
            self._perform_one(name, each)

    def _kill(self, name: SystemId) -> None:
        host = self.hosts[name]
        host.is_up = False
        host.life += 1
        other = NEIGHBOR_OF[name].system
        self.hosts[other].life += 1
        self._later(0, lambda: self.post(other, LinkDown(neighbor=name)))
        self._later(DOWN_NS, lambda: self._restart(name))

    def _restart(self, name: SystemId) -> None:
        host = self.hosts[name]
        host.module = make_module(system=name, neighbors=(NEIGHBOR_OF[name],))
        host.is_up = True
        self._begin(name)
        self._connect()

    def _perform_one(self, name: SystemId, action: Action) -> None:
        match action:
            case SendControl():
                self._send(name, action.to, ControlReceived(sender=name, message=action.message))
            case SendVector():
                self._send(name, action.to, VectorReceived(sender=name, message=action.message))
            case SendTasks():
                self._send(name, action.to, TransferReceived(sender=name, message=action.message))
            case FetchOutputs():
                attempt = action.attempt
                self._later(MILLISECOND, lambda: self.post(name, OutputsHome(attempt=attempt)))
            case StartAttempt():
                self._start_attempt(action.attempt)
            case EndAttempt():
                self._end_attempt(AttemptEnded(attempt=action.attempt, cause=action.cause))
            case DiscardAttempt():
                self.backend.pop(action.attempt, None)
            case Answer():
                self.answers.append(action)
            case _:
                pass

    def _send(self, name: SystemId, to: SystemId, event: Event) -> None:
        lives = (self.hosts[name].life, self.hosts[to].life)

        def arrive() -> None:
            if lives == (self.hosts[name].life, self.hosts[to].life):
                self.post(to, event)

        self._later(MILLISECOND, arrive)

    def _start_attempt(self, attempt: AttemptId) -> None:
        if attempt in self.backend:
            return
        self.backend[attempt] = None
        self.started.append(attempt)
        self.post(RIGHT, AttemptStarted(attempt=attempt))
        outputs = (Output(name="stdout", size_bytes=3),)
        ended = AttemptEnded(
            attempt=attempt, exit_code=0, ran_ns=RUN_NS, usage=Usage(cpu_ns=RUN_NS // 3), outputs=outputs
        )
        self._later(RUN_NS, lambda: self._end_attempt(ended))

    def _end_attempt(self, event: AttemptEnded) -> None:
        if self.backend.get(event.attempt, event) is None:
            self.backend[event.attempt] = event
            self.post(RIGHT, event)


SETTLED_NS = 3 * SECOND
