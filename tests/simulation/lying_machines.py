"""Machines that attract tasks and do not deliver, beside honest ones, in virtual time."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import AttemptStatus, Command, ControlMessage, DenyCode, TaskState, TaskStatus
from messiahs.core.interface.policies import Refused
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClientKey, SystemId, TaskId
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import ExecutorAction, MachineParts, RunTimes, SimulatedMachine
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.observer import NoWatcher
from messiahs.sim.world.sites import apart_from, introductions_of
from tests.unit.core.rig import sdv, tdv
from tests.unit.core.scripted_policy import ScriptedPolicy

HOME, GATE, FIRST, SECOND_ONE, LIAR = map(SystemId, ("home", "gate", "first", "second", "liar"))
HONEST_SLOTS = 4
LIAR_SLOTS = 64
TASKS = 40
RUN_NS = 1_500 * MILLISECOND
DRIP_NS = 10 * SECOND
_BEFORE_LIMIT_NS = 1_900 * MILLISECOND


class Lie(StrEnum):
    """What a machine does instead of its tasks."""

    DENIES = "denies"
    LOSES = "loses"
    MOVES = "moves"
    """Says just before the end of their time that its origin has moved them."""
    VACATES = "vacates"
    """Says then that its owner needs it."""
    DENIES_LATE = "denies late"
    """Says then that it does not accept them."""
    HOLDS = "holds"
    """Never begins them, and says just before their origin gives them up that it does not accept them."""
    HOLDS_FOR_A_LEASE = "holds for a lease"
    """Says that just before its lease ends."""
    HOLDS_BRIEFLY = "holds briefly"
    """Says that while it could be true."""
    REFUSES = "refuses"
    """Says that at once."""
    STARTS_NONE = "starts none"
    """Says at once that it could not start them."""
    NEVER_ENDS = "never ends"
    DRIPS = "drips"
    BAITS = "baits"
    """Delivers one result, and then never ends."""


_CAUSES = {Lie.MOVES: Cause.MOVED, Lie.VACATES: Cause.VACATED, Lie.STARTS_NONE: Cause.SPAWN_FAILED}
_HELD_NS = {
    Lie.HOLDS: 12 * SECOND,
    Lie.HOLDS_FOR_A_LEASE: 29 * SECOND,
    Lie.HOLDS_BRIEFLY: 4_900 * MILLISECOND,
    Lie.REFUSES: MILLISECOND,
    Lie.STARTS_NONE: MILLISECOND,
}
_DENYING = (Lie.DENIES_LATE, *_HELD_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantRunTimes(RunTimes):
    """All tasks run equally long."""

    def of(self, task: TaskId) -> int:
        """Return the run time of a task in ns."""
        del task
        return self.mean_ns


class LyingMachine(SimulatedMachine):
    """Takes all tasks, enforces neither leases nor limits, and reports what its lie says (mutable)."""

    def __init__(self, parts: MachineParts, lie: Lie) -> None:
        super().__init__(parts)
        self._lie, self._agenda, self._run_times = lie, parts.agenda, parts.run_times
        self._free_at = Instant(0)
        self._has_delivered = False

    def perform(self, action: ExecutorAction) -> None:
        """Begin nothing, and end nothing."""
        if not isinstance(action, StartAttempt):
            return
        match self._lie:
            case Lie.DENIES:
                return
            case Lie.LOSES:
                self._tell(AttemptStarted(attempt=action.attempt))
                lost = AttemptEnded(attempt=action.attempt, cause=Cause.LOST)
                self._agenda.later(SECOND, lambda: self._tell(lost))
            case Lie.MOVES | Lie.VACATES | Lie.DENIES_LATE:
                self._tell(AttemptStarted(attempt=action.attempt))
                ended = AttemptEnded(attempt=action.attempt, cause=_CAUSES.get(self._lie, Cause.LOST))
                self._agenda.later(_BEFORE_LIMIT_NS, lambda: self._tell(ended))
            case Lie.HOLDS | Lie.HOLDS_FOR_A_LEASE | Lie.HOLDS_BRIEFLY | Lie.REFUSES | Lie.STARTS_NONE:
                ended = AttemptEnded(attempt=action.attempt, cause=_CAUSES.get(self._lie, Cause.LOST))
                self._agenda.later(_HELD_NS[self._lie], lambda: self._tell(ended))
            case Lie.NEVER_ENDS:
                self._tell(AttemptStarted(attempt=action.attempt))
            case Lie.DRIPS:
                self._drip(action.attempt)
            case Lie.BAITS:
                self._tell(AttemptStarted(attempt=action.attempt))
                if not self._has_delivered:
                    self._has_delivered = True
                    self._drip(action.attempt)
            case _:
                assert_never(self._lie)

    def _drip(self, attempt: AttemptId) -> None:
        self._free_at = after(max(self._free_at, self._agenda.now), DRIP_NS)
        ended = AttemptEnded(attempt=attempt, exit_code=0, ran_ns=self._run_times.mean_ns)
        self._agenda.later(self._free_at - self._agenda.now, lambda: self._tell(ended))

    def _tell(self, event: AttemptStarted | AttemptEnded) -> None:
        if self.report is not None:
            self.report(event)


class World:
    """An origin without a machine, two honest machines, and perhaps a liar that shows many more free slots (mutable).

    The liar is at another site, or `is_local`. It is beside the honest machines, below `above`: the origin, or a hop.
    One that `is_converted` is honest. Tasks take `run_ns`.
    """

    def __init__(
        self,
        lie: Lie | None,
        *,
        above: SystemId = HOME,
        is_local: bool = False,
        is_converted: bool = False,
        run_ns: int = RUN_NS,
    ) -> None:
        has_third = lie is not None or is_converted
        parents = dict.fromkeys((FIRST, SECOND_ONE, *((LIAR,) if has_third else ())), above)
        parents |= {above: HOME} if above != HOME else {}
        sites = {name: b"l" * 16 if name == LIAR and not is_local else b"h" * 16 for name in (HOME, *parents)}
        trust = {name: Trust(roots=(root,), vouchers=(root,)) for name, root in sites.items()}
        if is_local:
            trust = dict.fromkeys(trust, UNKNOWN)
        systems = {name: self._system(name, parents, trust, lie) for name in trust}
        run_times = ConstantRunTimes(seed=1, mean_ns=run_ns)
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times)
        if lie is not None:
            self._install(lie, run_times)
        self.federation.run(lambda: False, until=Instant(10 * SECOND))

    def run(self, *, count: int = TASKS, limit_seconds: int = 2) -> int:
        """Run tasks at the origin until all have ended, and return how long they took, in ns."""
        began_at = self.federation.now
        self._submit(tdv(origin=HOME, est_time=limit_seconds), count)
        self.federation.run(lambda: len(self.federation.ended) == count, until=after(began_at, HOUR))
        rows = self.federation.ended.values()
        assert len(rows) == count, f"{count - len(rows)} of {count} tasks never end"
        assert {row.state for row in rows} == {TaskState.FINISHED}
        return max(row.ended_at for row in rows if row.ended_at is not None) - began_at

    def submit_long(self, count: int) -> None:
        """Submit tasks without a time limit."""
        self._submit(tdv(origin=HOME), count)

    def held_after(self, duration_ns: int) -> int:
        """Return how many tasks the third machine has after a while."""
        self.federation.run(lambda: False, until=after(self.federation.now, duration_ns))
        claims = self.federation.members[HOME].module.state.origin.claims.values()
        return sum(len(claim.bound) for claim in claims if claim.row.id.executor == LIAR)

    def _submit(self, stated: TDV, count: int) -> None:
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey("k"),
            tdv=stated,
            requirement="",
            command=Command(argv=("true",)),
            members=count,
        )
        self.federation.post(HOME, event)

    def _system(
        self, name: SystemId, parents: dict[SystemId, SystemId], trust: dict[SystemId, Trust], lie: Lie | None
    ) -> SimulatedSystem:
        children = (
            Neighbor(system=child, is_child=True, is_primary_child=True)
            for child, parent in parents.items()
            if parent == name
        )
        up = parents.get(name)
        above = (Neighbor(system=up, is_parent=True, is_primary_parent=True),) if up is not None else ()
        neighbors = (*children, *above)
        slots = {FIRST: HONEST_SLOTS, SECOND_ONE: HONEST_SLOTS, LIAR: LIAR_SLOTS}.get(name)
        is_denying = name == LIAR and lie is Lie.DENIES
        refusing = ScriptedPolicy(verdict=Refused(code=DenyCode.REFUSED_BY_POLICY))
        return SimulatedSystem(
            name=name,
            neighbors=neighbors,
            machine=sdv(slots=slots) if slots is not None else None,
            policy=refusing if is_denying else OpenPolicy(),
            trust=trust[name],
            apart=apart_from(name, neighbors, trust),
            other_sites=introductions_of(name, trust),
        )

    def _install(self, lie: Lie, run_times: RunTimes) -> None:
        host = self.federation.members[LIAR]
        parts = MachineParts(
            system=LIAR,
            agenda=self.federation.agenda,
            clock=host.system.clock,
            disk=host.disk,
            conditions=self.federation.conditions,
            watcher=NoWatcher(),
            run_times=run_times,
        )
        host.machine = LyingMachine(parts, lie)
        if lie in _DENYING:
            self._deny_what_is_lost()

    def _deny_what_is_lost(self) -> None:
        """Let the liar's module report each attempt that it lost as one that it does not accept."""
        connections = self.federation.connections
        send = connections.send_control

        def send_denied(sender: SystemId, to: SystemId, /, message: ControlMessage) -> None:
            if sender == LIAR and isinstance(message, TaskStatus):
                message = replace(message, attempts=tuple(map(_denied, message.attempts)))
            send(sender, to, message)

        connections.send_control = send_denied  # type: ignore[method-assign]


def _denied(status: AttemptStatus) -> AttemptStatus:
    return status if status.cause != Cause.LOST else replace(status, state=TaskState.DENIED, cause="")
