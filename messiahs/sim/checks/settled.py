"""Conditions some time after all faults have healed: all tasks have ended, and nothing is left over."""

from collections import Counter
from collections.abc import Iterator

from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, UsageRow
from messiahs.core.interface.lending import LendRow
from messiahs.core.interface.membership_rows import DrainRow, HandoverRow, MemberRow, RemovedRow
from messiahs.core.interface.messages import VectorKind
from messiahs.core.interface.rows import CountersRow, RememberedRow, SubmissionRow, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.vectors.vectors import Interval, Vector
from messiahs.sim.checks.oracle import Kinship, Machines
from messiahs.sim.hosts.host import SimulatedHost

_PERIODIC = (
    TimerKind.OUTPUT,
    TimerKind.INPUT,
    TimerKind.POLL,
    TimerKind.ASK,
    TimerKind.CHANGE,
    TimerKind.SUM,
    TimerKind.SEEN,
    TimerKind.CYCLE,
    TimerKind.RETENTION,
)
_PAUSES = (TimerKind.SIBLING_HELD, TimerKind.SIBLING_ASKED, TimerKind.SIBLING_ASSIGNED)
"""Timers that only keep a neighbor from acting again too soon."""
_LEDGER = (ClaimBookRow, UsageRow, ConsumerRow, NeighborAccountRow)
_KEPT = (CountersRow, RememberedRow, AuditRow, MemberRow, RemovedRow, DrainRow, HandoverRow, LendRow, *_LEDGER)
NAME = "is"
"""The attribute with which each machine of a simulation reports its name, and on which all classes split."""


def machine_name(system: str) -> str:
    """Return the name of a machine in its description: that of its system, in letters that no system's name has."""
    return system.upper()


def leftovers(host: SimulatedHost) -> Iterator[str]:
    """Yield everything that a module, its disk or its machine still holds, and should not hold when quiet."""
    state = host.module.state
    tables: tuple[tuple[str, tuple[object, ...]], ...] = (
        ("submissions", tuple(state.origin.submissions)),
        ("tasks", tuple(state.origin.tasks)),
        ("shapes", tuple(state.origin.shapes)),
        ("requests", tuple(state.origin.requests)),
        ("held claims", tuple(state.origin.claims)),
        (
            "outputs to fetch",
            (
                *state.origin.fetching,
                *state.origin.fetch_failures,
                *state.origin.fetch_legs,
                *state.origin.fetch_troubles,
            ),
        ),
        ("searches", (*state.hop.searches, *state.hop.asks)),
        ("passed claims", tuple(state.hop.passed)),
        ("shown claims", tuple(state.border.claims)),
        ("hidden submissions", (*state.border.submissions, *state.border.shown, *state.border.brought)),
        ("granted claims", tuple(state.executor.claims)),
        ("attempts", tuple(state.executor.attempts)),
        ("guarded attempts", tuple(state.executor.guards)),
        ("offers", (*state.executor.offers, *state.executor.offered)),
    )
    for what, table in tables:
        if table:
            yield f"{state.system} still has {what}: {', '.join(map(str, table))}"
    for kind, key, _ in state.timers.waiting():
        if kind not in _PERIODIC + _PAUSES:
            yield f"{state.system} still has a {kind.name} timer for {key!r}"
    if host.machine is not None and host.machine.held:
        yield f"the machine of {state.system} still keeps {', '.join(map(str, host.machine.held))}"
    for row in host.disk.rows():
        has_ended = isinstance(row, SubmissionRow | TaskRow) and row.ended_at is not None
        if not has_ended and not isinstance(row, _KEPT):
            yield f"the disk of {state.system} still has {row}"


def wrong_views(host: SimulatedHost, kinship: Kinship) -> Iterator[str]:
    """Compare the views of a module with the machines that it should know, and with idle machines."""
    state = host.module.state
    for neighbor in state.neighbors.values():
        for kind, expected in _expected(state.system, neighbor, kinship):
            view = state.updates.views.get((neighbor.system, kind))
            received = machines_in(view.message.vector) if view is not None else Counter()
            if received != expected:
                yield f"{neighbor.system} reports {_listed(received)} to {state.system}, not {_listed(expected)}"
            if view is not None:
                yield from _busy(state, neighbor, view.message.vector)
            if view is not None and view.message.waiting:
                yield f"{neighbor.system} reports {view.message.waiting} tasks as waiting to {state.system}"
            if view is not None and view.message.lets_go:
                yield f"{neighbor.system} reports running tasks that may move to {state.system}, but none runs"


def machines_in(vector: Vector) -> Machines:
    """Return the machines in a vector."""
    return Counter({str(dict(each.attributes).get(NAME)).lower(): each.count for each in vector.classes})


def _expected(system: SystemId, neighbor: Neighbor, kinship: Kinship) -> Iterator[tuple[VectorKind, Machines]]:
    if neighbor.is_child:
        yield VectorKind.FOR_PARENTS, kinship.up(neighbor.system)
    if neighbor.is_sibling:
        yield VectorKind.FOR_SIBLINGS, kinship.up(neighbor.system)
    if neighbor.is_parent:
        yield VectorKind.FOR_CHILDREN, kinship.down_to(neighbor.system, system)


def _busy(state: ModuleState, neighbor: Neighbor, vector: Vector) -> Iterator[str]:
    for machine_class in vector.classes:
        values = dict(machine_class.attributes)
        for free, total in (("free_slots", "slots"), ("avail_mem", "total_mem"), ("avail_disk", "total_disk")):
            one, all_of_it = values.get(free), values.get(total)
            if isinstance(one, Interval) and isinstance(all_of_it, Interval) and one != all_of_it:
                text = f"{free} of {values.get(NAME)} is {one.low}, of {all_of_it.low}"
                yield f"{neighbor.system} reports a busy machine to {state.system}, but none is: {text}"


def _listed(machines: Machines) -> str:
    return ", ".join(f"{name} x {count}" if count > 1 else name for name, count in sorted(machines.items())) or "none"
