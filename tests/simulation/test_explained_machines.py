"""Who asked for a machine and what refused them, in virtual time: what a neighbor asked is what the owner is shown."""

from messiahs.core import queries
from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, SchedRequest
from messiahs.core.interface.request_counts import Gate
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from tests.unit.core.rig import GIB, sdv, tdv

HOME, MACHINE = SystemId("home"), SystemId("machine")
OPEN = parse_policy("accept from any { limit 100 tasks; }", file="open.policy")
STRICT = parse_policy("accept from any { require $mem default 0 < 2GiB; limit 100 tasks; }", file="strict.policy")


def federation() -> SimulatedFederation:
    """Make a module with users, and a machine with a strict owner below it."""
    up = Neighbor(system=HOME, is_parent=True, is_primary_parent=True)
    child = Neighbor(system=MACHINE, is_child=True, is_primary_child=True)
    systems = {
        HOME: SimulatedSystem(name=HOME, neighbors=(child,), machine=None, policy=OPEN),
        MACHINE: SimulatedSystem(name=MACHINE, neighbors=(up,), machine=sdv(slots=2), policy=STRICT),
    }
    made = SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND // 5))
    made.run(lambda: False, until=Instant(5 * SECOND))
    return made


def submit(made: SimulatedFederation, key: str, *, mem: int) -> None:
    made.post(
        HOME,
        Submitted(
            answer_to=AnswerTo(1),
            key=ClientKey(key),
            tdv=tdv(origin=HOME, mem=mem),
            requirement="",
            command=Command(argv=("true",)),
            members=3,
        ),
    )
    made.run(lambda: False, until=Instant(made.now + 5 * SECOND))


def test_the_owner_is_shown_what_the_neighbor_has_asked() -> None:
    made = federation()
    asked: list[SchedRequest] = []

    def observe(system: SystemId, action: Action) -> None:
        if system == HOME and isinstance(action, SendControl) and isinstance(action.message, SchedRequest):
            asked.append(action.message)

    made.observe = observe
    submit(made, "small", mem=GIB)
    submit(made, "large", mem=4 * GIB)
    counts = queries.requests_here(made.members[MACHINE].module.state, made.now)
    (asker,) = counts.askers
    assert (asker.system, asker.requests, asker.tasks) == (HOME, len(asked), sum(each.count for each in asked))
    assert counts.granted == len([each for each in asked if each.tdv.description()["mem"] == GIB])
    refused = [each for each in asked if each.tdv.description()["mem"] == 4 * GIB]
    (refusal,) = counts.refusals
    assert (refusal.gate, refusal.rule) == (Gate.RULE, "require $mem default 0 < 2GiB")
    assert (refusal.requests, refusal.last.tdv) == (len(refused), refused[-1].tdv)
    assert refused
    assert (counts.compared, counts.matched) == (counts.granted, counts.granted)
