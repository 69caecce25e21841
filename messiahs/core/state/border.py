"""A module as the border of its site: which ids it shows to one side for those of the other (MESSIAHS 4, 5.3.3)."""

from dataclasses import dataclass, field

from messiahs.core.interface.rows import HiddenSubmissionRow
from messiahs.core.model.ids import ClaimId, SystemId, TaskId


@dataclass(slots=True)
class Border:
    """Shown ids (mutable). Only the rows are stored, here and in `Hop.passed`."""

    claims: dict[ClaimId, ClaimId] = field(default_factory=dict)
    """Claims by the ids that the side of their origin sees."""
    submissions: dict[TaskId, HiddenSubmissionRow] = field(default_factory=dict)
    """Those whose origin is hidden."""
    shown: dict[TaskId, TaskId] = field(default_factory=dict)
    """The same submissions, by the ids that executors see."""
    uses: dict[SystemId, dict[tuple[ClaimId, TaskId], None]] = field(default_factory=dict)
    """Their uses in claims, by the neighbor toward the origin, the one used last last."""
    brought: dict[ClaimId, dict[TaskId, None]] = field(default_factory=dict)
    """The submissions whose tasks were brought in each claim."""
    machines: dict[bytes, bytes] = field(default_factory=dict)
    """Marks of machines as the side of the origin knows them, with those of the other side. Not stored."""
