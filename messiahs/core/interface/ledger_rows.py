"""Rows of the ledger: processor time by claim, by day, by consumer and by neighbor (core/ledger).

What is called processor time without a further word was held; `used` is what was used of it.
"""

from dataclasses import dataclass

from messiahs.core.model.decay import Decaying
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """Who gave processor time, and for whom.

    `source` is the neighbor toward the executor, `sink` the one toward the origin; the own system stands for the own
    machine and for the own users. `user`, `origin` and `account` are those that the claim's TDV states.
    """

    source: SystemId
    sink: SystemId
    origin: SystemId
    user: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimBookRow:
    """What the attempts of one claim have held and used, in processor nanoseconds; `is_own` if they run here.

    `processor_ns` and `used_ns` never fall, and `used_ns` is never more than `processor_ns`. The row is kept until the
    neighbor toward the executor has stated the final amounts, and the neighbor toward the origin has acknowledged them.
    """

    id: ClaimId
    is_own: bool
    parties: Parties
    slots: int
    """Slots of all places together; on the own machine those of one task. Never more than were requested."""
    began_at: Instant
    closed_at: Instant | None = None
    """When this module forgot the claim."""
    processor_ns: int = 0
    entered_ns: int = 0
    """How much of it is in the other rows of the ledger."""
    used_ns: int = 0
    entered_used_ns: int = 0
    is_final: bool = False
    is_acknowledged: bool = False
    shown: ClaimId | None = None
    """The id that the neighbor toward the origin sees, if it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Processor nanoseconds in one day (UTC, counted from 1970); without a user, those of further users of the day."""

    number: int
    day: int
    parties: Parties
    processor_ns: int = 0
    used_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    """The decaying usage of one user, as the neighbor `sink` (or the own system) states the user and its origin."""

    number: int
    sink: SystemId
    origin: SystemId
    user: str
    usage: Decaying


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborAccountRow:
    """Processor nanoseconds given to a neighbor and taken from it, ever since; `usage` is what was given, decaying.

    The row of the own system counts as given what own users got of the own machine.
    """

    system: SystemId
    since: Instant
    usage: Decaying
    given_ns: int = 0
    taken_ns: int = 0
    given_used_ns: int = 0
    taken_used_ns: int = 0

    @property
    def balance_ns(self) -> int:
        """What it was given, less what it gave."""
        return self.given_ns - self.taken_ns


LedgerRow = ClaimBookRow | UsageRow | ConsumerRow | NeighborAccountRow
