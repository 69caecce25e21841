"""Amounts that decay: halved after each half-life, in integers, so that every host computes the same."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.model.instants import Instant

_STEPS: Final = 64
"""Steps in a half-life; an amount changes at whole steps only, so that asking often does not change the result."""
_BITS: Final = 62
_STEP: Final = 4_562_008_997_483_360_349
"""2^(62 - 1/64), rounded down: what one step leaves of 2^62."""
_GONE: Final = 128
"""Half-lives after which nothing is left of an amount of 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decaying:
    """An amount as it was at an instant."""

    amount: int
    at: Instant

    def seen_at(self, now: Instant, half_life_ns: int) -> "Decaying":
        """Return the amount after the whole steps until `now`; an earlier `now` changes nothing."""
        step_ns = max(1, half_life_ns // _STEPS)
        steps = max(0, now - self.at) // step_ns
        halvings, rest = divmod(steps, _STEPS)
        left = 0 if halvings >= _GONE else self.amount * _STEP**rest >> (_BITS * rest + halvings)
        return Decaying(amount=left, at=Instant(self.at + steps * step_ns))

    def increased(self, amount: int, now: Instant, half_life_ns: int) -> "Decaying":
        """Return the amount at `now` with a further one."""
        present = self.seen_at(now, half_life_ns)
        return Decaying(amount=present.amount + amount, at=present.at)
