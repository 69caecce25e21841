"""The policy of a module without a policy file: the default of every part, and every task is accepted."""

from dataclasses import dataclass, field

from messiahs.core.interface.parts import Disclosure, Location, Migration, Part, Selection, Transfer
from messiahs.core.interface.policies import (
    Allocation,
    AllocationQuery,
    Limits,
    RunningRule,
    SourceQuery,
    Timeouts,
    UpdateQuery,
)
from messiahs.core.model.attributes import KEY_ATTRIBUTES
from messiahs.core.model.ids import SystemId
from messiahs.core.model.series import Kept
from messiahs.policy.acceptance import AcceptEverybody
from messiahs.policy.admission import AdmitNobody
from messiahs.policy.allocation import AS_ASKED
from messiahs.policy.disclosure import TellEverything
from messiahs.policy.location import MOST_WAITING, WEIGHTED_FREE_SLOTS
from messiahs.policy.migration import LEAST_RUN
from messiahs.policy.parts import plain
from messiahs.policy.selection import ARRIVAL
from messiahs.policy.transfer import NoTransfer
from messiahs.policy.update import key_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPolicy:
    """Refuses no task, discloses everything, and admits no system."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    limits: Limits = field(default_factory=Limits)
    histories: tuple[Kept, ...] = ()
    keys: tuple[str, ...] = KEY_ATTRIBUTES
    running: tuple[RunningRule, ...] = ()
    update: Part[UpdateQuery, bool] = field(default_factory=key_changes)
    acceptance: AcceptEverybody = field(default_factory=AcceptEverybody)
    location: Location = field(default_factory=lambda: plain(WEIGHTED_FREE_SLOTS))
    sources: Part[SourceQuery, tuple[SystemId, ...]] = field(default_factory=lambda: plain(MOST_WAITING))
    selection: Selection = field(default_factory=lambda: plain(ARRIVAL))
    transfer: Transfer = field(default_factory=NoTransfer)
    migration: Migration = field(default_factory=lambda: plain(LEAST_RUN))
    allocation: Part[AllocationQuery, Allocation] = field(default_factory=lambda: plain(AS_ASKED))
    disclosure: Disclosure = field(default_factory=TellEverything)
    admission: AdmitNobody = field(default_factory=AdmitNobody)
