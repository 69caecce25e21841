"""What a swarm run is made of, drawn from its seed: topology, machines, policies, workload, and kinds of faults."""

from dataclasses import dataclass
from random import Random

from messiahs.config.settings import MachineSettings
from messiahs.config.topology import System, Topology
from messiahs.config.topology_neighbors import neighbors_of
from messiahs.core.attributes import Value
from messiahs.core.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.events import AnswerTo, Submitted
from messiahs.core.ids import ClientKey, SystemId
from messiahs.core.instants import MILLISECOND, SECOND
from messiahs.core.messages import Command
from messiahs.core.ports import Timeouts
from messiahs.language.blocks.files import parse_policy
from messiahs.sim.agenda import DriftingClock
from messiahs.sim.conditions import Conditions
from messiahs.sim.faults import Fault
from messiahs.sim.host import SimulatedSystem
from messiahs.sim.machine import RunTimes
from messiahs.sim.oracle import Kinship
from messiahs.sim.settled import NAME
from messiahs.sim.users import Order

_GIB = 1 << 30
_DRIFT_PPM = 20_000
_CAMPUS = {
    "purdue": (),
    "cs": ("purdue",),
    "pucc": ("purdue",),
    "xinu": ("cs",),
    "renaissance": ("cs",),
    "blays": ("xinu",),
    "nyneve": ("xinu", "renaissance"),
    "leonardo": ("renaissance",),
}
_OPEN = "accept from any { limit 10000 tasks; }"
_POLICIES = (
    _OPEN,
    "accept from any { limit 6 tasks; } accept from users { limit 10000 tasks; }",
    "accept from any { when $now.clock >= 00:03; }",
    'accept from any { require $mem default 0 <= 1GiB else "too large"; }',
)
_PICKY = _POLICIES[3]
_SHARING = (
    "",
    "migrate { ask every 3s when 1 = 1 wanting { }; }",
    "migrate { ask every 5s when $here.waiting = 0 wanting { $cpus <= 1 }; keep at least 2 tasks; }",
    "migrate { offer when $task.waited > 2s; } rank tasks by least $task.mem default 0;",
    "rank tasks by most $task.cpus, random;",
)
_GIVING = "migrate { ask every 3s when $here.free_slots >= 1 wanting { }; offer when $task.ran >= 1s; }"
"""Whoever has room to spare takes from others what runs there."""
_AT_DESK = "$here.keyboard_idle < 5s"
_PAUSING = f"suspend when {_AT_DESK}; resume unless {_AT_DESK} for 2s;"
_RUNNING = (
    f"running {{ {_PAUSING} }}",
    f"running {{ {_PAUSING} vacate when $task.suspended >= 8s grace 3s; }}",
    f"running {{ {_PAUSING} move when $task.suspended >= 4s grace 20s then vacate; }}",
    f"running {{ {_PAUSING} move when {_AT_DESK} grace 10s then suspend; }}",
    f"running {{ move when {_AT_DESK}; kill when {_AT_DESK} for 30s grace 2s; }}",
    f"running {{ kill when {_AT_DESK} for 3s; }}",
)
_RARE = (Fault.STATE_WIPED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One run before it begins."""

    systems: dict[SystemId, SimulatedSystem]
    kinship: Kinship
    orders: list[Order]
    run_times: RunTimes
    conditions: Conditions
    kinds: tuple[Fault, ...]
    fault_every_ns: int
    owner_every_ns: int
    """About so often an owner comes to his machine; 0 is never."""
    healed_at_ns: int


def draw(seed: int) -> Drawn:
    """Give the run of a seed."""
    random = Random(f"swarm/{seed}")  # noqa: S311 - a simulation wants to be repeated
    topology = _topology(random)
    is_picky, has_one_root = random.randrange(5) == 0, sum(not system.parents for system in topology.systems) == 1
    # Drawn apart, so that the rest of a run is what it was without.
    sharing = Random(f"swarm/{seed}/sharing")  # noqa: S311 - a simulation wants to be repeated
    is_giving = Random(f"swarm/{seed}/giving").randrange(4) == 0  # noqa: S311 - a simulation wants to be repeated
    owners = Random(f"swarm/{seed}/owners")  # noqa: S311 - a simulation wants to be repeated
    owner_every_ns = owners.choice((0, 0, 3, 20)) * SECOND
    systems = _systems(
        random,
        topology,
        is_picky=is_picky,
        sharing=sharing if not is_giving else None,
        owners=owners if owner_every_ns else None,
    )
    healed_at_ns = random.randrange(60, 240) * SECOND
    return Drawn(
        systems=systems,
        kinship=_kinship(topology),
        orders=_orders(random, systems, is_certain=has_one_root and not is_picky, until_ns=healed_at_ns),
        run_times=RunTimes(
            seed=seed,
            mean_ns=random.choice((200 * MILLISECOND, 5 * SECOND, 40 * SECOND)),
            failing=random.choice((0, 20)),
            writing=random.choice((0, 50)),
        ),
        conditions=Conditions(
            random=Random(f"conditions/{seed}"),  # noqa: S311 - a simulation wants to be repeated
            spread_ns=random.choice((0, 2 * MILLISECOND)),
            commit_ns=random.choice((0, 5 * MILLISECOND)),
            lingering_ns=random.choice((0, 10 * SECOND)),
        ),
        kinds=_kinds(random),
        fault_every_ns=random.choice((2, 5, 15)) * SECOND,
        healed_at_ns=healed_at_ns,
        owner_every_ns=owner_every_ns,
    )


def _kinds(random: Random) -> tuple[Fault, ...]:
    """Draw some kinds of faults: with fewer kinds, each of them meets longer stretches of undisturbed life."""
    often = [kind for kind in Fault if kind not in _RARE or random.randrange(8) == 0]
    return tuple(kind for kind in often if random.randrange(3)) or (Fault.DAEMON_CRASH,)


def _topology(random: Random) -> Topology:
    if random.randrange(4) == 0:
        parents = dict(_CAMPUS)
    else:
        parents = {}
        for number in range(random.randrange(1, 8)):
            above = list(parents)[: random.choice((1, 3, 8))]
            is_root = not above or random.randrange(12) == 0
            parents[f"s{number}"] = (
                () if is_root else tuple(random.sample(above, min(len(above), random.choice((1, 1, 1, 2, 3)))))
            )
    with_machine = [name for name in parents if random.randrange(3)] or [random.choice(list(parents))]
    return Topology(
        federation="swarm",
        systems=tuple(
            System(
                name=SystemId(name),
                parents=tuple(SystemId(parent) for parent in above),
                primary_parent=SystemId(above[0]) if above else None,
                machine=MachineSettings() if name in with_machine else None,
            )
            for name, above in parents.items()
        ),
    )


def _systems(
    random: Random, topology: Topology, *, is_picky: bool, sharing: Random | None, owners: Random | None
) -> dict[SystemId, SimulatedSystem]:
    timeouts = Timeouts(
        update_period_ns=random.choice((2, 5)) * SECOND,
        request_ns=random.choice((3, 10)) * SECOND,
        lease_ns=random.choice((5, 15, 40)) * SECOND,
        kill_grace_ns=random.choice((500, 5_000)) * MILLISECOND,
        status_ns=random.choice((15, 60)) * SECOND,
    )
    policies = _POLICIES if is_picky else _POLICIES[:3]
    systems = {}
    for system in topology.systems:
        accepts = random.choice((_OPEN, random.choice(policies)))
        text = f'policy "swarm" version 1; attribute ${NAME} string; advertise every 2s {{ send all; }}'
        text += f" combine {{ ${NAME}: key; default: carry; }} {accepts} "
        text += sharing.choice(_SHARING) if sharing is not None else _GIVING
        text += f" {owners.choice(_RUNNING)}" if owners is not None else ""
        systems[system.name] = SimulatedSystem(
            name=system.name,
            neighbors=neighbors_of(topology, system.name),
            machine=_machine(random, system.name) if system.machine is not None else None,
            policy=parse_policy(text, file="swarm", timeouts=timeouts),
            clock=DriftingClock(
                ahead_ns=random.randrange(100) * SECOND, gain_ppm=random.randrange(-_DRIFT_PPM, _DRIFT_PPM)
            ),
        )
    return systems


def _machine(random: Random, name: str) -> SDV:
    slots = random.choice((1, 2, 4))
    memory, disk = random.choice((2, 4, 8)) * _GIB, 64 * _GIB
    said: dict[str, Value] = {
        NAME: name,
        "nproc": slots,
        "slots": slots,
        "speed": random.choice((500, 1000)),
        "total_mem": memory,
        "avail_mem": memory,
        "total_disk": disk,
        "avail_disk": disk,
        "load": 0,
        "arch": "x86_64",
        "os": "Linux",
    }
    return SDV(sorted_pairs(said))


def _kinship(topology: Topology) -> Kinship:
    def primary_first(system: System) -> tuple[str, ...]:
        return tuple(sorted(system.parents, key=lambda parent: parent != system.primary_parent))

    return Kinship(
        parents={system.name: primary_first(system) for system in topology.systems},
        with_machine=frozenset(system.name for system in topology.systems if system.machine is not None),
        sibling_links=frozenset(
            (system.name, neighbor.system)
            for system in topology.systems
            for neighbor in neighbors_of(topology, system.name)
            if neighbor.is_sibling and system.name < neighbor.system
        ),
    )


def _orders(
    random: Random, systems: dict[SystemId, SimulatedSystem], *, is_certain: bool, until_ns: int
) -> list[Order]:
    # Where there is no machine, or only a crowded one, tasks go to others.
    without = [name for name, system in systems.items() if system.machine is None] or list(systems)
    origins = random.choice((list(systems), without, random.sample(without, 1)))
    return [
        _order(random, random.choice(origins), number, is_certain=is_certain, until_ns=until_ns)
        for number in range(random.randrange(2, 9))
    ]


def _order(random: Random, system: SystemId, number: int, /, *, is_certain: bool, until_ns: int) -> Order:
    tdv: dict[str, Value] = {"cpus": 1, "origin": system, "user": random.choice(("ann", "bob"))}
    if random.randrange(3) == 0:
        tdv["mem"] = random.choice((1, 2)) * _GIB
    if random.randrange(5) == 0:
        tdv["est_time"] = random.choice((2, 20))
    deadline_ns = random.randrange(5, 300) * SECOND if not is_certain or random.randrange(8) == 0 else None
    members = random.choice((0, 2, 5, 12, 20))
    at_ns = random.randrange(until_ns)
    event = Submitted(
        answer_to=AnswerTo(0),
        key=ClientKey(f"order-{number}"),
        tdv=TDV(sorted_pairs(tdv)),
        requirement=random.choice(("", "", "$slots >= 1")),
        command=Command(argv=("true",)),
        members=members,
        retries=random.choice((0, 0, 2)),
        waits=random.randrange(8) > 0,
        deadline_ns=deadline_ns,
    )
    return Order(
        system=system,
        event=event,
        at_ns=at_ns,
        is_certain=is_certain,
        cancelled_at_ns=at_ns + random.randrange(30) * SECOND if random.randrange(5) == 0 else None,
        cancelled_member=random.randrange(members + 1),
    )
