"""Small federations whose conversations are worth reading."""

from collections.abc import Callable
from dataclasses import dataclass, field

from messiahs.core.interface.actions import Action, Report, SendControl, SendTasks, StartAttempt, Store, TaskEnded
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command, DenyCode
from messiahs.core.interface.policies import Accepted, Refused
from messiahs.core.interface.rows import TaskRow
from messiahs.core.invariants import violations
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.machine import RunTimes
from messiahs.sim.hosts.system import SimulatedSystem
from messiahs.trace.show.lines import action_text
from tests.unit.core.rig import sdv
from tests.unit.core.scripted_policy import ScriptedPolicy

SETTLED = Instant(2 * SECOND + 100 * MILLISECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Parents, machines (of two slots), and systems that refuse; siblings follow from the parents."""

    about: str
    parents: dict[str, str | None]
    machines: tuple[str, ...]
    at: str
    tasks: int = 1
    ends: int | None = None
    """The number of tasks that end; None is all."""
    waits: bool = True
    refuses: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """Systems that reveal nothing."""
    rules: dict[str, str] = field(default_factory=dict)
    """Blocks of policies about sharing load."""


SCENARIOS = {
    "pair": Scenario(
        about="A child has a machine of two slots; three tasks of its parent follow each other in one claim.",
        parents={"left": None, "right": "left"},
        machines=("right",),
        at="left",
        tasks=3,
    ),
    "chain": Scenario(
        about="The executor is two hops away; the middle passes the claim's messages and forgets it at the end.",
        parents={"root": None, "middle": "root", "leaf": "middle"},
        machines=("leaf",),
        at="root",
    ),
    "triangle": Scenario(
        about="Two siblings and their parent: a search crosses to the sibling, and the parent is not asked.",
        parents={"top": None, "one": "top", "other": "top"},
        machines=("other",),
        at="one",
    ),
    "tree": Scenario(
        about="A search climbs from `blays` to `xinu`, crosses to `shadow` and descends to `nyneve`.",
        parents={"xinu": "cs", "shadow": "cs", "cs": None, "blays": "xinu", "nyneve": "shadow"},
        machines=("nyneve",),
        at="blays",
    ),
    "denial": Scenario(
        about="The only machine refuses by its policy; the denial comes back with every hop; the task does not wait.",
        parents={"root": None, "middle": "root", "leaf": "middle"},
        machines=("leaf",),
        at="root",
        waits=False,
        refuses=("leaf",),
    ),
    "fetching": Scenario(
        about="A hidden machine two hops away asks for tasks; two of three that wait are promised, and come its way.",
        parents={"root": None, "middle": "root", "leaf": "middle"},
        machines=("leaf",),
        at="root",
        tasks=3,
        ends=2,
        hidden=("leaf",),
        rules={
            "root": "migrate { keep at least 1 tasks; }",
            "leaf": "migrate { ask every 5s when $here.load default 0 < 50% wanting { $cpus <= 2 }; }",
        },
    ),
}


def transcript(scenario: Scenario, prepare: Callable[[SimulatedFederation], None] = lambda _: None) -> str:
    """Run a scenario until its tasks have ended, and return the messages between its modules as text.

    `prepare` may change the federation before it begins.

    Vectors are left out, since they are sent every two seconds. Every module satisfies its invariants at the end.
    """
    federation = _federation(scenario)
    prepare(federation)
    lines = [scenario.about, ""]

    def note(system: SystemId, action: Action) -> None:
        said = _line(system, action)
        if said:
            seconds, rest = divmod(federation.now, SECOND)
            lines.append(f"{seconds:3}.{rest // 1_000:06} {said}")

    federation.observe = note
    federation.run(lambda: False, until=SETTLED)
    federation.later(SETTLED - federation.now, lambda: federation.post(SystemId(scenario.at), _submitted(scenario)))
    ends = scenario.tasks if scenario.ends is None else scenario.ends
    federation.run(lambda: len(federation.ended) == ends, until=Instant(60 * SECOND))
    federation.run(lambda: False, until=Instant(federation.now + 20 * MILLISECOND))
    for member in federation.members.values():
        assert violations(member.module.state) == ()
    return "\n".join(lines) + "\n"


def _federation(scenario: Scenario) -> SimulatedFederation:
    systems = {}
    for name in scenario.parents:
        refusal = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="nobody", text="closed for repair")
        rules = parse_policy(scenario.rules.get(name, ""), file=f"{name}.policy")
        policy = ScriptedPolicy(
            verdict=refusal if name in scenario.refuses else Accepted(),
            silent_to=tuple(map(SystemId, scenario.parents)) if name in scenario.hidden else (),
            transfer=rules.transfer,
        )
        systems[SystemId(name)] = SimulatedSystem(
            name=SystemId(name),
            neighbors=_neighbors(scenario.parents, name),
            machine=sdv(slots=2, nproc=2) if name in scenario.machines else None,
            policy=policy,
        )
    return SimulatedFederation(systems, seed=1, run_times=RunTimes(seed=1, mean_ns=SECOND))


def _neighbors(parents: dict[str, str | None], name: str) -> tuple[Neighbor, ...]:
    mine = parents[name]
    relations: list[tuple[str, Callable[[SystemId], Neighbor]]] = []
    for other, its in parents.items():
        if other == mine:
            relations.append((other, lambda each: Neighbor(system=each, is_parent=True, is_primary_parent=True)))
        elif its == name:
            relations.append((other, lambda each: Neighbor(system=each, is_child=True, is_primary_child=True)))
        elif other != name and mine is not None and its == mine:
            relations.append((other, lambda each: Neighbor(system=each, is_sibling=True)))
    return tuple(make(SystemId(other)) for other, make in relations)


def _submitted(scenario: Scenario) -> Submitted:
    return Submitted(
        answer_to=AnswerTo(1),
        key=ClientKey("k"),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": scenario.at, "user": "ann"})),
        requirement="",
        command=Command(argv=("true",)),
        members=scenario.tasks if scenario.tasks > 1 else 0,
        waits=scenario.waits,
    )


def _line(system: SystemId, action: Action) -> str:
    match action:
        case SendControl() | SendTasks() | StartAttempt() | TaskEnded() | Report():
            return action_text(system, action)
        case Store() if isinstance(action.row, TaskRow) and action.row.ended_at is not None:
            return action_text(system, action)
        case _:
            return ""
