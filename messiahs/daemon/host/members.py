"""The module that others join, as its door sees it."""

from collections.abc import Awaitable, Callable, Mapping

from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.core import queries
from messiahs.core.interface.actions import Answer
from messiahs.core.interface.events import AnswerTo, MemberAdded
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.trace.record.recorder import RecordedModule

Ask = Callable[[Callable[[AnswerTo], MemberAdded]], Awaitable[Answer]]


class LiveMembers:
    """Reads the core's neighbors and policy, and adds neighbors by events."""

    def __init__(self, module: RecordedModule, tls: TlsInForce, ask: Ask) -> None:
        self._module, self._tls, self._ask = module, tls, ask

    @property
    def system(self) -> SystemId:
        """The module's name."""
        return queries.system_of(self._module.state)

    def neighbors(self) -> Mapping[SystemId, Neighbor]:
        """Return the neighbors."""
        return queries.neighbors_of(self._module.state)

    def is_assigned(self, name: SystemId) -> bool:
        """Whether a neighbor is a sibling that the primary parent has assigned."""
        row = queries.members_of(self._module.state).get(name)
        return row is not None and row.assigned_by is not None

    def is_leaving(self, name: SystemId) -> bool:
        """Whether the link with a neighbor is being ended."""
        row = queries.removed_from(self._module.state).get(name)
        return row is not None and not row.is_ended

    def is_linked(self, name: SystemId) -> bool:
        """Whether there is a link with a neighbor."""
        return name in queries.summary_of(self._module.state).linked

    def policy(self) -> Policy:
        """Return the policy in force."""
        return queries.policy_of(self._module.state)

    def has_other_roots(self, name: SystemId) -> bool:
        """Whether roots of another site vouch for a name."""
        return self._tls.now.has_other_roots(name)

    def is_revoked(self, certificate: bytes) -> bool:
        """Whether a certificate (PEM) is on the list of revoked ones."""
        return self._tls.now.revocations.holds_any(certificate)

    async def add(self, neighbor: Neighbor, text: str, *, address: str = "") -> str:
        """Add a neighbor, or change its relations; the problem if that is not stored."""

        def added(answer_to: AnswerTo) -> MemberAdded:
            return MemberAdded(answer_to=answer_to, neighbor=neighbor, address=address, text=text)

        return (await self._ask(added)).problem
