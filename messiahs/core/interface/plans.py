"""What would become of tasks if they were submitted now, as far as their module knows (MESSIAHS 6.2)."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.interface.dependencies import Dependency
from messiahs.core.interface.messages import Reason
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant


class PlannedOutcome(StrEnum):
    """What a plan expects of the first of its tasks."""

    START = "start"
    """It gets a place at once: here, in a claim that is held, or with a neighbor that shows room, if that agrees."""
    WAIT = "wait"
    DENY = "deny"
    """It is denied instead of waiting for a place, or would wait for another task in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRoom:
    """Tasks that a claim which is held already takes without a search, and its executor."""

    system: SystemId
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would happen at once to the tasks of a submission that have one of its `descriptions`.

    `tasks` of them would look for places, behind `ahead` tasks of the same description that wait now. With `is_sure`
    the outcome depends on nobody else. The record of the `search` has the own machine with its answer, and neighbors in
    the order in which they would be asked, at most `asks` of them. By their views, those that are `likely` may
    have room. If the outcome `is_known`, one of these surely has; otherwise all are silent about something that the
    task needs. The `reasons` say why the first task would not start.
    """

    at: Instant
    outcome: PlannedOutcome
    tdv: TDV
    requirement: str
    is_sure: bool = True
    is_known: bool = True
    tasks: int = 0
    descriptions: int = 1
    ahead: int = 0
    held: tuple[HeldRoom, ...] = ()
    search: SearchRecord | None = None
    likely: tuple[SystemId, ...] = ()
    asks: int = 0
    reasons: tuple[Reason, ...] = ()
    awaited: tuple[Dependency, ...] = ()
    """What has to happen to other tasks before."""
