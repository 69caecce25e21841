"""What speaks against a request to join, and what the policy says to it (MESSIAHS 6.2 join_request)."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Protocol

from messiahs.channel.membership.tokens import ROLES
from messiahs.core.interface.parts import Failed, Policy
from messiahs.core.interface.policies import Accepted, CalendarTime, JoinQuery, Randomness, Refused
from messiahs.core.model.ids import SystemId
from messiahs.core.model.names import problem_with_name
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.membership.token_book import Token
from messiahs.policy.admission import AdmitNobody
from messiahs.wire.codec import JoinRequest


class Members(Protocol):
    """The module that is joined."""

    @property
    def system(self) -> SystemId:
        """Its name."""

    def neighbors(self) -> Mapping[SystemId, Neighbor]:
        """Return its neighbors."""

    def is_assigned(self, name: SystemId) -> bool:
        """Whether a neighbor is a sibling that the primary parent has assigned."""

    def is_leaving(self, name: SystemId) -> bool:
        """Whether the link with a neighbor is being ended."""

    def policy(self) -> Policy:
        """Return its policy."""

    def has_other_roots(self, name: SystemId) -> bool:
        """Whether roots of another site vouch for a name."""

    def is_revoked(self, certificate: bytes) -> bool:
        """Whether a certificate (PEM) was revoked; called by any thread."""

    async def add(self, neighbor: Neighbor, text: str) -> str:
        """Add a neighbor, or change its relations; return why that is not stored, or ""."""


def problem_with(request: JoinRequest, token: Token, *, members: Members) -> str:
    """Return why nobody may join with a token as requested; empty if nothing speaks against it.

    A member of the site, which has shown its certificate, may be a neighbor already, but no parent or child.
    """
    name = request.name
    known = members.neighbors().get(name)
    is_of_site = bool(request.certificate)
    if not fnmatchcase(name, token.pattern):
        return f"the token is for names like {token.pattern}, and {name} is none of them"
    problem = problem_with_name(name)
    if problem:
        return f"{name[:80]} cannot be the name of a system: {problem}"
    if name == members.system:
        return f"{name} is the name of the module that it would join"
    if known is not None and (not is_of_site or known.is_parent or known.is_child):
        text = f"{members.system} has a neighbor {name} already: choose another name"
        remedy = f", or let its administrator type `messiahs module remove {name} --module {members.system}` first"
        return f"{text}{remedy if members.is_assigned(name) else ''}"
    if members.has_other_roots(name):
        return f"{name} is a name of another site"
    return ""


def verdict(
    request: JoinRequest, members: Members, *, now: CalendarTime, randomness: Randomness
) -> Accepted | Refused | None:
    """Return what the policy says to a request; None if it has no block `join` and so leaves it to a person."""
    part = members.policy().admission
    if isinstance(part, AdmitNobody):
        return None
    neighbors = members.neighbors().values()
    count = sum(each.is_child if request.role is Relation.CHILD else each.is_sibling for each in neighbors)
    query = JoinQuery(name=request.name, role=request.role, members=count, now=now)
    answer, _ = part.decide(query, part.initial, randomness)
    return answer.instead if isinstance(answer, Failed) else answer


def as_neighbor(request: JoinRequest, known: Neighbor | None) -> Neighbor:
    """Return the system that has joined with its relations: what it asked to be, and a sibling if it was one before."""
    is_child = request.role is Relation.CHILD
    return Neighbor(
        system=request.name,
        is_child=is_child,
        is_primary_child=is_child and request.is_primary,
        is_sibling=not is_child or (known is not None and known.is_sibling),
    )


def is_member(known: Neighbor | None, role: str, /) -> bool:
    """Whether a neighbor, if it is one, has the role of a token."""
    if known is None:
        return False
    return known.is_child if ROLES[role] is Relation.CHILD else known.is_sibling
