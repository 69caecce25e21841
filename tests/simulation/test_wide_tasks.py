"""Tasks behind a stream of tasks of other modules, in virtual time: they start within a bound.

A task of all slots is one case, the first task of a module without a place is another one.
"""

import pytest

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.checks.invariants import Checks
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.unit.core.rig import sdv, tdv

HUB, MACHINE, WIDE = SystemId("hub"), SystemId("machine"), SystemId("wide")
STREAMS = tuple(map(SystemId, ("one", "three", "two")))
SLOTS = 4
MEMBERS = 500
BOUND_NS = 20 * SECOND
"""Beyond the longest run of an earlier task: 5 s of patience, a quantum of 5 s, and the time until it asks again."""


FIRST_BOUND_NS = 30 * SECOND + 1_250 * MILLISECOND
"""Beyond the longest run: the longest quantum, and what its last tasks in transit, vectors and a search take."""


def star(seed: int, *, mean_ns: int) -> SimulatedFederation:
    """Make a machine of four slots and systems with users, all of them children of one hub."""
    below = (MACHINE, *STREAMS, WIDE)
    up = Neighbor(system=HUB, is_parent=True, is_primary_parent=True)
    children = tuple(Neighbor(system=name, is_child=True, is_primary_child=True) for name in below)
    policy, machine = OpenPolicy(), sdv(slots=SLOTS)
    systems = {HUB: SimulatedSystem(name=HUB, neighbors=children, machine=None, policy=policy)}
    for name in below:
        has_machine = name == MACHINE
        systems[name] = SimulatedSystem(
            name=name, neighbors=(up,), machine=machine if has_machine else None, policy=policy
        )
    checks = Checks({MACHINE: machine.description()}, clocks={name: each.clock for name, each in systems.items()})
    times = RunTimes(seed=seed, mean_ns=mean_ns)
    federation = SimulatedFederation(systems, seed=seed, run_times=times, watcher=checks)
    checks.agenda = federation.agenda
    federation.run(lambda: False, until=Instant(5 * SECOND))
    return federation


def submit(
    federation: SimulatedFederation, system: SystemId, *, cpus: int, members: int = 0, key: str = "first"
) -> None:
    event = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey(f"{system} {key}"),
        tdv=tdv(cpus=cpus, origin=system, user=system),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
    )
    federation.post(system, event)


def ended(federation: SimulatedFederation, system: SystemId) -> list[TaskRow]:
    return [row for task, row in federation.ended.items() if task.system == system]


def ran_ns(row: TaskRow) -> int:
    assert row.result is not None
    return row.result.ran_ns


@pytest.mark.parametrize(
    ("owner", "mean_ns", "seed"),
    [*((owner, 2 * SECOND, seed) for owner in (WIDE, MACHINE) for seed in range(3)), (WIDE, 15 * MINUTE, 0)],
)
def test_a_task_of_all_slots_starts_within_a_bound_behind_endless_narrow_ones(
    owner: SystemId, mean_ns: int, seed: int
) -> None:
    federation = star(seed, mean_ns=mean_ns)
    for system in STREAMS:
        submit(federation, system, cpus=1, members=MEMBERS)
    federation.run(lambda: False, until=Instant(federation.now + 20 * SECOND))
    submitted_at = federation.now
    submit(federation, owner, cpus=SLOTS)
    federation.run(lambda: bool(ended(federation, owner)), until=Instant(federation.now + 150 * mean_ns))
    (row,) = ended(federation, owner)
    assert row.ended_at is not None
    narrow = [each for system in STREAMS for each in ended(federation, system)]
    assert len(narrow) < len(STREAMS) * MEMBERS
    longest_ns = max(map(ran_ns, narrow))
    assert row.ended_at - ran_ns(row) - submitted_at <= BOUND_NS + longest_ns


