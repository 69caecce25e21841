"""The roots that a module trusts, as far as the way of tasks depends on them (MESSIAHS 5.3.3).

Control messages pass from neighbor to neighbor, and each link uses the roots recorded for it. A straight task stream
runs between systems without a link, which must trust each other's roots; without that, tasks follow the path of their
claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Fingerprints of root certificates: the first 16 bytes of their SHA-256. Empty means unknown.

    `roots` vouch for every system for which no roots are recorded here; `vouchers` vouch for the module itself.
    `trusts_relays`: modules of third sites may pass bytes on that they can read and alter.
    """

    roots: tuple[bytes, ...] = ()
    vouchers: tuple[bytes, ...] = ()
    trusts_relays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRoots:
    """Roots of another site, as fingerprints, and patterns of the names for which they may vouch.

    `is_introduction`: they are those of systems without a link.
    """

    roots: tuple[bytes, ...]
    names: tuple[str, ...]
    is_introduction: bool = False


UNKNOWN = Trust()
"""The trust of a module that reports no roots; it may trust every system."""


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns matches a name; `*` stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def trusts(one: Trust, other: Trust) -> bool:
    """Return whether a module may trust another: a root that vouches for it is among its own roots, or unknown."""
    return not one.roots or not other.vouchers or not set(one.roots).isdisjoint(other.vouchers)


def are_introduced(one: Trust, other: Trust) -> bool:
    """Return whether two modules report roots by which each trusts the other."""
    is_known = all((one.roots, one.vouchers, other.roots, other.vouchers))
    return is_known and trust_each_other(one, other)


def trust_each_other(one: Trust, other: Trust) -> bool:
    """Return whether two modules without a link may open a task stream to each other."""
    return trusts(one, other) and trusts(other, one)
