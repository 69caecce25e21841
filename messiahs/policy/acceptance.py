"""Who is accepted where no policy says so: everybody (MESSIAHS 5: task acceptance)."""

from dataclasses import dataclass

from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Accepted, AcceptQuery, Randomness


@dataclass(frozen=True, slots=True)
class AcceptEverybody:
    """Refuses nobody."""

    text: str = "everybody()"
    initial: PartState = ()

    def decide(self, query: AcceptQuery, state: PartState, randomness: Randomness, /) -> tuple[Accepted, PartState]:
        """Accept."""
        del query, randomness
        return Accepted(), state

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Name no rule."""
        del query
        return ""
