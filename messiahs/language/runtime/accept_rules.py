"""Acceptance of tasks by one block of a policy (MESSIAHS 5: task acceptance).

There are no negative rules: an undefined or mistyped attribute always leads to a refusal, so nothing fails open.
"""

from dataclasses import dataclass, field
from typing import Final

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, AcceptQuery, Placed, Refused
from messiahs.core.model.descriptions import TDV
from messiahs.language.runtime.conditions import Condition, holds_here
from messiahs.language.runtime.readings import TASK, Facts, Reading, request_facts

_OPTIONS: Final = {"mem": "--mem", "disk": "--disk", "cpus": "--cpus", "est_time": "--time"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A condition that must be true; `text` is the only reason that the sender receives."""

    condition: Condition
    rule: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The maximum of slots in live claims, of all tasks or of those with the same value of one attribute."""

    slots: int
    per: str | None
    rule: str
    start: int = field(default=0, compare=False, repr=False)

    def refusal_of(self, query: AcceptQuery) -> Refused | None:
        """Return why one more such task is refused, without the numbers of the rule; None if it is not."""
        if slots_under_limit(self, query.tdv, query.placed) + query.wanted_slots <= self.slots:
            return None
        if query.wanted_slots > self.slots:
            return _full(self.rule, f"the task takes more slots than are allowed{_each(self.per)}")
        return _full(self.rule, f"all slots that are allowed{_each(self.per)} are in use now")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimit:
    """The maximum of slot time in one day, of all tasks or of those with the same user, origin or account."""

    most_ns: int
    per: str | None
    rule: str
    start: int = field(default=0, compare=False, repr=False)

    def used_ns(self, query: AcceptQuery) -> int:
        """Return the time that counts for a request: users of a neighbor that have no row of their own share one."""
        if self.per is None:
            return sum(each.used_ns for each in query.used)
        value = query.tdv.description().get(self.per, "")
        own = [each for each in query.used if getattr(each, self.per) == value]
        rest = [each for each in query.used if each.sink == query.asker.system and not each.user]
        return sum(each.used_ns for each in own or rest)

    def is_reached(self, query: AcceptQuery) -> bool:
        """Return whether no time is left for a request."""
        return self.used_ns(query) >= self.most_ns

    def refusal_of(self, query: AcceptQuery) -> Refused | None:
        """Return why no task is accepted any more today, without the numbers of the rule; None if one is."""
        text = f"the processor time that is allowed{_each(self.per)} in one day is used up until midnight UTC"
        return _full(self.rule, text) if self.is_reached(query) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """The local account of accepted tasks on the own machine."""

    account: str
    rule: str
    start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLimit:
    """What accepted tasks reach at most of the network on the own machine."""

    network: str
    rule: str
    start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptBlock:
    """Rules for some senders: all requirements and one of the occasions (if any) must hold, and no limit be reached.

    `head` is the beginning of the block, and `start` its offset in the file, as in a limit, in characters from 0.
    Without a `mapping`, accepted tasks run as tasks usually do; without a `network`, they reach what the machine gives.
    """

    head: str = ""
    start: int = field(default=0, compare=False, repr=False)
    requirements: tuple[Requirement, ...] = ()
    occasions: tuple[Requirement, ...] = ()
    limits: tuple[Limit, ...] = ()
    usage_limits: tuple[UsageLimit, ...] = ()
    mapping: Mapping | None = None
    network: NetworkLimit | None = None

    def judge(self, query: AcceptQuery) -> Accepted | Refused:
        """Accept or refuse tasks; a refusal names the rule."""
        facts = request_facts(query)
        for requirement in self.requirements:
            if not is_true_for(requirement.condition, query, facts):
                text = _joined(requirement.text, *_why(requirement.condition, facts))
                return Refused(code=DenyCode.REFUSED_BY_POLICY, rule=requirement.rule, text=text, is_final=True)
        if self.occasions and not any(is_true_for(each.condition, query, facts) for each in self.occasions):
            rule = "; ".join(each.rule for each in self.occasions)
            text = _joined(*(why for each in self.occasions for why in _why(each.condition, facts)))
            return Refused(code=DenyCode.REFUSED_BY_POLICY, rule=rule, text=text, is_final=False)
        limits: tuple[Limit | UsageLimit, ...] = (*self.limits, *self.usage_limits)
        for limit in limits:
            refusal = limit.refusal_of(query)
            if refusal is not None:
                return refusal
        return Accepted(
            account=self.mapping.account if self.mapping is not None else "",
            network=self.network.network if self.network is not None else "",
        )


def is_true_for(condition: Condition, query: AcceptQuery, facts: Facts, /) -> bool:
    """Return whether a condition is true of a request; `facts` are the facts about the request."""
    return holds_here(condition, facts, has_machine=query.here is not None, subtree=query.subtree)


def _why(condition: Condition, facts: Facts) -> tuple[str, ...]:
    """Return the fields that the task lacks; unknown attributes of the own system are not reported to the sender."""
    return tuple(_unstated(reading, facts) for reading in condition.unset_in(facts) if reading.scope == TASK)


def _unstated(reading: Reading, facts: Facts) -> str:
    if reading.name in facts[TASK]:
        return f"the task's {reading} is not of type {reading.kind}"
    option = _OPTIONS.get(reading.name, f"--set {reading.name}=...")
    return f"the task does not state {reading}: add {option}"


def _full(rule: str, text: str) -> Refused:
    return Refused(code=DenyCode.LIMIT_REACHED, rule=rule, text=text, is_final=False)


def _each(per: str | None) -> str:
    return "" if per is None else f" per ${per}"


def _joined(*texts: str) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))


def slots_under_limit(limit: Limit, tdv: TDV, placed: tuple[Placed, ...], /) -> int:
    """Return the slots in live claims that a limit counts for one more such task."""
    if limit.per is None:
        return sum(claim.slots for claim in placed)
    value = tdv.description().get(limit.per)
    return sum(claim.slots for claim in placed if claim.tdv.description().get(limit.per) == value)
