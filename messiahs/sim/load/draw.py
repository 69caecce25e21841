"""The parameters of a swarm run, drawn from its seed: topology, machines, policies, workload, and kinds of faults."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from messiahs.config.settings import MachineSettings
from messiahs.config.topology.neighbors import neighbors_of
from messiahs.config.topology.topology import System, Topology
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import GPUS, Counted
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND
from messiahs.core.model.trust import UNKNOWN, Trust
from messiahs.sim.checks.oracle import Kinship
from messiahs.sim.checks.secrecy import Secrecy
from messiahs.sim.checks.settled import NAME, machine_name
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.load.borders import secrecy_of, with_borders
from messiahs.sim.load.changes import Plan
from messiahs.sim.load.dependencies import bundled, ordered
from messiahs.sim.load.faults import Fault
from messiahs.sim.load.orders import OrderBook, limited
from messiahs.sim.load.outbound import with_outbound
from messiahs.sim.load.policies import PolicyFamily
from messiahs.sim.load.users import Order
from messiahs.sim.world.agenda import DriftingClock
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.sites import apart_from, draw_sites, introductions_of

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
_TWO_SITES = {
    "gate": (),
    "chem": ("gate",),
    "lab": ("chem",),
    "border": ("gate",),
    "phys": ("border",),
    "farm": ("phys",),
}
_ORIGINS_OF_SITE = 3
"""Tasks are submitted at the first systems, which form one of the two sites."""
_RARE = (Fault.STATE_WIPED, Fault.DATABASE_RESTORED)
_DRAWN_APART = {
    Fault.SHUT_OFF: ("shut off", (True, False, False, False)),
    Fault.REVOKED: ("revoked", (False, True)),
    Fault.BY_HAND: ("by hand", (False, True)),
}
"""Drawn from streams of their own (name, chances), so that they do not change the other kinds of a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The parameters of one run."""

    systems: dict[SystemId, SimulatedSystem]
    families: dict[SystemId, PolicyFamily]
    """The source of the policies of each system."""
    kinship: Kinship
    secrecy: Secrecy
    orders: list[Order]
    run_times: RunTimes
    conditions: Conditions
    kinds: tuple[Fault, ...]
    fault_every_ns: int
    owner_every_ns: int
    """Mean interval between the visits of an owner to a machine; 0 is never."""
    healed_at_ns: int
    changes: Plan


def draw(seed: int) -> Drawn:
    """Return the run of a seed."""
    random = _stream(seed, "run")
    has_hops = _stream(seed, "hops").randrange(5) == 0
    topology = with_borders(_stream(seed, "borders"), _two_sites(random) if has_hops else _topology(random))
    topology = with_outbound(_stream(seed, "outbound"), topology)
    is_picky, has_one_root = random.randrange(5) == 0, sum(not system.parents for system in topology.systems) == 1
    owner_every_ns = random.choice((0, 0, 3, 20)) * SECOND
    run_times = RunTimes(
        seed=seed,
        mean_ns=random.choice((200 * MILLISECOND, 5 * SECOND, 40 * SECOND)),
        failing=random.choice((0, 20)),
        writing=random.choice((0, 50)),
    )
    families = _families(
        random, topology, is_picky=is_picky, is_giving=random.randrange(4) == 0, has_owners=owner_every_ns > 0
    )
    families = _keeping(_stream(seed, "retention"), _polling(_stream(seed, "polls"), families))
    sites = draw_sites(_stream(seed, "sites"), topology, gate=SystemId("border") if has_hops else None)
    systems, gpus = _with_gpus(_stream(seed, "gpus"), _systems(_stream(seed, "systems"), topology, families, sites))
    healed_at_ns = random.randrange(60, 240) * SECOND
    has_borders = any(system.is_border for system in topology.systems)
    book = OrderBook(
        origins=list(systems)[:_ORIGINS_OF_SITE] if has_hops else _origins(random, systems),
        machines=[system.machine for system in systems.values() if system.machine is not None],
        is_certain=has_one_root and not is_picky,
        # A border refuses requirements over what its policy withholds, and some withhold all but the name.
        requirement=f'${NAME} ne "none"' if has_borders else "$slots >= 1",
        until_ns=healed_at_ns,
        mean_run_ns=run_times.mean_ns,
        gpus=gpus,
    )
    secrecy = secrecy_of(topology)
    plan = _plan(_stream(seed, "members"), systems, families, secrecy)
    return Drawn(
        systems=systems,
        families=families,
        kinship=_kinship(topology),
        secrecy=secrecy,
        changes=plan,
        orders=_orders(seed, book),
        run_times=run_times,
        conditions=Conditions(
            random=_stream(seed, "conditions"),
            spread_ns=random.choice((0, 2 * MILLISECOND)),
            commit_ns=random.choice((0, 5 * MILLISECOND)),
            lingering_ns=random.choice((0, 10 * SECOND)),
            inputs_ns=random.choice((1, 30)) * SECOND,
            outputs_ns=_stream(seed, "outputs").choice((0, 0, 5)) * SECOND,
            clock_step_ns=random.choice((0, 30)) * MINUTE,
            unlimited=_stream(seed, "limits").choice((0, 0, 50)),
        ),
        kinds=(
            *((*_kinds(random)[::4], *[Fault.HOP_CRASH] * 4) if has_hops else _kinds(random)),
            *(kind for kind, (name, chances) in _DRAWN_APART.items() if _stream(seed, name).choice(chances)),
        ),
        fault_every_ns=random.choice((2, 5, 15)) * SECOND,
        healed_at_ns=healed_at_ns,
        owner_every_ns=owner_every_ns,
    )


def _orders(seed: int, book: OrderBook) -> list[Order]:
    drawn = book.draw(_stream(seed, "orders"), _stream(seed, "uses"))
    orders = ordered(_stream(seed, "dependencies"), _stream(seed, "eaches"), drawn)
    return bundled(_stream(seed, "bundles"), limited(_stream(seed, "at once"), orders))


def _stream(seed: int, name: str) -> Random:
    """Return an independent source of random numbers: drawing from it does not change other parts of the run."""
    return Random(f"swarm/{seed}/{name}")  # noqa: S311 - a simulation is repeatable


def _kinds(random: Random) -> tuple[Fault, ...]:
    """Draw some kinds of faults: with fewer kinds, each meets longer stretches of undisturbed operation."""
    often = [
        kind for kind in Fault if kind not in (*_RARE, *_DRAWN_APART) or (kind in _RARE and random.randrange(8) == 0)
    ]
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
    return _built(parents, with_machine)


def _two_sites(random: Random) -> Topology:
    """Draw two sites whose machines are all at one of them, so that bytes of the other one's tasks pass hops."""
    with_machine = [name for name in ("phys", "farm") if random.randrange(2)] or ["farm"]
    return _built(_TWO_SITES, with_machine)


