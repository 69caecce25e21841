"""The unmet demand of the local users, and the sum that goes to the primary parent. Not stored."""

from dataclasses import dataclass, field
from typing import Final

from messiahs.core.model.decay import Decaying
from messiahs.core.model.demand import (
    DAY_HALF_LIFE_NS,
    OTHER_KEY,
    Demand,
    DemandClass,
    DemandKey,
    DemandSize,
    summed,
)
from messiahs.core.model.instants import MILLISECOND, Instant

_KEY_LIMIT: Final = 64
"""Most classes of which the past is kept, and `OTHER_KEY`."""
_MS: Final = 1_000
_PARTS: Final = 1 << 20
"""Denied tasks are counted in these parts of one, since amounts that decay are rounded down."""

Present = dict[DemandKey, tuple[int, int]]
"""The waiting tasks of each class, and the slots that they would take."""


@dataclass(slots=True)
class UnmetDemand:
    """The demand of the local users (mutable).

    The numbers of waiting tasks are those of `sampled_at`; from then on, each adds to the time for which its processors
    are wanted.
    """

    since: Instant | None = None
    """When the module began to count; None before its first update period."""
    sampled_at: Instant | None = None
    present: Present = field(default_factory=dict)
    wanted_ms: dict[DemandKey, Decaying] = field(default_factory=dict)
    """Processor-milliseconds of the last day."""
    denied: dict[DemandKey, Decaying] = field(default_factory=dict)
    """Tasks of the last day that were denied at once, in parts."""
    subtree: Demand = ()
    """The demand of this system and of its primary children, as of `sampled_at`."""

    def sample(self, present: Present, now: Instant) -> None:
        """Replace the waiting tasks, and count those before for the time until now."""
        if self.since is None:
            self.since = now
        self.wanted_ms = self._wanted_until(now)
        self.denied = _lasting(self.denied, now)
        self.present, self.sampled_at = present, now

    def deny(self, key: DemandKey, tasks: int, now: Instant) -> None:
        """Count tasks that were denied at once."""
        _increase(self.denied, key, tasks * _PARTS, now)

    def seen_with(self, present: Present, now: Instant) -> Demand:
        """Return the demand with these waiting tasks; nothing changes."""
        wanted_ms, denied = self._wanted_until(now), _lasting(self.denied, now)
        return summed(
            DemandClass(
                key,
                DemandSize(
                    *present.get(key, (0, 0)),
                    wanted_s=_rounded(wanted_ms.get(key), _MS),
                    denied=_rounded(denied.get(key), _PARTS),
                ),
            )
            for key in dict.fromkeys((*present, *wanted_ms, *denied))
        )

    def _wanted_until(self, now: Instant) -> dict[DemandKey, Decaying]:
        wanted_ms = _lasting(self.wanted_ms, now)
        elapsed_ms = max(0, now - self.sampled_at) // MILLISECOND if self.sampled_at is not None else 0
        for key, (_, processors) in self.present.items():
            _increase(wanted_ms, key, processors * elapsed_ms, now)
        return wanted_ms


def _increase(amounts: dict[DemandKey, Decaying], key: DemandKey, more: int, now: Instant) -> None:
    """Add to the amount of a class; beyond the limit, the smallest amount becomes a part of `OTHER_KEY`."""
    if not more:
        return
    if key not in amounts and len(amounts) >= _KEY_LIMIT:
        smallest = min((each for each in amounts if each != OTHER_KEY), key=lambda each: (amounts[each].amount, each))
        moved = amounts.pop(smallest).seen_at(now, DAY_HALF_LIFE_NS)
        _add(amounts, OTHER_KEY, moved.amount, now)
    _add(amounts, key, more, now)


def _add(amounts: dict[DemandKey, Decaying], key: DemandKey, more: int, now: Instant) -> None:
    amounts[key] = amounts.get(key, Decaying(amount=0, at=now)).increased(more, now, DAY_HALF_LIFE_NS)


def _lasting(amounts: dict[DemandKey, Decaying], now: Instant) -> dict[DemandKey, Decaying]:
    """Return the amounts of which something is left."""
    seen = {key: amount.seen_at(now, DAY_HALF_LIFE_NS) for key, amount in amounts.items()}
    return {key: amount for key, amount in seen.items() if amount.amount}


def _rounded(amount: Decaying | None, unit: int) -> int:
    return (amount.amount + unit // 2) // unit if amount is not None else 0
