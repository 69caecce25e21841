"""Histories in virtual time: a whole protocol, with vectors on a simulated network (MESSIAHS 5.1)."""

from itertools import cycle

from messiahs.core.interface.events import Measured
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.simulation.policy_chain import LEAF, MIDDLE, OPEN, ROOT, chain, seen_below, task
from tests.unit.core.rig import sdv

STEADY, UNSTEADY = map(SystemId, ("steady", "unsteady"))
KEEPING = "history { keep $load over 4min; }"


def _two_children(policy: str) -> SimulatedFederation:
    """Return a root with two equal machines, of which one has a load that jumps every few seconds."""
    children = tuple(Neighbor(system=name, is_child=True, is_primary_child=True) for name in (STEADY, UNSTEADY))
    parent = (Neighbor(system=ROOT, is_parent=True, is_primary_parent=True),)
    systems = {
        name: SimulatedSystem(
            name=name,
            neighbors=children if name == ROOT else parent,
            machine=None if name == ROOT else sdv(slots=8),
            policy=parse_policy(policy if name == ROOT else OPEN, file=f"{name}.policy"),
        )
        for name in (ROOT, STEADY, UNSTEADY)
    }
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND))
    for load in cycle((9_000, 0)):
        federation.post(STEADY, Measured(sdv=sdv(slots=8, load=4_500)))
        federation.post(UNSTEADY, Measured(sdv=sdv(slots=8, load=load)))
        federation.run(lambda: False, until=Instant(federation.now + 10 * SECOND))
        if federation.now >= 5 * MINUTE and load == 0:
            return federation
    raise AssertionError


def _ran_on(federation: SimulatedFederation) -> set[str]:
    federation.post(ROOT, task(ROOT, members=4))
    federation.run(lambda: len(federation.ended) == 4, until=Instant(federation.now + 10 * MINUTE))
    return {row.executed_on for row in federation.ended.values()}


def test_a_machine_whose_load_varies_is_asked_after_a_steady_one() -> None:
    policy = f"{KEEPING} {OPEN} rank candidates by least $cand.load_sd, least $load;"
    assert _ran_on(_two_children(policy)) == {STEADY}


def test_by_its_present_load_alone_the_other_one_is_asked() -> None:
    assert _ran_on(_two_children(f"{KEEPING} {OPEN} rank candidates by least $load;")) == {UNSTEADY}


def test_the_history_that_a_machine_sends_travels_with_its_vector() -> None:
    federation = chain({LEAF: f"{KEEPING} {OPEN} advertise every 2s {{ send $load_mean, $load_sd; }}"})
    for load in (2_000, 8_000, 8_000):
        federation.post(LEAF, Measured(sdv=sdv(slots=2, load=load)))
        federation.run(lambda: False, until=Instant(federation.now + MINUTE))
    for system in (MIDDLE, ROOT):
        (seen,) = seen_below(federation, system)
        assert {"load_mean", "load_sd"} <= dict(seen.attributes).keys()
