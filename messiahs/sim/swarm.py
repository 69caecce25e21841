"""The swarm: complete lives of random federations in which faults occur, then heal, and every task must end.

One seed gives one run. The real modules run; time, network, disks and machines are simulated (in the spirit of
TigerBeetle's simulator). `run_seed` returns the outcome, for a failure with everything needed to understand it.
"""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from messiahs.core.model.instants import HOUR, SECOND, Instant, after
from messiahs.recount.rounds import Recount
from messiahs.sim.checks.invariants import Checks, Violation
from messiahs.sim.checks.ledgers import disagreements
from messiahs.sim.checks.oracle import Kinship
from messiahs.sim.checks.recounted import read_hosts, wrong_sums
from messiahs.sim.checks.settled import leftovers, wrong_views
from messiahs.sim.garbage import rare_collections
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.load.changes import Changes
from messiahs.sim.load.dials import Dials
from messiahs.sim.load.draw import Drawn, draw
from messiahs.sim.load.faults import Fault, Faults
from messiahs.sim.load.owners import Owners
from messiahs.sim.load.users import Users

_LONGEST_NS = 4 * HOUR
"""Time after healing by which the last task must have ended, with nothing left over."""
_CHECK_INTERVAL_NS = 5 * SECOND
_ADVERTISED_NS = 30 * SECOND
"""Time in which all neighbors receive the final vectors."""
_LINES = 40
_DIALS_PER_VISIT = 2
"""An owner comes twice for each time that one turns the dial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A violation, its time, and the latest events and actions of the task concerned."""

    seed: int
    at_ns: int
    text: str
    lines: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that replays the run."""
        return f"messiahs sim swarm --runs 1 --seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcome of one seed."""

    seed: int
    digest: str
    systems: int
    tasks: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    virtual_ns: int = 0
    events: int = 0
    failure: Failure | None = None


def run_seed(seed: int, *, sabotage: Callable[[SimulatedFederation], None] | None = None) -> Run:
    """Run a seed to its end, or to the first violation.

    `sabotage` may break a rule of the simulated world before the run begins, to test whether that is detected.
    """
    drawn = draw(seed)
    checks = Checks(
        {name: system.machine.description() for name, system in drawn.systems.items() if system.machine},
        clocks={name: system.clock for name, system in drawn.systems.items()},
        secrecy=drawn.secrecy,
    )
    checks.may_repeat = Fault.DATABASE_RESTORED in drawn.kinds
    checks.is_forgetful = checks.may_repeat or Fault.STATE_WIPED in drawn.kinds
    federation = SimulatedFederation(
        drawn.systems, seed=seed, run_times=drawn.run_times, conditions=drawn.conditions, watcher=checks
    )
    checks.agenda = federation.agenda
    random = Random(f"faults/{seed}")  # noqa: S311 - a simulation is repeatable
    faults = Faults(federation, random, kinds=drawn.kinds, families=drawn.families)
    members = Random(f"members/{seed}")  # noqa: S311 - likewise
    changes = Changes(federation, members, drawn.changes)
    dials = Dials(federation, Random(f"dials/{seed}"))  # noqa: S311 - likewise
    if sabotage is not None:
        sabotage(federation)
    failure = None
    try:
        with rare_collections():
            _live(drawn, federation, checks, faults=faults, changes=changes, dials=dials)
    except Violation as violation:
        lines = checks.last_about(violation.task, _LINES)
        failure = Failure(seed=seed, at_ns=federation.now, text=str(violation), lines=tuple(lines))
    except Exception:  # noqa: BLE001 - any exception of a module is a defect, and is reported like the others
        lines = [*checks.last_about(None, _LINES), *traceback.format_exc().splitlines()]
        failure = Failure(seed=seed, at_ns=federation.now, text="a module raised", lines=tuple(lines))
    return Run(
        seed=seed,
        digest=federation.digest,
        systems=len(drawn.systems),
        tasks=Counter(str(row.state) for row in checks.finals.values()),
        faults=Counter({str(kind): count for each in (faults, changes, dials) for kind, count in each.counts.items()}),
        virtual_ns=federation.now,
        events=federation.events,
        failure=failure,
    )


def _live(
    drawn: Drawn,
    federation: SimulatedFederation,
    checks: Checks,
    *,
    faults: Faults,
    changes: Changes,
    dials: Dials,
) -> None:
    users = Users(federation, checks, drawn.orders)
    federation.observe = users.acted
    users.begin()
    faults.begin(every_ns=drawn.fault_every_ns, note=checks.note)
    changes.begin(note=checks.note)
    owners = Owners(federation, Random(f"owners/{drawn.run_times.seed}"))  # noqa: S311 - repeatable
    if drawn.owner_every_ns:
        owners.begin(every_ns=drawn.owner_every_ns)
        dials.begin(every_ns=_DIALS_PER_VISIT * drawn.owner_every_ns, note=checks.note)
    federation.run(lambda: False, until=Instant(drawn.healed_at_ns))
    faults.heal()
    changes.settle()
    dials.settle()
    owners.send_home()
    healed_at = federation.now
    while not users.are_answered or _left(federation) or not changes.is_settled() or not dials.are_settled:
        if federation.now > healed_at + _LONGEST_NS:
            _report_leftovers(federation, users, changes)
        federation.run(lambda: False, until=after(federation.now, _CHECK_INTERVAL_NS))
    federation.run(lambda: False, until=after(federation.now, _ADVERTISED_NS))
    _judge(changes.kinship(drawn.kinship), federation, users)
    if not checks.is_forgetful:
        for text in disagreements([host.module for host in federation.members.values()], cut=checks.overstated):
            raise Violation(text)


def _left(federation: SimulatedFederation) -> list[str]:
    return [text for host in federation.members.values() for text in leftovers(host)]


def _report_leftovers(federation: SimulatedFederation, users: Users, changes: Changes) -> None:
    unsettled = () if changes.is_settled() else ("a change of the federation has not ended",)
    left = "\n  ".join((*_left(federation), *unsettled)) or "a user has no answer"
    task = next((task for task, _ in users.verdicts()), None)
    raise Violation(f"four hours after everything was healed\n  {left}", task)


def _judge(kinship: Kinship, federation: SimulatedFederation, users: Users) -> None:
    for task, text in users.verdicts():
        raise Violation(text, task)
    for text in _left(federation):
        raise Violation(text)
    for host in federation.members.values():
        for text in wrong_views(host, kinship):
            raise Violation(text)
    for text in wrong_sums(_recounted(federation)):
        raise Violation(text)


def _recounted(federation: SimulatedFederation) -> Recount:
    """Audit the vectors of all modules, again and again while updates are in flight."""
    recount, until = Recount(), after(federation.now, _ADVERTISED_NS)
    while True:
        read_hosts(recount, federation.members.values(), federation.now)
        if recount.is_settled or federation.now >= until:
            return recount
        federation.run(lambda: False, until=after(federation.now, SECOND))