def _built(parents: Mapping[str, Sequence[str]], with_machine: Collection[str]) -> Topology:
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


def _families(
    random: Random, topology: Topology, *, is_picky: bool, is_giving: bool, has_owners: bool
) -> dict[SystemId, PolicyFamily]:
    update_period_ns, request_ns = random.choice((2, 5)) * SECOND, random.choice((3, 10)) * SECOND
    kill_grace_ns, status_ns = random.choice((500, 5_000)) * MILLISECOND, random.choice((15, 60)) * SECOND
    leases = (random.choice((5, 15, 40)),) if random.randrange(2) else (5, 15, 40, 120)
    return {
        system.name: PolicyFamily(
            is_picky=is_picky,
            is_giving=is_giving,
            has_owners=has_owners,
            timeouts=Timeouts(
                update_period_ns=update_period_ns,
                request_ns=request_ns,
                lease_ns=random.choice(leases) * SECOND,
                kill_grace_ns=kill_grace_ns,
                status_ns=status_ns,
            ),
        )
        for system in topology.systems
    }


def _polling(random: Random, families: dict[SystemId, PolicyFamily]) -> dict[SystemId, PolicyFamily]:
    """Let some systems poll their neighbors, and some declare them down at once at an input timeout (MESSIAHS 6.1)."""
    if random.randrange(4):
        return families
    polls_ns, queries = (None, 500 * MILLISECOND, 3 * SECOND), (True, False)
    return {
        name: replace(
            family,
            timeouts=replace(family.timeouts, poll_ns=random.choice(polls_ns), queries_silent=random.choice(queries)),
        )
        for name, family in families.items()
    }


