"""Small federations whose conversations are worth reading."""

from collections.abc import Callable
from dataclasses import dataclass

from messiahs.core.actions import Action, Report, SendControl, SendTasks, StartAttempt, Store, TaskEnded
from messiahs.core.descriptions import TDV, sorted_pairs
from messiahs.core.events import AnswerTo, Submitted
from messiahs.core.ids import ClientKey, SystemId
from messiahs.core.instants import MILLISECOND, SECOND, Instant
from messiahs.core.invariants import violations
from messiahs.core.messages import (
    ClaimEnd,
    Command,
    ControlMessage,
    DenyCode,
    Hello,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskKill,
    TaskStatus,
    TaskStatusAck,
    TaskStatusQuery,
)
from messiahs.core.neighbors import Neighbor
from messiahs.core.ports import Refused
from messiahs.core.rows import TaskRow
from messiahs.sim.federation import SimulatedFederation, SimulatedSystem
from messiahs.sim.machine import RunTimes
from tests.unit.core.rig import ScriptedPolicy, sdv

SETTLED = Instant(2 * SECOND + 100 * MILLISECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Who is the child of whom, who has a machine (of two slots), and who refuses; siblings follow from the parents."""

    about: str
    parents: dict[str, str | None]
    machines: tuple[str, ...]
    at: str
    tasks: int = 1
    waits: bool = True
    refuses: tuple[str, ...] = ()


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
}


def transcript(scenario: Scenario) -> str:
    """Run a scenario until its tasks have ended, and write down what the modules said to each other.

    Vectors are left out: they come every two seconds. Every module is sound at the end.
    """
    federation = _federation(scenario)
    lines = [scenario.about, ""]

    def note(system: SystemId, action: Action) -> None:
        said = _line(system, action)
        if said:
            seconds, rest = divmod(federation.now, SECOND)
            lines.append(f"{seconds:3}.{rest // 1_000:06} {said}")

    federation.observe = note
    federation.run(lambda: False, until=SETTLED)
    federation.later(SETTLED - federation.now, lambda: federation.post(SystemId(scenario.at), _submitted(scenario)))
    federation.run(lambda: len(federation.ended) == scenario.tasks, until=Instant(60 * SECOND))
    federation.run(lambda: False, until=Instant(federation.now + 20 * MILLISECOND))
    for member in federation.members.values():
        assert violations(member.module.state) == ()
    return "\n".join(lines) + "\n"


def _federation(scenario: Scenario) -> SimulatedFederation:
    systems = {}
    for name in scenario.parents:
        refusal = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="nobody", text="closed for repair")
        policy = ScriptedPolicy(verdict=refusal) if name in scenario.refuses else ScriptedPolicy()
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
        case SendControl():
            return f"{system} -> {action.to}: {_control(action.message)}"
        case SendTasks():
            attempts = _names(task.attempt for task in action.message.tasks)
            return f"{system} -> {action.to}: task_transfer {action.message.claim} {attempts}"
        case StartAttempt():
            return f"{system}: starts {action.attempt}, at most {action.places} at a time"
        case Store() if isinstance(action.row, TaskRow) and action.row.ended_at is not None:
            why = "".join(f"; {_reason(reason)}" for reason in action.row.reasons)
            return f"{system}: stores {action.row.id} {action.row.state}{why}"
        case TaskEnded():
            return f"{system}: tells that {action.task} has ended"
        case Report():
            return f"{system}: reports {action.neighbor} for {action.code}"
        case _:
            return ""


def _control(message: ControlMessage) -> str:
    match message:
        case Hello():
            return f"hello {message.system}"
        case SchedRequest():
            budgets = f"hops {message.hops_left}, asks {message.asks_left}, {message.remaining_ns / SECOND:.3f} s"
            return f"sched_request #{message.id} from {message.origin}, count {message.count}; {budgets}"
        case SchedAccept():
            claim = f"{message.claim} at {message.address}, {message.places} places, window {message.window}"
            return f"sched_accept #{message.request} {claim}; asks {message.asks_left}"
        case SchedDeny():
            reasons = "; ".join(_reason(reason) for reason in message.reasons)
            return f"sched_deny #{message.request} {reasons}; asks {message.asks_left}"
        case TaskStatus():
            attempts = ", ".join(f"{each.attempt} {each.substate or each.state}" for each in message.attempts)
            return f"task_status {message.claim} [{attempts}] window {message.window}, renewal {message.renewal}"
        case TaskStatusAck():
            return f"task_status_ack {message.claim} taken {_names(message.taken)} unbound {_names(message.unbound)}"
        case TaskStatusQuery():
            return f"task_status_query {message.claim} {_names(message.attempts)}"
        case TaskKill():
            return f"task_kill {message.claim} {_names(message.attempts)}"
        case ClaimEnd():
            return f"claim_end {message.claim}"
        case SystemStatusQuery():
            return "system_status_query"


def _names(attempts: object) -> str:
    return f"[{', '.join(str(attempt) for attempt in attempts)}]"  # type: ignore[attr-defined]


def _reason(reason: Reason) -> str:
    hops = f" ({'; '.join(_reason(hop) for hop in reason.hops)})" if reason.hops else ""
    text = f" '{reason.text}'" if reason.text else ""
    return f"{reason.module} {reason.code}{text}{hops}"
