"""Small simulated federations for tests of the simulator itself."""

from random import Random

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_limits import Maxima
from messiahs.policy.open_policy import OpenPolicy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.sim.world.conditions import Conditions
from messiahs.sim.world.observer import Watcher
from tests.unit.core.rig import sdv, tdv

PARENT, CHILD = SystemId("parent"), SystemId("child")


def two_systems(
    *,
    hop_spread_ns: int = 0,
    seed: int = 1,
    writing: int = 0,
    mean_ns: int = SECOND,
    watcher: Watcher | None = None,
    maxima: Maxima = Maxima(),  # noqa: B008 - it is frozen
) -> SimulatedFederation:
    """Build a parent without a machine and its child, which has one of two slots; `writing` per cent of tasks write."""
    below = Neighbor(system=CHILD, is_child=True, is_primary_child=True)
    above = Neighbor(system=PARENT, is_parent=True, is_primary_parent=True)
    systems = {
        PARENT: SimulatedSystem(name=PARENT, neighbors=(below,), machine=None, policy=OpenPolicy()),
        CHILD: SimulatedSystem(
            name=CHILD, neighbors=(above,), machine=sdv(slots=2, nproc=2), policy=OpenPolicy(), maxima=maxima
        ),
    }
    return SimulatedFederation(
        systems,
        seed=seed,
        run_times=RunTimes(seed=seed, mean_ns=mean_ns, writing=writing),
        conditions=Conditions(random=Random(seed), spread_ns=hop_spread_ns, commit_ns=1 * MILLISECOND),
        watcher=watcher,
    )


def submitted(number: int, *, origin: SystemId = CHILD, members: int = 0, **needs: int) -> Submitted:
    """Build a submit with its own key; it is answered under the same number."""
    return Submitted(
        answer_to=AnswerTo(number),
        key=ClientKey(f"submit-{number}"),
        tdv=tdv(origin=origin, **needs),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
    )
