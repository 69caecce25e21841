"""The memory of the policy's parts, and their failures. Not stored: a restart begins with their initial states."""

from dataclasses import dataclass, field

from messiahs.core.interface.parts import PartKind, PartState


@dataclass(slots=True)
class PartMemory:
    """The states of parts that have answered, and the failures of parts (mutable).

    A part that fails is reported once under each policy; `unreported` failures are still to be reported.
    """

    states: dict[PartKind, PartState] = field(default_factory=dict)
    failed: dict[PartKind, str] = field(default_factory=dict)
    unreported: dict[PartKind, str] = field(default_factory=dict)
