"""Two sites below a module of a third one, in virtual time: what passes it, and what it refuses."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from messiahs.config.topology.reach import OPEN, OUTBOUND, PROXY
from messiahs.core.interface.actions import Action, SendTasks
from messiahs.core.interface.events import AnswerTo, RootsChanged, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Splice
from messiahs.core.model.trust import Trust
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.sites import apart_from, introductions_of, key_of
from tests.unit.core.rig import sdv, tdv

PACT, LOWER, ALPHA, BETA = map(SystemId, ("pact", "lower", "alpha", "beta"))
IN_ALPHA, IN_BETA = map(SystemId, ("in-alpha", "in-beta"))
ROOTS = {PACT: b"p" * 16, LOWER: b"p" * 16, ALPHA: b"a" * 16, BETA: b"b" * 16}
INSIDE_ROOTS = {IN_ALPHA: ROOTS[ALPHA], IN_BETA: ROOTS[BETA]}
PARENTS = {LOWER: PACT, ALPHA: PACT, BETA: LOWER, IN_ALPHA: ALPHA, IN_BETA: BETA}
NEW = b"n" * 16
"""The root that replaces that of `pact` and `lower`."""
MEMBERS = 8


class World:
    """Two machines of two sites, and two modules of a third site between them (mutable).

    With `reach: proxy` the machines are behind the borders of their sites, and the sites behind firewalls.
    """

    def __init__(self, *, are_introduced: bool, trust_relays: bool = False, reach: str = OUTBOUND) -> None:
        self.sent: set[tuple[SystemId, SystemId, str]] = set()
        self.origin, machine = (IN_ALPHA, IN_BETA) if reach == PROXY else (ALPHA, BETA)
        slots, self._roots = {self.origin: 2, machine: 3}, ROOTS | (INSIDE_ROOTS if reach == PROXY else {})
        trust = {
            name: self._trust(root, are_introduced=are_introduced, all_relays=trust_relays)
            for name, root in self._roots.items()
        }
        systems = {name: self._system(name, trust, reach=reach, slots=slots.get(name, 0)) for name in self._roots}
        self._systems = systems
        run_times = RunTimes(seed=1, mean_ns=2 * SECOND, writing=100)
        walled = dict.fromkeys((ALPHA, BETA, *INSIDE_ROOTS) if reach == PROXY else (), 1)
        conditions = Conditions(walled=walled)
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times, conditions=conditions)
        self.federation.observe = self._observe
        self.federation.run(lambda: False, until=Instant(10 * SECOND))

    def replace_root(self, name: SystemId, *, roots: tuple[bytes, ...], voucher: bytes) -> None:
        """Give a module other roots of its own site, of which one has signed its certificate."""
        system = self._systems[name]
        event = RootsChanged(
            key=key_of(name),
            trust=replace(system.trust, roots=roots, vouchers=(voucher,)),
            apart=tuple(system.apart),
            apart_roots=tuple(system.apart.values()),
            other_sites=system.other_sites,
        )
        self.federation.post(name, event)

    def submit(self) -> None:
        """Submit tasks that only the machine of the other site can run."""
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey("k"),
            tdv=tdv(origin=self.origin),
            requirement="$slots = 3",
            command=Command(argv=("true",)),
            members=MEMBERS,
        )
        self.federation.post(self.origin, event)

    def run(self) -> list[TaskState]:
        """Let tasks end, and return their states."""
        until = after(self.federation.now, 10 * MINUTE)
        self.federation.run(lambda: len(self.federation.ended) == MEMBERS, until=until)
        return [row.state for row in self.federation.ended.values()]

    @staticmethod
    def _trust(own: bytes, *, are_introduced: bool, all_relays: bool) -> Trust:
        is_known = are_introduced and own != ROOTS[PACT]
        return Trust(
            roots=(own, ROOTS[ALPHA], ROOTS[BETA]) if is_known else (own,), vouchers=(own,), trusts_relays=all_relays
        )

    def _system(self, name: SystemId, trust: Mapping[SystemId, Trust], *, reach: str, slots: int) -> SimulatedSystem:
        children = tuple(
            Neighbor(system=child, is_child=True, is_primary_child=True)
            for child, parent in PARENTS.items()
            if parent == name and child in self._roots
        )
        parents = (Neighbor(system=PARENTS[name], is_parent=True, is_primary_parent=True),) if name in PARENTS else ()
        return SimulatedSystem(
            name=name,
            neighbors=(*children, *parents),
            machine=sdv(slots=slots) if slots else None,
            policy=OpenPolicy(),
            trust=trust[name],
            apart=apart_from(name, (*children, *parents), dict(trust)),
            other_sites=introductions_of(name, trust),
            reach=reach if name in (ALPHA, BETA) else OPEN,
        )

    def _observe(self, system: SystemId, action: Action) -> None:
        if isinstance(action, SendTasks):
            through = action.address.hop if isinstance(action.address, Splice) else ""
            self.sent.add((system, action.to, through))


def test_two_modules_of_a_third_site_pass_tasks_on_and_see_none_of_them() -> None:
    world = World(are_introduced=True)
    world.submit()
    assert world.run() == [TaskState.FINISHED] * MEMBERS
    assert world.sent == {(ALPHA, BETA, PACT)}
    assert all(row.result is not None and row.result.outputs for row in world.federation.ended.values())


def test_between_two_borders_bytes_pass_a_third_site_unread() -> None:
    world = World(are_introduced=True, reach=PROXY)
    world.submit()
    assert world.run() == [TaskState.FINISHED] * MEMBERS
    assert all(row.result is not None and row.result.outputs for row in world.federation.ended.values())
    # Straight first, which the firewalls prevent.
    assert world.sent == {
        (IN_ALPHA, ALPHA, ""),
        (ALPHA, BETA, ""),
        (ALPHA, BETA, PACT),
        (BETA, IN_BETA, ""),
    }


def test_sites_that_can_be_dialed_and_were_introduced_need_no_third_site_for_their_bytes() -> None:
    world = World(are_introduced=True, reach=OPEN)
    world.submit()
    assert world.run() == [TaskState.FINISHED] * MEMBERS
    assert world.sent == {(ALPHA, BETA, "")}


@pytest.mark.parametrize("reach", [OPEN, OUTBOUND])
def test_a_third_site_refuses_what_it_could_read(reach: str) -> None:
    world = World(are_introduced=False, reach=reach)
    world.submit()
    assert world.run() == []
    assert world.sent == set()


def test_a_third_site_passes_bytes_on_if_both_ends_trust_relays() -> None:
    world = World(are_introduced=False, trust_relays=True)
    world.submit()
    assert world.run() == [TaskState.FINISHED] * MEMBERS
    assert {to for _, to, _ in world.sent} == {PACT, LOWER, BETA}


@pytest.mark.parametrize("are_introduced", [False, True])
def test_a_third_site_between_two_roots_of_its_own_is_one_still(*, are_introduced: bool) -> None:
    world = World(are_introduced=are_introduced)
    for name, voucher in ((PACT, NEW), (LOWER, ROOTS[LOWER])):
        world.replace_root(name, roots=(ROOTS[name], NEW), voucher=voucher)
    world.submit()
    assert world.run() == [TaskState.FINISHED] * (MEMBERS if are_introduced else 0)
    assert world.sent == ({(ALPHA, BETA, PACT)} if are_introduced else set())
