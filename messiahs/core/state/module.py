"""The complete state of a module; its parts are defined in hop.py, origin.py, executor.py and views.py."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from messiahs.core.interface.calendar import utc
from messiahs.core.interface.limits import SIBLINGS
from messiahs.core.interface.membership_rows import ShutOffRow
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Calendar, Randomness
from messiahs.core.interface.predicates import PredicateParser
from messiahs.core.interface.rows import CountersRow, RememberedRow
from messiahs.core.interface.timers import Timers
from messiahs.core.model.ids import Epoch, IdsGiven, MessageId, SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.task_limits import Maxima
from messiahs.core.model.trust import UNKNOWN, OtherRoots, Trust
from messiahs.core.state.audit import Audit
from messiahs.core.state.border import Border
from messiahs.core.state.demand import UnmetDemand
from messiahs.core.state.executor import Executor
from messiahs.core.state.hop import Hop
from messiahs.core.state.ledger import Ledger
from messiahs.core.state.membership import Membership
from messiahs.core.state.origin import Origin
from messiahs.core.state.part_memory import PartMemory
from messiahs.core.state.request_tally import RequestTally
from messiahs.core.state.views import Updates
from messiahs.core.state.ways import Ways

_NUMBER_BITS: Final = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of a module; `address` is where its task channel can be reached (host:port)."""

    system: SystemId
    epoch: Epoch
    address: str
    release: str = ""
    key: bytes = b""
    """Fingerprint of the public key: the first 16 bytes of the SHA-256 of its SubjectPublicKeyInfo."""
    trust: Trust = UNKNOWN
    apart: tuple[SystemId, ...] = ()
    """Neighbors for which roots other than those of `trust` vouch; like all roots, replaced by `RootsChanged`."""
    apart_roots: tuple[tuple[bytes, ...], ...] = ()
    """The roots that vouch for each of them: the first 16 bytes of the SHA-256 of the certificates."""
    other_sites: tuple[OtherRoots, ...] = ()
    """The roots of other sites that may vouch for systems without a link, too."""
    siblings: int = SIBLINGS
    """The most links with siblings that it has, or assigns to each of its children."""
    keeps_account: bool = False
    """Whether tasks of other sites do not run here without a sandbox."""
    maxima: Maxima = field(default_factory=Maxima)
    """The most that one task may have on the own machine."""
    outputs_bytes: int | None = None
    """The size of all outputs together that it takes of one own task at most; None: only the task says."""
    border_key: bytes = b""
    """The secret of a border's pseudonyms, which stays the same as long as its state; empty: it is no border."""

    @property
    def roots_of_site(self) -> tuple[bytes, ...]:
        """The roots of the module's own site, as fingerprints; empty means unknown."""
        others = {root for each in self.other_sites for root in each.roots}
        return tuple(root for root in self.trust.roots if root not in others)

    def is_of_site(self, vouchers: Iterable[bytes]) -> bool:
        """Return whether one of the roots that vouch for a module is a root of this module's own site.

        A site has several roots while one replaces another, and each of its modules may have a certificate of any.
        """
        return not {*self.trust.vouchers, *self.roots_of_site}.isdisjoint(vouchers)


@dataclass(slots=True, kw_only=True)
class ModuleState:
    """The complete state of a module (mutable; only core handlers change it)."""

    identity: Identity
    neighbors: dict[SystemId, Neighbor]
    policy: Policy
    parse: PredicateParser
    randomness: Randomness
    calendar: Calendar = utc
    timers: Timers = field(default_factory=Timers)
    counters: CountersRow = field(default_factory=CountersRow)
    messages_sent: int = 0
    has_space: bool = True
    remembered: dict[SystemId, RememberedRow] = field(default_factory=dict)
    """The ids that neighbors have issued, as they reported them."""
    shut_off: dict[SystemId, ShutOffRow] = field(default_factory=dict)
    """Neighbors that the administrator has shut off, and systems that were neighbors then."""
    membership: Membership = field(default_factory=Membership)
    witnesses: dict[SystemId, None] = field(default_factory=dict)
    """Neighbors that have reported, since the last restart, what they remember of this module. Not stored."""
    has_renewed: bool = False
    """Whether the epoch was drawn since the last restart. Not stored."""
    given_sent: IdsGiven = field(default_factory=IdsGiven)
    given_sent_at: Instant | None = None
    updates: Updates = field(default_factory=Updates)
    origin: Origin = field(default_factory=Origin)
    hop: Hop = field(default_factory=Hop)
    ways: Ways = field(default_factory=Ways)
    executor: Executor = field(default_factory=Executor)
    ledger: Ledger = field(default_factory=Ledger)
    audit: Audit = field(default_factory=Audit)
    border: Border = field(default_factory=Border)
    parts: PartMemory = field(default_factory=PartMemory)
    request_tally: RequestTally = field(default_factory=RequestTally)
    """What others requested of the own machine; the protocol reads none of it."""
    demand: UnmetDemand = field(default_factory=UnmetDemand)
    """What the tasks of local users lacked; it goes to the primary parent, and no decision depends on it."""

    @property
    def system(self) -> SystemId:
        """The module's own name."""
        return self.identity.system

    @property
    def epoch(self) -> Epoch:
        """The epoch in which ids are issued."""
        return self.counters.epoch if self.counters.epoch is not None else self.identity.epoch

    @property
    def former_epochs(self) -> tuple[Epoch, ...]:
        """The epochs in which ids were issued before."""
        return self.counters.former or tuple(each.epoch for each in self.counters.earlier)

    def is_own(self, system: SystemId, epoch: Epoch) -> bool:
        """Return whether an id with this system and epoch was issued by this module: names alone may not be unique."""
        if system != self.system:
            return False
        return epoch == self.epoch or epoch in self.former_epochs

    def has_lasting_link(self, system: SystemId) -> bool:
        """Return whether a neighbor's hello has arrived on a link that is not being ended."""
        return bool(self.updates.links.get(system)) and not self.membership.is_leaving(system)

    def next_message_id(self) -> MessageId:
        """Return the number of the next message, which a border draws: a count would tell what others ask it."""
        if self.identity.border_key:
            return MessageId(self.randomness.bits(_NUMBER_BITS))
        self.messages_sent += 1
        return MessageId(self.messages_sent)
