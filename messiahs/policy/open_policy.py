"""The built-in policy of a module that was given none: accept everyone (MESSIAHS 5: task acceptance)."""

from dataclasses import dataclass, field

from messiahs.core.attributes import KEY_ATTRIBUTES
from messiahs.core.descriptions import SDV, TDV
from messiahs.core.ids import SystemId
from messiahs.core.ports import Accepted, Asker, Candidate, Need, Randomness, Refused, Timeouts
from messiahs.policy.placement import by_free_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPolicy:
    """Refuses nobody; a machine that is full is not asked for its opinion."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    keys: tuple[str, ...] = KEY_ATTRIBUTES

    def accept(self, tdv: TDV, asker: Asker, here: SDV | None, /) -> Accepted | Refused:
        """Accept."""
        del tdv, asker, here
        return Accepted()

    def rank(self, candidates: tuple[Candidate, ...], need: Need, randomness: Randomness, /) -> tuple[SystemId, ...]:
        """Ask by free slots."""
        return by_free_slots(candidates, need, randomness)
