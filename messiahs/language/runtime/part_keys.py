"""A part as a key of an order: its value is the place that the part assigns."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from messiahs.core.interface.parts import Failed, Part, PartState
from messiahs.core.interface.policies import Randomness

_Ranked = TypeVar("_Ranked")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class ByPart:
    """The order of a part; whatever the part leaves out is left out."""

    part: Part[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Generic[_Ranked]):
    """The place of each ranked item, the part's next state, and its failure, if it failed."""

    places: dict[_Ranked, int]
    state: PartState
    failure: str = ""

    def answering(self, answer: _Answer) -> tuple[_Answer | Failed[_Answer], PartState]:
        """Return the answer of the whole order, which has failed if the part has."""
        return (Failed(instead=answer, why=self.failure) if self.failure else answer), self.state


def part_in(keys: Iterable[object], /) -> Part[Any, Any] | None:
    """Return the part among some keys, of which there is at most one."""
    return next((key.part for key in keys if isinstance(key, ByPart)), None)


def placed_by(part: Part[Any, Any], query: object, state: PartState, randomness: Randomness, /) -> Placed[Any]:
    """Ask a part for an order."""
    answer, after = part.decide(query, state, randomness)
    order, failure = (answer.instead, answer.why) if isinstance(answer, Failed) else (answer, "")
    return Placed(places={each: place for place, each in enumerate(order)}, state=after, failure=failure)
