"""What the parts of the policy remember, and which of them failed. Soft: a restart begins with their initial states."""

from dataclasses import dataclass, field

from messiahs.core.interface.parts import PartKind, PartState


@dataclass(slots=True)
class PartMemory:
    """The states of parts that have answered, and why parts failed (mutable).

    A part that failed is reported once under each policy; `untold` is not reported yet.
    """

    states: dict[PartKind, PartState] = field(default_factory=dict)
    failed: dict[PartKind, str] = field(default_factory=dict)
    untold: dict[PartKind, str] = field(default_factory=dict)
