"""Messages about the processor time that claims have used, between the two ends of a link."""

from dataclasses import dataclass

from messiahs.core.interface.membership_messages import MembershipMessage
from messiahs.core.model.ids import ClaimId


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimUsage:
    """The processor time that all attempts of a claim have held so far, and what they have used of it.

    With `is_final` neither grows again.
    """

    claim: ClaimId
    processor_ns: int
    used_ns: int = 0
    is_final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """The sender states what the receiver was given in claims that lead from the receiver through the sender."""

    usages: tuple[ClaimUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReportAck:
    """The final usages of these claims are stored, or were: their sender may forget them."""

    claims: tuple[ClaimId, ...]


LinkMessage = MembershipMessage | UsageReport | UsageReportAck
"""A message that concerns the two ends of a link: no hop passes it on as it is."""
