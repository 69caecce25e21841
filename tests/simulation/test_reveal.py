"""What a parent is not told keeps no task from the machine behind: what is withheld could be anything."""

from messiahs.core.actions import SendControl
from messiahs.core.attributes import Value
from messiahs.core.descriptions import TDV, sorted_pairs
from messiahs.core.events import AnswerTo, Submitted
from messiahs.core.ids import ClientKey, SystemId
from messiahs.core.instants import SECOND, Instant
from messiahs.core.messages import Command, Reason, SchedDeny, VectorKind
from messiahs.core.neighbors import Neighbor
from messiahs.language.policy_files import parse_policy
from messiahs.sim.federation import SimulatedFederation
from messiahs.sim.host import SimulatedSystem
from messiahs.sim.machine import RunTimes
from tests.unit.core.rig import GIB, sdv

ROOT, MIDDLE, LEAF = map(SystemId, ("root", "middle", "leaf"))
OPEN = "accept from any { limit 100 tasks; }"
SETTLED = Instant(5 * SECOND)


def _federation(reveal: str) -> SimulatedFederation:
    """Give a chain whose last system alone has a machine; the one in the middle reveals."""
    neighbors = {ROOT: (_child(MIDDLE),), MIDDLE: (_parent(ROOT), _child(LEAF)), LEAF: (_parent(MIDDLE),)}
    systems = {
        name: SimulatedSystem(
            name=name,
            neighbors=others,
            machine=sdv(slots=2) if name == LEAF else None,
            policy=parse_policy(OPEN + (reveal if name == MIDDLE else ""), file=f"{name}.policy"),
        )
        for name, others in neighbors.items()
    }
    federation = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND))
    federation.run(lambda: False, until=SETTLED)
    return federation


def _child(name: SystemId) -> Neighbor:
    return Neighbor(system=name, is_child=True, is_primary_child=True)


def _parent(name: SystemId) -> Neighbor:
    return Neighbor(system=name, is_parent=True, is_primary_parent=True)


def _submit(federation: SimulatedFederation, requirement: str = "", **said: Value) -> None:
    task = Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("k"),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": "root", "user": "ann", **said})),
        requirement=requirement,
        command=Command(argv=("true",)),
        waits=False,
    )
    federation.later(0, lambda: federation.post(ROOT, task))
    federation.run(lambda: len(federation.ended) == 1, until=Instant(60 * SECOND))


def _ran_on(federation: SimulatedFederation) -> str:
    (row,) = federation.ended.values()
    return row.executed_on


def test_a_task_reaches_a_machine_of_which_its_parent_told_only_the_architecture() -> None:
    federation = _federation("reveal to parent { only $arch; }")
    ((_, view),) = federation.members[ROOT].module.state.updates.views.items()
    assert [name for name, _ in view.message.vector.classes[0].attributes] == ["arch"]
    _submit(federation, '$arch eq "x86_64" and $speed >= 1000 and not ($load > 100)', mem=4 * GIB, disk=GIB)
    # The requirement names $load, which no machine says: it is the machine that finds out.
    assert _ran_on(federation) == ""
    federation = _federation("reveal to parent { only $arch; }")
    _submit(federation, '$arch eq "x86_64" and $speed >= 1000', mem=4 * GIB, disk=GIB)
    assert _ran_on(federation) == "leaf"


def test_a_task_that_what_is_told_rules_out_is_not_even_asked_for() -> None:
    federation = _federation("reveal to parent { only $arch; }")
    asked: list[SystemId] = []
    federation.observe = lambda system, action: asked.append(system) if isinstance(action, SendControl) else None
    _submit(federation, '$arch eq "sparc"')
    assert (_ran_on(federation), asked) == ("", [])


def test_a_system_that_reveals_nothing_is_not_asked() -> None:
    for reveal in ("reveal to parent nothing;", "reveal to parent { hide counts below 2; }"):
        federation = _federation(reveal)
        assert (
            federation.members[ROOT].module.state.updates.views[MIDDLE, VectorKind.FOR_PARENTS].message.vector.machines
            == 0
        )
        _submit(federation)
        assert _ran_on(federation) == ""


def test_a_denial_shows_one_name_for_a_site() -> None:
    federation = _federation('reveal to parent { only $arch; as "site-7"; }')
    heard: list[Reason] = []

    def note(system: SystemId, action: object) -> None:
        if system == MIDDLE and isinstance(action, SendControl) and isinstance(action.message, SchedDeny):
            heard.extend(action.message.reasons)

    federation.observe = note
    _submit(federation, "$load > 1")
    (reason,) = heard
    assert {reason.module, *(hop.module for hop in reason.hops)} == {"site-7"}
    assert reason.hops
