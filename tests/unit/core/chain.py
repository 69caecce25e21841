"""Three modules in a row, in memory: an origin, a hop and an executor, and a hand that meddles with one message.

Messages take a millisecond. A link that is cut loses what is on its way, and both ends learn of it; it is made again a
second later. One back end serves all machines, lives as long as the chain, and notices when two attempts of one task
run at once. The executor's owner wants tasks to move while the machine is loaded.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from messiahs.core.interface.actions import (
    Action,
    DiscardAttempt,
    EndAttempt,
    FetchOutputs,
    Forget,
    RefuseTransfer,
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
    TransferFailed,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.rows import Row, RowKey, key_of
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.invariants import violations
from messiahs.core.model.ids import AttemptId, SystemId, TaskId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_files import Output
from messiahs.core.model.usage import Usage
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.agenda import Agenda
from tests.unit.core.rig import make_module, sdv
from tests.unit.core.scripted_policy import ScriptedPolicy

ORIGIN, HOP, EXECUTOR = SystemId("origin"), SystemId("hop"), SystemId("executor")
LINKS = ((ORIGIN, HOP), (HOP, EXECUTOR))
LEASE_NS = 2 * SECOND
_NEIGHBORS = {
    ORIGIN: (Neighbor(system=HOP, is_child=True, is_primary_child=True),),
    HOP: (
        Neighbor(system=ORIGIN, is_parent=True, is_primary_parent=True),
        Neighbor(system=EXECUTOR, is_child=True, is_primary_child=True),
    ),
    EXECUTOR: (Neighbor(system=HOP, is_parent=True, is_primary_parent=True),),
}
_TIMEOUTS = Timeouts(
    update_period_ns=60 * SECOND,
    input_ns=40 * SECOND,
    request_ns=1 * SECOND,
    lease_ns=LEASE_NS,
    kill_grace_ns=0,
    status_ns=4 * SECOND,
)
_RULES = {
    ORIGIN: "migrate { }",
    EXECUTOR: """
        migrate { ask every 20s when 1 = 1 wanting { }; ask every 21s when 1 = 1 wanting { $cpus > 8 }; }
        running { move when $here.load > 50% grace 20s else "the day begins"; }
    """,
}
_START = Instant(0)
_LATE_NS = 3 * SECOND // 2


class Meddling(Enum):
    """What happens to one message."""

    NOTHING = "nothing"
    AGAIN = "it arrives twice, and once more when much has happened"
    LATE = "it arrives a good while later, after others"
    CUT = "its link is cut while it is on its way"


@dataclass(slots=True)
class Chain:
    """The three modules; the message of that number is the one that is meddled with (mutable)."""

    meddling: Meddling = Meddling.NOTHING
    number: int = 0
    now: Instant = _START
    messages: list[str] = field(default_factory=list)
    starts: Counter[AttemptId] = field(default_factory=Counter)
    overlaps: list[AttemptId] = field(default_factory=list)
    rows: dict[SystemId, dict[RowKey, Row]] = field(default_factory=dict)
    modules: dict[SystemId, SchedulingModule] = field(default_factory=dict)
    run_ns: Callable[[TaskId], int] = lambda _: 300 * MILLISECOND
    rules: Mapping[SystemId, str] = field(default_factory=lambda: _RULES)
    stream_failure: str = ""
    """`untrusted` or `refused`: no task stream can be opened; `far`: only those between neighbors; empty: all can."""
    _running: dict[AttemptId, SystemId] = field(default_factory=dict)
    _ended: dict[AttemptId, AttemptEnded] = field(default_factory=dict)
    _lives: dict[tuple[SystemId, SystemId], int] = field(default_factory=lambda: dict.fromkeys(LINKS, 0))
    _agenda: Agenda = field(default_factory=Agenda)

    def start(self) -> None:
        """Start and link all."""
        for name, neighbors in _NEIGHBORS.items():
            rules = parse_policy(self.rules.get(name, ""), file=f"{name}.policy")
            policy = ScriptedPolicy(timeouts=_TIMEOUTS, transfer=rules.transfer, running=rules.running)
            self.modules[name] = make_module(system=name, neighbors=neighbors, policy=policy)
            self.rows[name] = {}
            self._perform(name, self.modules[name].resume(Remains(), self.now))
        self.post(EXECUTOR, Measured(sdv=sdv(slots=2)))
        for link in LINKS:
            self._link(link)

    def run(self, *, until: Instant) -> None:
        """Let time pass."""
        while True:
            deadlines = [(module.next_deadline(), name) for name, module in self.modules.items()]
            deadline, name = min((until if at is None else at, name) for at, name in deadlines)
            if self._agenda.is_due(min(deadline, until)):
                at, happen = self._agenda.take()
                self.now = max(self.now, at)
                happen()
            elif deadline < until:
                self.now = max(self.now, deadline)
                self._perform(name, self.modules[name].expire(self.now))
            else:
                self.now = until
                return

    def post(self, name: SystemId, event: Event) -> None:
        """Let an event happen to a module."""
        self._perform(name, self.modules[name].handle(event, self.now))

    def cut(self, link: tuple[SystemId, SystemId]) -> None:
        """Cut a link; it is made again later."""
        self._lives[link] += 1
        for name, other in (link, link[::-1]):
            self.post(name, LinkDown(neighbor=other))
        self._later(SECOND, lambda: self._link(link))

    def _link(self, link: tuple[SystemId, SystemId]) -> None:
        for name, other in (link, link[::-1]):
            self.post(name, LinkUp(neighbor=other))

    def _later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        self._agenda.add(after(self.now, delay_ns), happen)

    def _perform(self, name: SystemId, actions: tuple[Action, ...]) -> None:
        assert violations(self.modules[name].state) == ()
        for action in actions:
            self._perform_one(name, action)

    def _perform_one(self, name: SystemId, action: Action) -> None:
        match action:
            case Store():
                self.rows[name][key_of(action.row)] = action.row
            case Forget():
                self.rows[name].pop(action.key, None)
            case SendControl():
                self._send(name, action.to, ControlReceived(sender=name, message=action.message))
            case SendVector():
                self._send(name, action.to, VectorReceived(sender=name, message=action.message))
            case SendTasks(message=TaskTransfer(claim=claim)) if self._is_closed(name, action.to):
                is_untrusted = self.stream_failure == "untrusted"
                kind = TransferFailure.UNTRUSTED if is_untrusted else TransferFailure.BROKEN
                failed = TransferFailed(claim=claim, text=self.stream_failure, kind=kind, to=action.to)
                self._later(MILLISECOND, lambda: self.post(name, failed))
            case SendTasks():
                self._send(name, action.to, TransferReceived(sender=name, message=action.message))
            case RefuseTransfer(to=bringer):
                dropped = TransferFailed(claim=action.claim, text=action.text, kind=action.kind, to=name)
                self._later(MILLISECOND, lambda: self.post(bringer, dropped))
            case FetchOutputs(attempt=attempt):
                self._later(MILLISECOND, lambda: self.post(name, OutputsHome(attempt=attempt)))
            case StartAttempt(attempt=attempt):
                self._later(0, lambda: self._begin(name, attempt))
            case EndAttempt(attempt=attempt, cause=cause):
                self._later(0, lambda: self._end(name, AttemptEnded(attempt=attempt, cause=cause)))
            case DiscardAttempt(attempt=attempt):
                self._ended.pop(attempt, None)
            case _:
                pass

    def _send(self, name: SystemId, to: SystemId, event: ControlReceived | VectorReceived | TransferReceived) -> None:
        self.messages.append(type(event.message).__name__)
        meddling = self.meddling if len(self.messages) == self.number else Meddling.NOTHING
        link = next((link for link in LINKS if {name, to} == set(link)), None)
        life = self._lives[link] if link is not None else 0

        def arrive() -> None:
            # What travels beside the links, tasks, is not lost with one.
            if link is None or life == self._lives[link]:
                self.post(to, event)

        match meddling:
            case Meddling.NOTHING:
                self._later(MILLISECOND, arrive)
            case Meddling.AGAIN:
                for delay_ns in (MILLISECOND, MILLISECOND, _LATE_NS):
                    self._later(delay_ns, arrive)
            case Meddling.LATE:
                self._later(_LATE_NS, arrive)
            case Meddling.CUT if link is not None:
                self._later(0, lambda: self.cut(link))
                self._later(MILLISECOND, arrive)
            case Meddling.CUT:
                assert isinstance(event, TransferReceived)
                failed = TransferFailed(claim=event.message.claim, text="cut")
                self._later(MILLISECOND, lambda: self.post(name, failed))

    def _is_closed(self, name: SystemId, to: SystemId) -> bool:
        are_neighbors = any({name, to} == set(link) for link in LINKS)
        return bool(self.stream_failure) and not (self.stream_failure == "far" and are_neighbors)

    def _begin(self, name: SystemId, attempt: AttemptId) -> None:
        if attempt in self._ended:
            self.post(name, self._ended[attempt])
            return
        if attempt in self._running:
            return
        self.overlaps += [attempt for other in self._running if other.task == attempt.task]
        self._running[attempt] = name
        self.starts[attempt] += 1
        self.post(name, AttemptStarted(attempt=attempt))
        run_ns = self.run_ns(attempt.task)
        outputs = (Output(name="stdout", size_bytes=3),) if attempt.task.member % 2 else ()
        ended = AttemptEnded(
            attempt=attempt, exit_code=0, ran_ns=run_ns, usage=Usage(cpu_ns=run_ns // 3), outputs=outputs
        )
        self._later(run_ns, lambda: self._exit(ended))

    def _exit(self, ended: AttemptEnded) -> None:
        if ended.attempt in self._running:
            self._end(self._running[ended.attempt], ended)

    def _end(self, name: SystemId, ended: AttemptEnded) -> None:
        self._running.pop(ended.attempt, None)
        self._ended.setdefault(ended.attempt, ended)
        self.post(name, self._ended[ended.attempt])