def _keeping(random: Random, families: dict[SystemId, PolicyFamily]) -> dict[SystemId, PolicyFamily]:
    """Let some systems forget ended tasks within the run, and some never."""
    if random.randrange(3):
        return families
    times_ns = (None, 5 * SECOND, 30 * SECOND)
    return {
        name: replace(family, timeouts=replace(family.timeouts, retention_ns=random.choice(times_ns)))
        for name, family in families.items()
    }


def _systems(
    random: Random, topology: Topology, families: dict[SystemId, PolicyFamily], sites: dict[SystemId, Trust], /
) -> dict[SystemId, SimulatedSystem]:
    return {
        system.name: SimulatedSystem(
            name=system.name,
            neighbors=neighbors_of(topology, system.name),
            machine=_machine(random, system.name) if system.machine is not None else None,
            policy=families[system.name].draw(random),
            trust=sites[system.name],
            apart=apart_from(system.name, neighbors_of(topology, system.name), sites),
            other_sites=introductions_of(system.name, sites),
            reach=system.reach,
            clock=DriftingClock(
                ahead_ns=random.randrange(100) * SECOND, gain_ppm=random.randrange(-_DRIFT_PPM, _DRIFT_PPM)
            ),
        )
        for system in topology.systems
    }


def _plan(
    random: Random,
    systems: dict[SystemId, SimulatedSystem],
    families: dict[SystemId, PolicyFamily],
    secrecy: Secrecy,
    /,
) -> Plan:
    """Draw changes for a third of the federations whose roots are unknown; guests are added to their systems."""
    hidden = {each for border, inside in secrecy.inside.items() for each in (border, *inside)}
    hosting = tuple(name for name in systems if name not in hidden)
    if random.randrange(3) or not hosting or any(system.trust != UNKNOWN for system in systems.values()):
        return Plan(guests=(), hosting=(), every_ns=0)
    guests = _guests(random, systems, families)
    return Plan(guests=guests, hosting=hosting, every_ns=random.choice((3, 10, 30)) * SECOND)


def _guests(
    random: Random, systems: dict[SystemId, SimulatedSystem], families: dict[SystemId, PolicyFamily], /
) -> tuple[SystemId, ...]:
    """Add systems without neighbors, with the policies of some other system."""
    guests = tuple(SystemId(f"guest{number}") for number in range(random.randrange(1, 4)))
    like = list(families)
    for name in guests:
        families[name] = families[random.choice(like)]
        systems[name] = SimulatedSystem(
            name=name,
            neighbors=(),
            machine=_machine(random, name),
            policy=families[name].draw(random),
            clock=DriftingClock(
                ahead_ns=random.randrange(100) * SECOND, gain_ppm=random.randrange(-_DRIFT_PPM, _DRIFT_PPM)
            ),
        )
    return guests


def _with_gpus(
    random: Random, systems: dict[SystemId, SimulatedSystem], /
) -> tuple[dict[SystemId, SimulatedSystem], int]:
    """Give every machine the same number of GPUs, in some runs, and return it."""
    gpus = random.choice((0, 0, 1, 3))
    counted = (Counted(name=GPUS, numbers=tuple(range(gpus))),) if gpus else ()
    return {name: replace(system, counted=counted) for name, system in systems.items()}, gpus


def _origins(random: Random, systems: dict[SystemId, SimulatedSystem]) -> list[SystemId]:
    # Tasks of systems without a machine, or of a single crowded one, have to run elsewhere.
    without = [name for name, system in systems.items() if system.machine is None] or list(systems)
    return random.choice((list(systems), without, random.sample(without, 1)))


def _machine(random: Random, name: str) -> SDV:
    slots = random.choice((1, 2, 4))
    memory, disk = random.choice((2, 4, 8)) * _GIB, 64 * _GIB
    machine: dict[str, Value] = {
        NAME: machine_name(name),
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
    return SDV(sorted_pairs(machine))


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
