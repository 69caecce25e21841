"""A compiled policy file: the parts that its blocks define, and the defaults of the others (MESSIAHS 5)."""

from dataclasses import dataclass, field
from typing import TypedDict

from messiahs.core.interface.parts import Location, Migration, Part, Selection, Transfer
from messiahs.core.interface.policies import (
    Allocation,
    AllocationQuery,
    Limits,
    SourceQuery,
    Timeouts,
    UpdateQuery,
)
from messiahs.core.model.attributes import Attribute
from messiahs.core.model.ids import SystemId
from messiahs.core.model.series import Kept
from messiahs.errors import Problem
from messiahs.language.runtime.acceptance import AcceptRules
from messiahs.language.runtime.candidate_ranking import WrittenOrder
from messiahs.language.runtime.disclosing import CompiledDisclosure
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.policy.admission import Admission, AdmitNobody
from messiahs.policy.allocation import AS_ASKED
from messiahs.policy.location import MOST_WAITING, WEIGHTED_FREE_SLOTS
from messiahs.policy.migration import LEAST_RUN
from messiahs.policy.parts import plain
from messiahs.policy.selection import ARRIVAL
from messiahs.policy.transfer import NoTransfer
from messiahs.policy.update import key_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a policy was compiled from: the text of a file, and the default durations."""

    file: str
    text: str
    timeouts: Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """All decisions of a policy file; a part that the file does not define is its default."""

    name: str = ""
    timeouts: Timeouts = field(default_factory=Timeouts)
    limits: Limits = field(default_factory=Limits)
    running: tuple[CompiledRule, ...] = ()
    update: Part[UpdateQuery, bool] = field(default_factory=key_changes)
    acceptance: AcceptRules = field(default_factory=AcceptRules)
    location: Location = field(default_factory=lambda: plain(WEIGHTED_FREE_SLOTS))
    sources: Part[SourceQuery, tuple[SystemId, ...]] = field(default_factory=lambda: plain(MOST_WAITING))
    selection: Selection = field(default_factory=lambda: plain(ARRIVAL))
    transfer: Transfer = field(default_factory=NoTransfer)
    migration: Migration = field(default_factory=lambda: plain(LEAST_RUN))
    allocation: Part[AllocationQuery, Allocation] = field(default_factory=lambda: plain(AS_ASKED))
    disclosure: CompiledDisclosure = field(default_factory=CompiledDisclosure)
    admission: Admission = field(default_factory=AdmitNobody)
    declared: tuple[Attribute, ...] = ()
    histories: tuple[Kept, ...] = ()
    in_history: tuple[Attribute, ...] = ()
    """The attributes that the histories have."""
    lets: tuple[tuple[str, int], ...] = ()
    """The names of its `let`s, and the offset of each definition in the file, in characters from 0."""
    orders: tuple[WrittenOrder, ...] = ()
    warnings: tuple[Problem, ...] = ()
    source: Source | None = field(default=None, compare=False, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which classes may be split, sorted."""
        return self.disclosure.keys


class Parts(TypedDict, total=False):
    """The decisions that a file defines, by their fields in its policy."""

    update: Part[UpdateQuery, bool]
    location: Location
    sources: Part[SourceQuery, tuple[SystemId, ...]]
    selection: Selection
    transfer: Transfer
    migration: Migration
    allocation: Part[AllocationQuery, Allocation]
    admission: Admission
