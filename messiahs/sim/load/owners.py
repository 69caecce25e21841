"""Owners of simulated machines, who use the console for a while and leave again."""

from functools import partial
from random import Random

from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.sim.hosts.federation import SimulatedFederation

_MEASURE_NS = 1 * SECOND
_WATCHED_SECONDS = 60
"""How long the console is measured after an owner has left; simulated rules have no longer durations."""
_LONGEST_VISIT_NS = 60 * SECOND


class Owners:
    """Lets owners come and go, on request or at random (mutable)."""

    def __init__(self, federation: SimulatedFederation, random: Random | None = None) -> None:
        self._federation, self._random = federation, random
        self._are_gone = False

    def begin(self, *, every_ns: int) -> None:
        """Let an owner come to a random machine at about this interval."""
        self._next(every_ns)

    def send_home(self) -> None:
        """End all visits, and begin no more."""
        self._are_gone = True
        for name, host in self._federation.members.items():
            while host.console.users:
                self.go(name)

    def come(self, name: SystemId) -> None:
        """Let an owner use the machine until `go`."""
        host = self._federation.members[name]
        host.console.users += 1
        host.measure()
        if not host.console.is_watched:
            host.console.is_watched = True
            self._watch(name)

    def go(self, name: SystemId) -> None:
        """Let an owner leave, if one is present."""
        console = self._federation.members[name].console
        if console.users:
            console.users -= 1
            console.left_at = self._federation.now

    def _next(self, every_ns: int) -> None:
        random = self._random
        assert random is not None, "visits are random"

        def happen() -> None:
            if self._are_gone:
                return
            name = random.choice(sorted(self._federation.members))
            if self._federation.members[name].machine is not None:
                self.come(name)
                self._federation.later(random.randrange(1, _LONGEST_VISIT_NS), partial(self.go, name))
            self._next(every_ns)

        self._federation.later(1 + int(random.expovariate(1) * every_ns), happen)

    def _watch(self, name: SystemId) -> None:
        def measure() -> None:
            host = self._federation.members[name]
            host.measure()
            if (host.console.idle_seconds(self._federation.now) or 0) < _WATCHED_SECONDS:
                self._watch(name)
            else:
                host.console.is_watched = False

        self._federation.later(_MEASURE_NS, measure)
