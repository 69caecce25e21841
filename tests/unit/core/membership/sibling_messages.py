"""Messages about siblings, for tests."""

from messiahs.core.interface.actions import Action
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment, SiblingRequest
from messiahs.core.model.ids import SystemId
from tests.unit.core.rig import sent


def ask(
    *siblings: str,
    assigned: tuple[str, ...] = (),
    address: str = "there:1",
    most: int = 16,
    refused: tuple[str, ...] = (),
) -> SiblingRequest:
    return SiblingRequest(
        address=address,
        siblings=tuple(map(SystemId, siblings)),
        assigned=tuple(map(SystemId, assigned)),
        most=most,
        refused=tuple(map(SystemId, refused)),
    )


def one(system: SystemId, address: str = "there:1", *, roots: tuple[bytes, ...] = ()) -> AssignedSibling:
    return AssignedSibling(system=system, address=address, roots=roots)


def assign(*siblings: AssignedSibling, withdrawn: tuple[SystemId, ...] = ()) -> SiblingAssignment:
    return SiblingAssignment(siblings=siblings, withdrawn=withdrawn)


def assigned_to(actions: tuple[Action, ...]) -> dict[SystemId, tuple[SystemId, ...]]:
    return {to: tuple(each.system for each in message.siblings) for to, message in sent(actions, SiblingAssignment)}
