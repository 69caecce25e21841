"""Two sites below a module of a third one, in virtual time: what passes it, and what it refuses."""

from collections.abc import Mapping

import pytest

from messiahs.config.topology.reach import OPEN, OUTBOUND
from messiahs.core.interface.actions import Action, SendTasks
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, TaskState
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant, after
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.routes import Splice
from messiahs.core.model.trust import Trust
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedSystem
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.sites import apart_from
from tests.unit.core.rig import sdv, tdv

PACT, LOWER, ALPHA, BETA = map(SystemId, ("pact", "lower", "alpha", "beta"))
ROOTS = {PACT: b"p" * 16, LOWER: b"p" * 16, ALPHA: b"a" * 16, BETA: b"b" * 16}
PARENTS = {LOWER: PACT, ALPHA: PACT, BETA: LOWER}
MEMBERS = 8


class World:
    """Two machines of two sites, and two modules of a third site between them (mutable)."""

    def __init__(self, *, are_introduced: bool, trust_relays: bool = False, reach: str = OUTBOUND) -> None:
        self.sent: set[tuple[SystemId, SystemId, str]] = set()
        trust = {name: self._trust(name, are_introduced=are_introduced, all_relays=trust_relays) for name in ROOTS}
        systems = {name: self._system(name, trust, reach=reach) for name in ROOTS}
        run_times = RunTimes(seed=1, mean_ns=2 * SECOND, writing=100)
        self.federation = SimulatedFederation(systems, seed=1, run_times=run_times, conditions=Conditions())
        self.federation.observe = self._observe
        self.federation.run(lambda: False, until=Instant(10 * SECOND))

    def submit(self) -> None:
        """Submit tasks that only the machine of the other site can run."""
        event = Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey("k"),
            tdv=tdv(origin=ALPHA),
            requirement="$slots = 3",
            command=Command(argv=("true",)),
            members=MEMBERS,
        )
        self.federation.post(ALPHA, event)

    def run(self) -> list[TaskState]:
        """Let tasks end, and return their states."""
        until = after(self.federation.now, 10 * MINUTE)
        self.federation.run(lambda: len(self.federation.ended) == MEMBERS, until=until)
        return [row.state for row in self.federation.ended.values()]

    @staticmethod
    def _trust(name: SystemId, *, are_introduced: bool, all_relays: bool) -> Trust:
        own = ROOTS[name]
        is_known = are_introduced and name in (ALPHA, BETA)
        return Trust(
            roots=(own, ROOTS[ALPHA], ROOTS[BETA]) if is_known else (own,), vouchers=(own,), trusts_relays=all_relays
        )

    @staticmethod
    def _system(name: SystemId, trust: Mapping[SystemId, Trust], *, reach: str) -> SimulatedSystem:
        children = tuple(
            Neighbor(system=child, is_child=True, is_primary_child=True)
            for child, parent in PARENTS.items()
            if parent == name
        )
        parents = (Neighbor(system=PARENTS[name], is_parent=True, is_primary_parent=True),) if name in PARENTS else ()
        return SimulatedSystem(
            name=name,
            neighbors=(*children, *parents),
            machine={ALPHA: sdv(slots=2), BETA: sdv(slots=3)}.get(name),
            policy=OpenPolicy(),
            trust=trust[name],
            apart=apart_from(name, (*children, *parents), dict(trust)),
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
