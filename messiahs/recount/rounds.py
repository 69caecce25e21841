"""Repeating all checks while updates are in flight, until each has held once or has failed for long enough.

Modules are read one after the other while they go on, so a check may compare an update with its state before. It has
held if it holds in one read. A check that fails for three of the longest periods without holding has had three full
advertisements to hold in, and deviates. One that has failed for a shorter time when the audit ends is unsettled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from messiahs.recount.checks import Check, Place
from messiahs.recount.facts import Modules
from messiahs.recount.relations import relation_checks
from messiahs.recount.sums import Seen, sum_checks

_PERIODS = 3


@dataclass(slots=True)
class Recount:
    """An audit in progress (mutable); instants are in ns, of any clock that runs forward."""

    reads: int = 0
    held: set[Place] = field(default_factory=set)
    failing: dict[Place, tuple[int, Check]] = field(default_factory=dict)
    """Checks that have never held: since when they fail, and how they failed last."""
    _seen: Seen = field(default_factory=Seen)
    _failed_ns: int = 0
    _now_ns: int = 0

    def read(self, modules: Modules, now_ns: int) -> None:
        """Check the facts of one read. Places that are no more, such as a link that was ended, are forgotten."""
        self.reads, self._now_ns = self.reads + 1, now_ns
        self._seen.add(modules)
        self._failed_ns = _PERIODS * max((module.period_ns for module in modules.values()), default=0)
        checks = {
            check.place: check
            for check in (*relation_checks(modules), *sum_checks(modules, self._seen, held=self.held))
        }
        self.held = {place for place in checks if place in self.held or not checks[place].deviations}
        self.failing = {
            place: (self.failing[place][0] if place in self.failing else now_ns, check)
            for place, check in checks.items()
            if place not in self.held
        }

    @property
    def is_settled(self) -> bool:
        """Whether every check has held, or deviates."""
        return not any(True for _ in self._lasting(is_long=False))

    def deviating(self) -> tuple[Check, ...]:
        """Return the checks that have failed for long enough, by place."""
        return tuple(self._lasting(is_long=True))

    def unsettled(self) -> tuple[Check, ...]:
        """Return the checks that have neither held nor failed for long enough, by place."""
        return tuple(self._lasting(is_long=False))

    def _lasting(self, *, is_long: bool) -> Iterator[Check]:
        for _, (since_ns, check) in sorted(self.failing.items()):
            if (self._now_ns - since_ns >= self._failed_ns) == is_long:
                yield check
