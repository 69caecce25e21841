"""Faults of a simulation: each affects a random part of the federation for a while, and is then repaired."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from random import Random

from messiahs.core import queries
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.events import AnswerTo, CleanRequested, HandRequested, RevokeRequested, ShutOffRequested
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedHost
from messiahs.sim.load.policies import PolicyFamily


class Fault(StrEnum):
    """The kinds of faults."""

    DAEMON_CRASH = "daemon crash"
    CRASH_AMID_ACTIONS = "crash amid actions"
    HOP_CRASH = "hop crash"
    MACHINE_CRASH = "machine crash"
    STARTER_LOST = "starter lost"
    STATE_WIPED = "state wiped"
    DATABASE_RESTORED = "older database"
    STARTER_STOPPED = "starter stopped"
    DAEMON_PAUSED = "daemon paused"
    HOST_FROZEN = "host frozen"
    DISK_FULL = "disk full"
    LINK_BROKEN = "link broken"
    LINK_CUT = "link cut"
    ONE_WAY_CUT = "one-way cut"
    ISOLATED = "host isolated"
    SPLIT = "network split"
    ROUGH = "rough network"
    REPEATED = "messages repeated"
    INPUTS_FAIL = "inputs fail"
    WALLED = "firewall"
    STOLEN = "transfers stolen"
    POLICY_CHANGED = "policy changed"
    SHUT_OFF = "neighbor shut off"
    REVOKED = "tasks revoked"
    BY_HAND = "tasks held or moved"


_LONGEST_NS = 90 * SECOND
_SHORT_NS = 2 * SECOND
_CLEANED = 3
"""One of so many submissions that have ended is cleaned up."""


class Faults:
    """Injects faults of some kinds until all is healed (mutable)."""

    def __init__(
        self,
        federation: SimulatedFederation,
        random: Random,
        *,
        kinds: tuple[Fault, ...],
        families: Mapping[SystemId, PolicyFamily],
    ) -> None:
        self.counts: Counter[Fault] = Counter()
        self._federation, self._random, self._kinds, self._families = federation, random, kinds, families
        self._undo: dict[int, Callable[[], None]] = {}
        self._affected: dict[SystemId, None] = {}
        self._note: Callable[[SystemId, str], None] = lambda _system, _text: None
        self._made = 0
        self._is_healed = False
        self._calm_spread_ns = federation.conditions.spread_ns

    def begin(self, *, every_ns: int, note: Callable[[SystemId, str], None]) -> None:
        """Inject a fault at about this interval."""
        self._note = note
        if self._kinds:
            self._next(every_ns)

    def heal(self) -> None:
        """Repair everything, and inject no more faults."""
        self._is_healed = True
        self._federation.tasks.passes = lambda _hop: None
        for number in tuple(self._undo):
            self._repair(number)
        for name in self._federation.members:
            self._readmit_all(name)
            # A module that was paused until now has not seen the last hold yet.
            self._federation.later(SECOND, partial(self._release_all, name))

    def _next(self, every_ns: int) -> None:
        def happen() -> None:
            if not self._is_healed:
                self._happen(self._random.choice(self._kinds))
                self._next(every_ns)

        self._federation.later(1 + int(self._random.expovariate(1) * every_ns), happen)

    def _happen(self, kind: Fault) -> None:
        name = self._random.choice(sorted(self._federation.members))
        if kind is Fault.HOP_CRASH:
            self._federation.tasks.passes = self._lie_in_wait
        else:
            self._happen_at(name, kind)

    def _lie_in_wait(self, hop: SystemId) -> None:
        """Crash a hop through which tasks or outputs pass from now on, before or while they do."""
        self._federation.tasks.passes = lambda _hop: None
        longest_ns = self._random.choice((5 * MILLISECOND, _SHORT_NS))
        self._federation.later(self._random.randrange(longest_ns), partial(self._happen_at, hop, Fault.HOP_CRASH))

    def _happen_at(self, name: SystemId, kind: Fault) -> None:
        longest_ns = self._random.choice((_SHORT_NS, _LONGEST_NS))
        undo = None if self._is_healed else self._inject(kind, name, self._federation.members[name])
        if undo is None:
            return
        self.counts[kind] += 1
        self._note(name, f"fault: {kind}")
        self._made += 1
        self._undo[self._made] = undo
        self._federation.later(1 + self._random.randrange(longest_ns), partial(self._repair, self._made))

    def _repair(self, number: int) -> None:
        undo = self._undo.pop(number, None)
        if undo is not None:
            undo()

    def _inject(self, kind: Fault, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        """Inject a fault; return its repair, or None if the fault is impossible there now."""
        match kind:
            case Fault.LINK_BROKEN | Fault.LINK_CUT | Fault.ONE_WAY_CUT | Fault.ISOLATED | Fault.SPLIT:
                return self._inject_in_network(kind, name, host)
            case Fault.ROUGH | Fault.REPEATED | Fault.INPUTS_FAIL | Fault.STOLEN:
                return self._inject_conditions(kind)
            case Fault.WALLED:
                self._federation.conditions.wall(name)
                return partial(self._federation.conditions.unwall, name)
            case Fault.SHUT_OFF:
                return self._shut_off(name, host)
            case Fault.REVOKED:
                return self._revoke(name, host)
            case Fault.BY_HAND:
                return self._act_by_hand(name, host)
            case Fault.DISK_FULL:
                return self._fill_disk(host)
            case Fault.POLICY_CHANGED:
                host.load_policy(self._families[name].draw(self._random))
                return lambda: None
            case _:
                return self._inject_in_host(kind, name, host)

    def _inject_in_host(self, kind: Fault, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        if name in self._affected or not host.is_up:
            return None
        self._affected[name] = None
        match kind:
            case Fault.DAEMON_CRASH | Fault.HOP_CRASH:
                host.crash()
            case Fault.CRASH_AMID_ACTIONS:
                host.crash_soon()
            case Fault.MACHINE_CRASH:
                host.crash(with_machine=True)
                return partial(self._start, name, has_rebooted=True)
            case Fault.STATE_WIPED:
                host.crash(with_machine=True)
                host.wipe()
            case Fault.DATABASE_RESTORED:
                host.crash()
                host.restore_database()
            case Fault.STARTER_LOST:
                if host.machine is not None:
                    host.machine.lose_starter()
            case Fault.DAEMON_PAUSED:
                host.pause()
                return partial(self._continue, name, with_machine=False)
            case Fault.STARTER_STOPPED:
                is_alone = self._random.randrange(2) == 0
                if not is_alone:
                    host.pause()
                if host.machine is not None:
                    host.machine.stop(is_daemon_up=is_alone)
                return partial(self._continue, name, with_machine=True)
            case Fault.HOST_FROZEN:
                host.pause()
                if host.machine is not None:
                    host.machine.freeze()
                return partial(self._continue, name, with_machine=True)
            case _:
                raise AssertionError(kind)
        return partial(self._start, name)

    def _start(self, name: SystemId, *, has_rebooted: bool = False) -> None:
        host = self._federation.members[name]
        del self._affected[name]
        host.cancel_crash()
        if not host.is_up:
            self._note(name, "starts again")
            host.start(has_rebooted=has_rebooted)

    def _continue(self, name: SystemId, *, with_machine: bool) -> None:
        host = self._federation.members[name]
        del self._affected[name]
        self._note(name, "continues")
        if with_machine and host.machine is not None:
            host.machine.thaw()
        host.unpause()

    def _shut_off(self, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        """Let an administrator shut off a neighbor, and readmit it later."""
        if not host.system.neighbors:
            return None
        host.post(_asked(self._random.choice(host.system.neighbors).system, is_off=True))
        return partial(self._readmit_all, name)

    def _revoke(self, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        """Let an administrator revoke all tasks on a machine, for a reason that names it."""
        attempts = tuple(local.row.id for local in queries.local_attempts(host.module.state))
        if not attempts:
            return None
        kills = bool(self._random.randrange(2))
        host.post(RevokeRequested(answer_to=AnswerTo(0), attempts=attempts, kills=kills, text=f"maintenance of {name}"))
        return lambda: None

    def _act_by_hand(self, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        """Let a user revoke, move, hold or release a task or an array, and release all later; some clean up, too."""
        ended = tuple(row.id for row in host.disk.submissions() if row.ended_at is not None)
        host.post(CleanRequested(answer_to=AnswerTo(0), tasks=ended[::_CLEANED]))
        live = self._live_submissions(name)
        if not live:
            return None
        row = self._random.choice(live)
        task = row.id._replace(member=self._random.randrange(row.members + 1))
        host.post(HandRequested(answer_to=AnswerTo(0), task=task, act=self._random.choice(tuple(HandAct))))
        return partial(self._release_all, name)

    def _release_all(self, name: SystemId) -> None:
        """Let users release all their tasks as soon as the daemon takes commands, and look again later."""
        for row in self._live_submissions(name):
            if row.holds:
                event = HandRequested(answer_to=AnswerTo(0), task=row.id, act=HandAct.RELEASE)
                self._federation.members[name].post(event)
                self._federation.later(SECOND, partial(self._release_all, name))

    def _live_submissions(self, name: SystemId) -> list[SubmissionRow]:
        """Return the submissions of a module that have not ended, as it knows them now."""
        host = self._federation.members[name]
        known = (queries.live_submission(host.module.state, row.id) for row in host.disk.submissions())
        return [row for row in known if row is not None]

    def _readmit_all(self, name: SystemId) -> None:
        """Let an administrator readmit all neighbors as soon as the daemon takes commands, and look again later."""
        host = self._federation.members[name]
        for neighbor in tuple(queries.summary_of(host.module.state).shut_off):
            host.post(_asked(neighbor, is_off=False))
            self._federation.later(SECOND, partial(self._readmit_all, name))

    def _fill_disk(self, host: SimulatedHost) -> Callable[[], None] | None:
        if host.disk.is_full:
            return None
        host.disk.is_full = True

        def undo() -> None:
            host.disk.is_full = False
            if host.machine is not None:
                host.machine.on_disk_changed()

        return undo

    def _inject_in_network(self, kind: Fault, name: SystemId, host: SimulatedHost) -> Callable[[], None] | None:
        connections = self._federation.connections
        if not host.system.neighbors:
            return None
        other = self._random.choice(host.system.neighbors).system
        if kind is Fault.LINK_BROKEN:
            connections.break_between(name, other)
            return lambda: None
        side: tuple[SystemId, ...] = (name,)
        rest: tuple[SystemId, ...] = (other,)
        if kind in (Fault.ISOLATED, Fault.SPLIT):
            share = 0 if kind is Fault.ISOLATED else 50
            side = (name, *(each for each in self._others(name) if self._random.randrange(100) < share))
            rest = tuple(each for each in self._federation.members if each not in side)
        pairs = tuple((one, far) for one in side for far in rest)
        if kind is not Fault.ONE_WAY_CUT:
            pairs += tuple((far, one) for one, far in pairs)
        connections.cut(pairs)
        return partial(connections.mend, pairs)

    def _others(self, name: SystemId) -> list[SystemId]:
        return [each for each in self._federation.members if each != name]

    def _inject_conditions(self, kind: Fault) -> Callable[[], None] | None:
        conditions = self._federation.conditions
        if kind is Fault.REPEATED:
            conditions.repeated_control, conditions.repeated_transfers = 30, 30

            def heal() -> None:
                conditions.repeated_control = conditions.repeated_transfers = 0

            return heal
        if kind is Fault.STOLEN:
            conditions.stolen_transfers = 50

            def heal() -> None:
                conditions.stolen_transfers = 0

            return heal
        if kind is Fault.INPUTS_FAIL:
            conditions.failed_inputs, conditions.failed_staging = 10, 30

            def heal() -> None:
                conditions.failed_inputs = conditions.failed_staging = 0

            return heal
        conditions.lost_vectors, conditions.failed_transfers, conditions.failed_fetches = 30, 30, 30
        conditions.spread_ns = self._random.choice((20, 300)) * MILLISECOND

        def smooth() -> None:
            conditions.lost_vectors = conditions.failed_transfers = conditions.failed_fetches = 0
            conditions.spread_ns = self._calm_spread_ns

        return smooth


def _asked(neighbor: SystemId, *, is_off: bool) -> ShutOffRequested:
    return ShutOffRequested(answer_to=AnswerTo(0), neighbor=neighbor, is_off=is_off)
