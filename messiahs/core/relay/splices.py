"""Bytes of a claim that pass a module of a third site (MESSIAHS 5.3.3).

The path of a claim may lead through a site to which neither the origin nor the executor belongs. If both ends have been
introduced to each other, that module passes connections between them on, which it can neither read nor alter: a splice.
Without this it lets no bytes pass, unless both ends trust such modules with their bytes.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.border.sides import crosses
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import SpliceEnd
from messiahs.core.model.trust import Trust, are_introduced
from messiahs.core.state.module import ModuleState

NO_ANCHORS: Final = (
    "a module of a third site could read the bytes: both sites exchange their roots (`introductions:`), "
    "or both set `trusts_relays: true`"
)


def is_third_party(
    state: ModuleState, accept: SchedAccept, /, *, asker: SystemId, sender: SystemId, trust: Trust
) -> bool:
    """Return whether this module belongs neither to the site of an origin with these roots, nor to that of the server.

    Where roots are unknown, it depends on the neighbors toward both ends. A border that a claim crosses belongs to the
    site behind it.
    """
    if crosses(state, asker, sender):
        return False
    identity = state.identity
    if identity.trust.vouchers and trust.vouchers and accept.trust.vouchers:
        return not identity.is_of_site((*trust.vouchers, *accept.trust.vouchers))
    return {asker, sender}.issubset(identity.apart)


def why_not_passed(
    state: ModuleState, accept: SchedAccept, /, *, asker: SystemId, sender: SystemId, trust: Trust
) -> str:
    """Return why no bytes may pass here between an origin with these roots and the server; empty if they may."""
    is_third = is_third_party(state, accept, asker=asker, sender=sender, trust=trust)
    if not is_third or are_introduced(trust, accept.trust):
        return ""
    return "" if trust.trusts_relays and accept.trust.trusts_relays else NO_ANCHORS


def is_spliced(state: ModuleState, accept: SchedAccept, /, *, asker: SystemId, sender: SystemId, trust: Trust) -> bool:
    """Return whether only connections pass here between an origin with these roots and the server."""
    is_third = is_third_party(state, accept, asker=asker, sender=sender, trust=trust)
    return is_third and are_introduced(trust, accept.trust)


def spliced(state: ModuleState, accept: SchedAccept, row: PassedClaimRow, /) -> SchedAccept:
    """Return an accept as a hop of a third site sends it on: with the next system that may read the bytes."""
    assert row.route is not None, "a hop makes a route for each claim"
    end = SpliceEnd(system=row.route.path.system, ticket=row.route.path.ticket)
    return replace(accept, hop_address=state.identity.address, hop_ticket=row.ticket, splice=end)


def is_anchored(state: ModuleState, neighbor: SystemId, other: Trust, /) -> bool:
    """Return whether a neighbor belongs to a third site, and connections through it lead to an end with these roots.

    The neighbor knows the tickets that pass it, and must not use them.
    """
    apart = dict(zip(state.identity.apart, state.identity.apart_roots, strict=False))
    roots = apart.get(neighbor, ())
    is_third = bool(roots) and set(roots).isdisjoint((*other.vouchers, *state.identity.trust.vouchers))
    return is_third and are_introduced(state.identity.trust, other)


def without_readers(state: ModuleState, accept: SchedAccept, /, *, sender: SystemId) -> SchedAccept:
    """Return an accept without the offer of a third site's hop to pass bytes on that it could read.

    Hops of earlier releases make such offers. The server may still be reached straight.
    """
    if accept.splice is not None or accept.hop_ticket is None or not is_anchored(state, sender, accept.trust):
        return accept
    return replace(accept, hop_address=None, hop_ticket=None)
