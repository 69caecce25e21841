"""Default admission: no system may join by itself; a person decides (MESSIAHS 6.2 join_request)."""

from dataclasses import dataclass
from typing import Protocol

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import Part, PartState
from messiahs.core.interface.policies import Accepted, JoinQuery, Randomness, Refused
from messiahs.core.model.neighbors import Relation

ROLES = {Relation.CHILD: "child", Relation.SIBLING: "sibling", Relation.PARENT: "parent"}
"""Roles in which a system may join, as policies write them."""


class Admission(Part[JoinQuery, Accepted | Refused], Protocol):
    """Judges systems that request to join; it has no state."""

    def judge(self, query: JoinQuery) -> Accepted | Refused:
        """Return the answer to a system."""
        ...


@dataclass(frozen=True, slots=True)
class AdmitNobody:
    """Admits no system: trust must be decided explicitly."""

    text: str = "nobody()"
    initial: PartState = ()

    def decide(self, query: JoinQuery, state: PartState, randomness: Randomness, /) -> tuple[Refused, PartState]:
        """Refuse."""
        del randomness
        return self.judge(query), state

    def judge(self, query: JoinQuery) -> Refused:
        """Refuse."""
        return no_entry(query)


def no_entry(query: JoinQuery, /) -> Refused:
    """Refuse a system for which there is no rule."""
    role = ROLES.get(query.role, query.role.value)
    return Refused(code=DenyCode.REFUSED_BY_POLICY, rule="join", text=f"nobody may join as {role}")
