"""What users and administrators do with tasks by hand, at their origin."""

from dataclasses import dataclass
from enum import StrEnum

from messiahs.core.model.instants import Instant


class HandAct(StrEnum):
    """An act on tasks that have not ended."""

    REVOKE = "revoke"
    """Running attempts end, and their tasks are placed again."""
    MOVE = "move"
    """As `REVOKE`, and the machines take no task of the same shape for a minute."""
    HOLD = "hold"
    """Tasks that wait, or that would wait again, are not placed; running ones continue."""
    RELEASE = "release"
    """The end of a hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRun:
    """Members `first` to `last` of a submission (0 for a single task) that are on hold, since when and why."""

    first: int
    last: int
    since: Instant
    text: str = ""
