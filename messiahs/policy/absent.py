"""What holds where a policy says nothing of sharing: nothing is asked for or offered, and nobody may join."""

from dataclasses import dataclass

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Asking, JoinQuery, Refused, RunningQuery
from messiahs.core.model.neighbors import Relation

ROLES = {Relation.CHILD: "child", Relation.SIBLING: "sibling", Relation.PARENT: "parent"}
"""What a system may become, as policies write it."""


@dataclass(frozen=True, slots=True)
class NoMigrating:
    """Asks for no task, and offers none."""

    asks: tuple[Asking, ...] = ()
    keep_at_least: int = 0
    offers_running: bool = False
    reads_memory: bool = False
    reads_waiting: bool = False

    def offers(self, query: RunningQuery, /) -> bool:
        """Offer nothing."""
        del query
        return False


def no_entry(query: JoinQuery, /) -> Refused:
    """Refuse a system for which there is no rule."""
    role = ROLES.get(query.role, query.role.value)
    return Refused(code=DenyCode.REFUSED_BY_POLICY, rule="join", text=f"nobody may join as {role}")
