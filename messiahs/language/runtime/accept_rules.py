"""Whether a block of a policy lets tasks in (MESSIAHS 5: task acceptance).

There is no negative rule: what is undefined or mistyped always ends in a refusal, so nothing fails open.
"""

from dataclasses import dataclass, field
from typing import Final

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, AcceptQuery, CalendarTime, Placed, Refused
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, PEER, TASK, Facts, Reading

_OPTIONS: Final = {"mem": "--mem", "disk": "--disk", "cpus": "--cpus", "est_time": "--time"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What must be true for anybody to go on; `text` is the only reason that a sender is told."""

    condition: Condition
    rule: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most slots of live claims, of all tasks or of those with the same value of one attribute."""

    slots: int
    per: str | None
    rule: str
    start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptBlock:
    """Rules for some senders: every requirement, one of the occasions (if there are any), and no limit reached.

    `head` is how the block begins, and `start` where in the file; a limit has such a place too, counted from 0.
    """

    head: str = ""
    start: int = field(default=0, compare=False, repr=False)
    requirements: tuple[Requirement, ...] = ()
    occasions: tuple[Requirement, ...] = ()
    limits: tuple[Limit, ...] = ()

    def judge(self, query: AcceptQuery) -> Accepted | Refused:
        """Say whether tasks are accepted, and if not, by which rule."""
        facts = facts_of(query)
        for requirement in self.requirements:
            if not is_true_for(requirement.condition, query, facts):
                text = _joined(requirement.text, *_why(requirement.condition, facts))
                return Refused(code=DenyCode.REFUSED_BY_POLICY, rule=requirement.rule, text=text, is_final=True)
        if self.occasions and not any(is_true_for(each.condition, query, facts) for each in self.occasions):
            rule = "; ".join(each.rule for each in self.occasions)
            text = _joined(*(why for each in self.occasions for why in _why(each.condition, facts)))
            return Refused(code=DenyCode.REFUSED_BY_POLICY, rule=rule, text=text, is_final=False)
        for limit in self.limits:
            if slots_of(limit, query.tdv, query.placed) + query.wanted_slots > limit.slots:
                return Refused(code=DenyCode.LIMIT_REACHED, rule=limit.rule, is_final=False)
        return Accepted()


def facts_of(query: AcceptQuery) -> Facts:
    """Give what a request is judged by; nothing is said of the own machine where there is none."""
    task = {**query.tdv.description(), "from": query.asker.system}
    peer: dict[str, Value] = {"name": query.asker.system, "relation": query.asker.relation.value}
    if query.asker.balance is not None:
        peer["balance"] = query.asker.balance
    here = {**query.module, **(query.here.description() if query.here is not None else {})}
    return {TASK: task, PEER: peer, HERE: here, NOW: calendar_facts(query.now)}


def calendar_facts(now: CalendarTime) -> dict[str, int | str]:
    """Give the attributes of `$now`."""
    return {"clock": now.clock, "weekday": now.weekday, "day": now.day}


def is_true_for(condition: Condition, query: AcceptQuery, facts: Facts, /) -> bool:
    """Say whether a condition is true of a request; `facts` are those of the request."""
    return holds_here(condition, facts, has_machine=query.here is not None, subtree=query.subtree)


def holds_here(condition: Condition, facts: Facts, *, has_machine: bool, subtree: IndexedVector) -> bool:
    """Say whether a condition on the own system is true; one without a machine is judged by those of its subtree.

    What the facts say of the system itself is not asked of machines.
    """
    if has_machine or not condition.reads(HERE):
        return condition.holds(facts)
    _, could = condition.over(facts, HERE, subtree)
    return could != 0


def _why(condition: Condition, facts: Facts) -> tuple[str, ...]:
    """Say which of the task's fields are missing; what is unknown of the own system is not for the sender."""
    return tuple(_unstated(reading, facts) for reading in condition.unset_in(facts) if reading.scope == TASK)


def _unstated(reading: Reading, facts: Facts) -> str:
    if reading.name in facts[TASK]:
        return f"the task's {reading} is not of type {reading.kind}"
    option = _OPTIONS.get(reading.name, f"--set {reading.name}=...")
    return f"the task does not state {reading}: add {option}"


def _joined(*texts: str) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def slots_of(limit: Limit, tdv: TDV, placed: tuple[Placed, ...], /) -> int:
    """Give the slots of live claims that a limit counts for one more such task."""
    if limit.per is None:
        return sum(claim.slots for claim in placed)
    value = tdv.description().get(limit.per)
    return sum(claim.slots for claim in placed if claim.tdv.description().get(limit.per) == value)
