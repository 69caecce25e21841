"""How many requests for places a module's own machine got, from whom, and what refused them: for its owner alone.

A request is counted once at each module whose own machine it asks for, by what became of it there. What the same module
then asks of others is not counted.
"""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant


class Gate(StrEnum):
    """What refused a request on the own machine; each request is refused by one gate, the first in its way."""

    TOO_MANY = "too_many"
    """Its neighbor has as many searches open, or claims through this module, as one may have."""
    TOO_LATE = "too_late"
    """No time was left when it arrived."""
    DRAINING = "draining"
    """The module is drained, or the link with its neighbor is being ended."""
    NO_SPACE = "no_space"
    """The disk of the module is full."""
    NOT_SHOWN = "not_shown"
    """It is about what the border keeps from its neighbor."""
    BAD_PREDICATE = "bad_predicate"
    """Its requirement cannot be read, or is too expensive to evaluate."""
    RULE = "rule"
    """A rule of the policy's `accept`."""
    NO_MACHINE = "no_machine"
    """The module has no machine of its own, or has not measured it yet."""
    TOO_SMALL = "too_small"
    """The machine is too small for one such task, or the topology allows less to one."""
    UNMET = "unmet"
    """The machine does not meet the requirement, or has nothing that its task brings an environment or image for."""
    OTHER_SITE = "other_site"
    """The machine takes no tasks of other sites, since it has no sandboxes."""
    MAINTENANCE = "maintenance"
    """The task would not end before the maintenance that is announced."""
    NOT_LENT = "not_lent"
    """The owner lends the machine to nobody now."""
    NOT_TAKEN = "not_taken"
    """The results of earlier tasks of its neighbor wait here, and are too large together."""
    NOT_AGAIN = "not_again"
    """A task like it was revoked here a short while ago, or is to leave."""
    UNREACHED = "unreached"
    """Its origin could not reach the machine, or has as many tasks here as it sends for now."""
    ALLOTTED = "allotted"
    """The policy's `allocate` grants no place."""
    RESERVED = "reserved"
    """Slots are kept free for a task that needs several of them."""
    NO_ROOM = "no_room"
    """Other tasks, or programs of the host, have what it needs."""


NOT_FITTING = frozenset((Gate.TOO_SMALL, Gate.UNMET))
"""The gates of requests that the machine could not serve if it were idle."""
FITTING = frozenset((
    Gate.OTHER_SITE, Gate.MAINTENANCE, Gate.NOT_LENT, Gate.NOT_TAKEN, Gate.NOT_AGAIN,
    Gate.UNREACHED, Gate.ALLOTTED, Gate.RESERVED, Gate.NO_ROOM,
))  # fmt: skip
"""The gates of requests that it could serve; by the other gates none is compared with the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskerCount:
    """The requests of one neighbor, or of the own users under the name of the own system.

    `tasks` is the number of places that they asked for, and `granted` how many of the requests got one of `places`.
    """

    system: SystemId
    requests: int
    tasks: int
    granted: int
    places: int
    first_at: Instant
    """The first request since the module started or its policy was replaced; the counts may begin later."""
    last_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCount:
    """The requests that one gate refused, with the `last` one, which `asker` sent, and `why` it was refused.

    `rule` is the rule of the policy, as written, on one line.
    """

    gate: Gate
    rule: str
    requests: int
    tasks: int
    last: SchedRequest
    asker: SystemId
    at: Instant
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    """The requests of the last one to two hours, or since the module started or its policy was replaced, if later.

    `compared` requests came so far that they were compared with the machine, and it could serve `matched` of them.
    """

    since: Instant
    requests: int
    tasks: int
    granted: int
    places: int
    compared: int
    matched: int
    askers: tuple[AskerCount, ...]
    refusals: tuple[RefusalCount, ...]
    """Those that refused most are first."""
