"""Admission of neighbors by the rules of a `join` block; without a rule nothing is admitted (MESSIAHS 6.2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Accepted, JoinQuery, Randomness, Refused
from messiahs.core.model.descriptions import Description
from messiahs.core.model.neighbors import Relation
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import NOW, PEER, Facts, calendar_facts
from messiahs.policy.admission import no_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One `allow`: the role, the condition, and the maximum of neighbors in that role (None: any number)."""

    role: Relation
    condition: Condition
    limit: int | None
    rule: str


@dataclass(frozen=True, slots=True)
class JoinRules:
    """All rules, in the order of the file."""

    entries: tuple[Entry, ...] = ()
    text: str = "join"
    initial: PartState = ()

    def decide(
        self, query: JoinQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Accepted | Refused, PartState]:
        """Decide on a system that wants to join."""
        del randomness
        return self.judge(query), state

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every rule."""
        yield from ((entry.rule, entry.condition) for entry in self.entries)

    def judge(self, query: JoinQuery) -> Accepted | Refused:
        """Admit a system if one rule admits it; an undefined condition admits none."""
        facts = entry_facts(query)
        full = None
        for entry in self.entries:
            if entry.role is not query.role or not entry.condition.holds(facts):
                continue
            if entry.limit is None or query.members < entry.limit:
                return Accepted()
            full = Refused(code=DenyCode.LIMIT_REACHED, rule=entry.rule, text=f"there are {query.members} already")
        return full or no_entry(query)


def entry_facts(query: JoinQuery, /) -> Facts:
    """Return the facts about a system that wants to join."""
    peer: Description = {"name": query.name, "relation": query.role.value}
    return {PEER: peer, NOW: calendar_facts(query.now)}
