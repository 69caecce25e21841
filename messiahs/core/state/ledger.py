"""The ledger of a module: rows as they are stored, and what is to be reported (core/ledger)."""

from dataclasses import dataclass, field

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.ledger_rows import ClaimBookRow, ConsumerRow, NeighborAccountRow, Parties, UsageRow
from messiahs.core.interface.rows import RowKey
from messiahs.core.model.ids import ClaimId, SystemId

Books = dict[ClaimId, ClaimBookRow]
ConsumerKey = tuple[SystemId, SystemId, str]
"""The sink, the origin and the user."""


@dataclass(slots=True)
class Ledger:
    """All rows of the ledger (mutable)."""

    own: Books = field(default_factory=dict)
    """Claims granted on the own machine."""
    others: Books = field(default_factory=dict)
    """Claims that are held here or pass here."""
    shown: dict[ClaimId, ClaimId] = field(default_factory=dict)
    """The claims in `others` by the id that the neighbor toward the origin sees, where it differs."""
    leaving: dict[ClaimId, int] = field(default_factory=dict)
    """Closed own claims with attempts that have not ended, and the number of these."""
    closed: dict[tuple[bool, ClaimId], None] = field(default_factory=dict)
    """Closed books, by `is_own` and id, in the order in which they were closed."""
    running: dict[tuple[bool, ClaimId], None] = field(default_factory=dict)
    """Books that have changed since they were last reported, and will change again."""
    finals: dict[tuple[bool, ClaimId], None] = field(default_factory=dict)
    """Final books that are to be reported at the end of this step, as far as there is a link."""
    usage: dict[tuple[int, Parties], UsageRow] = field(default_factory=dict)
    """By day, the oldest first."""
    users: dict[tuple[int, SystemId], int] = field(default_factory=dict)
    """How many rows of `usage` each sink has in a day."""
    consumers: dict[ConsumerKey, ConsumerRow] = field(default_factory=dict)
    """The least lately used first."""
    neighbors: dict[SystemId, NeighborAccountRow] = field(default_factory=dict)
    writes: dict[RowKey, Store | Forget] = field(default_factory=dict)
    """Rows that were changed in this step."""
