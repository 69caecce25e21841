"""Owners of simulated machines who turn the dial: `lend off` for a while or until they think of it, and `lend on`."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, LendRequested
from messiahs.core.interface.lending import Lent
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, after
from messiahs.sim.hosts.federation import SimulatedFederation

_NOBODY: Final = AnswerTo(0)
_AGAIN_NS: Final = 1 * SECOND
_LONGEST_NS: Final = 60 * SECOND


class Dials:
    """Turns the dials of machines, on request or at random (mutable)."""

    def __init__(self, federation: SimulatedFederation, random: Random | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._federation, self._random = federation, random
        self._is_over = False

    def begin(self, *, every_ns: int, note: Callable[[SystemId, str], None]) -> None:
        """Turn the dial of a random machine at about this interval."""
        random = self._random
        assert random is not None, "dials are turned at random"

        def happen() -> None:
            if self._is_over:
                return
            name, lent = random.choice(sorted(self._federation.members)), random.choice(tuple(Lent))
            lasts_ns = random.choice((None, random.randrange(1, _LONGEST_NS)))
            if self._federation.members[name].machine is not None:
                self.turn(name, lent, lasts_ns=None if lent is Lent.POLICY else lasts_ns)
                self.counts[f"lend {lent}"] += 1
                note(name, f"lend {lent}")
            self._federation.later(1 + int(random.expovariate(1) * every_ns), happen)

        self._federation.later(1 + int(random.expovariate(1) * every_ns), happen)

    def turn(self, name: SystemId, lent: Lent, *, lasts_ns: int | None = None) -> None:
        """Turn the dial of a machine, for a time or until it is turned again."""
        host = self._federation.members[name]
        until = None if lasts_ns is None else after(host.now(), lasts_ns)
        host.post(LendRequested(answer_to=_NOBODY, lent=lent, until=until, by="owner"))

    def settle(self) -> None:
        """Leave all machines to their policies, also those whose modules are down now."""
        self._is_over = True
        for name in self._turned():
            self.turn(name, Lent.POLICY)
        if not self.are_settled:
            self._federation.later(_AGAIN_NS, self.settle)

    @property
    def are_settled(self) -> bool:
        """Whether every machine is left to its policy."""
        return not self._turned()

    def _turned(self) -> list[SystemId]:
        members = self._federation.members.items()
        return [name for name, host in members if queries.lending_of(host.module.state) is not None]
