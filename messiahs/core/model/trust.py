"""The roots that a module trusts, as far as placing tasks depends on them (MESSIAHS 5.3.3: tasks are sent directly).

Control messages pass from neighbor to neighbor, and each link uses the roots recorded for it. A task stream runs
directly from the origin to the executor, so these two must trust each other without a link of their own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Fingerprints of root certificates: the first 16 bytes of their SHA-256. Empty means unknown.

    `roots` vouch for every system for which no roots are recorded here; `vouchers` vouch for the module itself.
    """

    roots: tuple[bytes, ...] = ()
    vouchers: tuple[bytes, ...] = ()


UNKNOWN = Trust()
"""The trust of a module that reports no roots; it may trust every system."""


def trusts(one: Trust, other: Trust) -> bool:
    """Return whether a module may trust another: a root that vouches for it is among its own roots, or unknown."""
    return not one.roots or not other.vouchers or not set(one.roots).isdisjoint(other.vouchers)


def trust_each_other(one: Trust, other: Trust) -> bool:
    """Return whether two modules without a link may open a task stream to each other."""
    return trusts(one, other) and trusts(other, one)
