"""Default acceptance: every task (MESSIAHS 5: task acceptance)."""

from dataclasses import dataclass

from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Accepted, AcceptQuery, Randomness


@dataclass(frozen=True, slots=True)
class AcceptEverybody:
    """Accepts every task."""

    text: str = "everybody()"
    initial: PartState = ()

    def decide(self, query: AcceptQuery, state: PartState, randomness: Randomness, /) -> tuple[Accepted, PartState]:
        """Accept."""
        del query, randomness
        return Accepted(), state

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Return an empty text: nothing is refused."""
        del query
        return ""

    @property
    def reads_usage(self) -> bool:
        """Return False: nothing is limited."""
        return False
