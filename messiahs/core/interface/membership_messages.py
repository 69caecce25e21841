"""Messages between neighbors about their link itself. Not in the papers, whose federations are fixed (MESSIAHS 5)."""

from dataclasses import dataclass

from messiahs.core.model.ids import SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The sender ends the link for good: no new claims are granted on it, and it closes when the present ones ended.

    With `is_done` the sender has no claim left on the link, and sends nothing more on it. One that leaves a sibling by
    a primary parent of before (`is_sibling`) ends no other relation that the receiver has with it.
    """

    text: str = ""
    is_done: bool = False
    is_sibling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The receiver is to count the sender no more; `number` is greater than those of the sender's earlier handovers."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverDone:
    """Neither the sender nor a system above it counts the receiver any more; `number` is that of its handover."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsSettled:
    """No sum of the sender, or above it, has the machines any more whose handovers have these marks."""

    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingRequest:
    """The sender asks its primary parent for links with other children, at most `most` together with those it has.

    `address` is where they may dial it (empty: nobody can). The receiver has given it those of `assigned` before, and
    those of `refused`, which it does not take.
    """

    address: str = ""
    siblings: tuple[SystemId, ...] = ()
    assigned: tuple[SystemId, ...] = ()
    most: int = 0
    refused: tuple[SystemId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedSibling:
    """Another child of the sender; `roots` are fingerprints of those of the sender's site, which vouch for it."""

    system: SystemId
    address: str = ""
    roots: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingAssignment:
    """The receiver is to keep links with some other children of the sender, and none any more with those withdrawn."""

    siblings: tuple[AssignedSibling, ...] = ()
    withdrawn: tuple[SystemId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleProbe:
    """A random number that climbs all parents, `hops_left` more times; back at its sender, it shows a cycle."""

    number: int
    hops_left: int


MembershipMessage = Leave | Handover | HandoverDone | SumsSettled | SiblingRequest | SiblingAssignment | CycleProbe
