"""Which roots a module trusts, as far as others need to know to place tasks (MESSIAHS 5.3.3: tasks go straight).

Control messages pass from neighbor to neighbor, each link with the roots that were recorded for it. A task stream goes
straight from the origin to the executor, so those two must trust each other without a link of their own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Fingerprints of root certificates: the first 16 bytes of their SHA-256. Empty means unknown.

    `roots` vouch for every system that has no roots of its own here; `vouchers` are those that vouch for the module.
    """

    roots: tuple[bytes, ...] = ()
    vouchers: tuple[bytes, ...] = ()


UNKNOWN = Trust()
"""Of a module that says nothing of its roots; it may trust everybody."""


def trusts(one: Trust, other: Trust) -> bool:
    """Say whether a module may trust another one: a root that vouches for that one is among its own, or unknown."""
    return not one.roots or not other.vouchers or not set(one.roots).isdisjoint(other.vouchers)


def trust_each_other(one: Trust, other: Trust) -> bool:
    """Say whether two modules without a link may open a task stream to each other."""
    return trusts(one, other) and trusts(other, one)
