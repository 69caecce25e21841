"""Names of other sites' systems, and what proves that bytes end at them (MESSIAHS 5.3.3).

The executor of a claim, and its server, are the word of the hops on its path, and a hop may belong to anybody. Where
`introductions:` say which roots vouch for such a name, an accept with it is used only if the bytes end at a system for
which these roots vouch: the handshake of each connection proves that. Whatever the name, no bytes end at a third site
that states the roots of one that was introduced.
"""

from collections.abc import Iterable

from messiahs.core.interface.messages import SchedAccept
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import OtherRoots, Trust, matches
from messiahs.core.relay.byte_route import route_of
from messiahs.core.relay.splices import is_anchored
from messiahs.core.state.module import ModuleState


def why_not_proved(state: ModuleState, accept: SchedAccept, /, *, sender: SystemId, trust: Trust) -> str:
    """Return why an accept from a neighbor is not used for an origin with these roots; empty if it may be.

    Only modules of the origin's site judge, unless that site trusts modules of third sites with its bytes.
    """
    is_of_this_site = trust == state.identity.trust or state.identity.is_of_site(trust.vouchers)
    if trust.trusts_relays or not is_of_this_site:
        return ""
    named = accept.claim.executor
    expected = _introduced(state, named)
    if not expected and accept.server is not None:
        expected = _introduced(state, accept.server)
    route = route_of(accept, sender)
    ends = (route.straight.system, route.path.system)
    is_proved = not expected or all(_ends_at(state, end, expected) for end in ends)
    if is_proved and not any(is_anchored(state, end, accept.trust) for end in ends):
        return ""
    return (
        f"{sender} offers {named}, and a third site could read the bytes: they would not end at a system for which the "
        "roots in `introductions:` vouch; only `trusts_relays: true` permits that"
    )


def _introduced(state: ModuleState, name: SystemId) -> set[bytes]:
    """Return the roots that `introductions:` name for a system; empty if no pattern there matches."""
    return _roots((each for each in state.identity.other_sites if each.is_introduction), name)


def _ends_at(state: ModuleState, end: SystemId, expected: set[bytes]) -> bool:
    """Return whether a connection to a system proves one of these roots, or that it is one of this site.

    A module of this site judges in turn where the bytes that it passes on end.
    """
    identity = state.identity
    apart = dict(zip(identity.apart, identity.apart_roots, strict=False))
    roots = set(apart[end]) if end in apart else _roots(identity.other_sites, end)
    return not roots or not roots.isdisjoint(expected)


def _roots(sites: Iterable[OtherRoots], name: SystemId) -> set[bytes]:
    return {root for each in sites if matches(name, each.names) for root in each.roots}