@pytest.mark.parametrize("seed", range(3))
def test_the_first_task_of_a_module_starts_within_a_bound_behind_endless_ones_of_another(seed: int) -> None:
    federation = star(seed, mean_ns=SECOND // 5)
    submit(federation, STREAMS[0], cpus=1, members=20 * MEMBERS)
    federation.run(lambda: False, until=Instant(federation.now + 2 * MINUTE))
    submitted_at = federation.now
    submit(federation, STREAMS[1], cpus=1)
    federation.run(lambda: bool(ended(federation, STREAMS[1])), until=Instant(federation.now + 5 * MINUTE))
    (row,) = ended(federation, STREAMS[1])
    assert row.ended_at is not None
    longest_ns = max(map(ran_ns, ended(federation, STREAMS[0])))
    assert row.ended_at - ran_ns(row) - submitted_at <= FIRST_BOUND_NS + longest_ns


@pytest.mark.parametrize("seed", range(2))
def test_modules_that_share_a_machine_have_used_equally_much_of_it_in_time_whoever_came_first(seed: int) -> None:
    federation = star(seed, mean_ns=2 * SECOND)
    submit(federation, STREAMS[0], cpus=1, members=20 * MEMBERS)
    federation.run(lambda: False, until=Instant(federation.now + 2 * MINUTE))
    submit(federation, STREAMS[1], cpus=1, members=20 * MEMBERS)
    before = sum(map(ran_ns, ended(federation, STREAMS[0])))
    federation.run(lambda: False, until=Instant(federation.now + 2 * MINUTE))
    # While both wait, the one that has used less gets the longest quanta, and the other one the shortest.
    first, second = (sum(map(ran_ns, ended(federation, system))) for system in STREAMS[:2])
    assert second > 2 * (first - before)
    federation.run(lambda: False, until=Instant(federation.now + 6 * MINUTE))
    first, second = (sum(map(ran_ns, ended(federation, system))) for system in STREAMS[:2])
    # It was that of two minutes; what is left is that of a longest quantum, whose usage comes late to the ledger.
    assert abs(first - second) < 2 * SLOTS * FIRST_BOUND_NS


@pytest.mark.parametrize("seed", range(2))
def test_a_module_that_has_used_much_waits_for_one_that_has_used_nothing_only_for_a_bounded_time(seed: int) -> None:
    federation = star(seed, mean_ns=SECOND // 5)
    submit(federation, STREAMS[0], cpus=1, members=5 * MEMBERS)
    federation.run(lambda: len(federation.ended) == 5 * MEMBERS, until=Instant(federation.now + 30 * MINUTE))
    submit(federation, STREAMS[1], cpus=1, members=20 * MEMBERS)
    federation.run(lambda: False, until=Instant(federation.now + 20 * SECOND))
    submitted_at = federation.now
    submit(federation, STREAMS[0], cpus=1, key="again")
    federation.run(lambda: len(ended(federation, STREAMS[0])) > 5 * MEMBERS, until=Instant(submitted_at + 5 * MINUTE))
    row = ended(federation, STREAMS[0])[-1]
    assert row.ended_at is not None
    longest_ns = max(map(ran_ns, ended(federation, STREAMS[1])))
    assert row.ended_at - ran_ns(row) - submitted_at <= FIRST_BOUND_NS + longest_ns


def test_narrow_tasks_alone_keep_all_slots_busy() -> None:
    federation = star(1, mean_ns=1 * SECOND)
    began_at = federation.now
    for system in STREAMS:
        submit(federation, system, cpus=1, members=MEMBERS)
    federation.run(lambda: len(federation.ended) == len(STREAMS) * MEMBERS, until=Instant(federation.now + 60 * MINUTE))
    rows = federation.ended.values()
    last = max(row.ended_at for row in rows if row.ended_at is not None)
    busy = sum(map(ran_ns, rows)) / (SLOTS * (last - began_at))
    assert len(rows) == len(STREAMS) * MEMBERS
    # Only the quanta differ: nothing is reserved while every free slot is enough for the asking origin.
    assert busy > 0.9
