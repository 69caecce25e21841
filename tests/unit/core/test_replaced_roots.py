"""The roots and the certificate of a module are replaced while it runs."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Link, Report
from messiahs.core.interface.events import RootsChanged
from messiahs.core.interface.membership_messages import SiblingRequest
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.model.ids import ClaimId, Epoch, Ticket
from messiahs.core.model.trust import OtherRoots, Trust
from messiahs.core.relay.splices import NO_ANCHORS
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.membership.sibling_messages import assign, one
from tests.unit.core.rig import (
    CHILD,
    FAR,
    PARENT,
    SIBLING,
    STRANGER,
    Rig,
    accept,
    deny,
    message_in,
    only,
    request,
    sent,
)

OLD, NEW, THEIRS, THIRD = (bytes([letter]) * 16 for letter in b"onwt")
BEFORE, AFTER = Trust(roots=(OLD,), vouchers=(OLD,)), Trust(roots=(NEW,), vouchers=(NEW,))
MIXED_OLD = Trust(roots=(OLD, NEW), vouchers=(OLD,))
"""That of a module while both roots are in force: the old one has signed its certificate."""
MIXED_NEW = Trust(roots=(OLD, NEW), vouchers=(NEW,))
ELSEWHERE, OF_THIRD = Trust(roots=(THEIRS,), vouchers=(THEIRS,)), Trust(roots=(THIRD,), vouchers=(THIRD,))
LINKED = OtherRoots(roots=(THEIRS,), names=(CHILD, "far-*"))
KEY, CLAIM = b"k" * 16, ClaimId(FAR, Epoch(3), 1)


def changed(trust: Trust, *, key: bytes = KEY) -> RootsChanged:
    """Return what a module of the site learns, whose child is the gate of another site."""
    return RootsChanged(key=key, trust=trust, apart=(CHILD,), apart_roots=((THEIRS,),), other_sites=(LINKED,))


def gate(module: ModuleFactory, trust: Trust) -> Rig:
    """Return a module that is linked with another site, below a parent of its own site."""
    rig = module(trust=trust, apart=(CHILD,), key=KEY)
    rig.handle(changed(trust))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    return rig


def asked(rig: Rig, origin: Trust) -> tuple[SchedRequest, tuple[Action, ...]]:
    """Pass a request on that comes from an origin with these roots, and return what follows an accept."""
    ((_, ask),) = sent(rig.hear(PARENT, request(trust=origin, dialers=(KEY,))), SchedRequest)
    return ask, rig.hear(CHILD, replace(accept(ask.id), claim=CLAIM, trust=ELSEWHERE))


def test_a_module_of_the_site_with_the_new_root_is_taken_for_one_of_a_third_site_until_the_roots_are_replaced(
    module: ModuleFactory,
) -> None:
    rig = gate(module, BEFORE)
    ask, actions = asked(rig, AFTER)
    assert ask.is_foreign
    (denied,) = [message for to, message in sent(actions, SchedDeny) if to == PARENT]
    assert NO_ANCHORS in [hop.text for reason in denied.reasons for hop in (reason, *reason.hops)]
    assert rig.state.ways.refused
    rig.handle(changed(AFTER))
    assert not rig.state.ways.refused, "the same machine is asked again at once"
    # Another search, since this one is over.
    ask = message_in(rig.hear(PARENT, request(2, search=b"2" * 16, trust=AFTER, dialers=(KEY,))), SchedRequest)
    assert not ask.is_foreign
    granted = replace(accept(ask.id), claim=CLAIM._replace(number=2), trust=ELSEWHERE)
    ((to, _),) = sent(rig.hear(CHILD, granted), SchedAccept)
    assert to == PARENT


@pytest.mark.parametrize(("own", "origin"), [(MIXED_NEW, MIXED_OLD), (MIXED_OLD, MIXED_NEW), (MIXED_NEW, BEFORE)])
def test_modules_with_certificates_of_both_roots_are_of_one_site_while_both_are_in_force(
    module: ModuleFactory, own: Trust, origin: Trust
) -> None:
    ask, actions = asked(gate(module, own), origin)
    assert not ask.is_foreign
    ((to, _),) = sent(actions, SchedAccept)
    assert to == PARENT


@pytest.mark.parametrize("own", [BEFORE, MIXED_OLD, MIXED_NEW, AFTER])
def test_a_third_site_stays_one_whatever_root_is_in_force(module: ModuleFactory, own: Trust) -> None:
    rig = gate(module, BEFORE)
    rig.handle(changed(own))
    ask, actions = asked(rig, OF_THIRD)
    assert ask.is_foreign
    assert sent(actions, SchedAccept) == ()
    assert (CHILD, ClaimEnd(claim=CLAIM)) in sent(actions, ClaimEnd)


@pytest.mark.parametrize("own", [MIXED_OLD, MIXED_NEW])
def test_a_module_judges_offers_for_all_of_its_site_while_both_roots_are_in_force(
    module: ModuleFactory, own: Trust
) -> None:
    rig = module(trust=own, apart=(CHILD,), key=KEY)
    introduced = OtherRoots(roots=(THEIRS,), names=(FAR,), is_introduction=True)
    third = OtherRoots(roots=(THIRD,), names=(CHILD,))
    trust = replace(own, roots=(*own.roots, THEIRS))
    rig.handle(
        RootsChanged(key=KEY, trust=trust, apart=(CHILD,), apart_roots=((THIRD,),), other_sites=(introduced, third))
    )
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    for number, vouchers in enumerate(((OLD,), (NEW,)), start=1):
        origin = Trust(roots=trust.roots, vouchers=vouchers)
        asking = request(number, search=bytes([number]) * 16, trust=origin, dialers=(KEY,))
        ask = message_in(rig.hear(PARENT, asking), SchedRequest)
        # A third site offers a machine of the introduced site, and to pass the bytes on itself.
        granted = replace(accept(ask.id), claim=CLAIM._replace(number=number), server=CHILD, trust=OF_THIRD)
        actions = rig.hear(CHILD, granted)
        assert sent(actions, SchedAccept) == ()
        assert [to for to, _ in sent(actions, ClaimEnd)] == [CHILD]


def test_an_own_search_is_judged_by_the_roots_of_now(module: ModuleFactory) -> None:
    rig = module(trust=BEFORE, apart=(SIBLING,), key=KEY)
    rig.greet(SIBLING)
    rig.see(SIBLING)
    introduced = OtherRoots(roots=(THEIRS,), names=(FAR,), is_introduction=True)
    ask = message_in(rig.submit(), SchedRequest)
    trust = Trust(roots=(NEW, THEIRS), vouchers=(NEW,))
    rig.handle(RootsChanged(key=KEY, trust=trust, apart=(SIBLING,), apart_roots=((THIRD,),), other_sites=(introduced,)))
    granted = replace(accept(ask.id), claim=CLAIM, server=SIBLING, ticket=Ticket(b"t" * 16), trust=OF_THIRD)
    assert (SIBLING, ClaimEnd(claim=CLAIM)) in sent(rig.hear(SIBLING, granted), ClaimEnd)
    assert not rig.state.origin.claims


def test_a_sibling_that_was_refused_for_its_roots_is_taken_after_the_change(module: ModuleFactory) -> None:
    rig = module(trust=BEFORE, key=KEY)
    rig.greet(PARENT)
    newcomer = one(STRANGER, roots=(NEW,))
    actions = rig.hear(PARENT, assign(newcomer))
    (report,) = only(actions, Report)
    assert report.text == f"assigns {STRANGER} as a sibling, by roots that are not those of this site"
    assert message_in(actions, SiblingRequest).refused == (STRANGER,)
    assert message_in(rig.handle(RootsChanged(key=KEY, trust=AFTER)), SiblingRequest).refused == ()
    assert only(rig.hear(PARENT, assign(newcomer)), Link)


def test_waiting_tasks_are_searched_for_again_at_once_and_the_requests_have_the_new_key(module: ModuleFactory) -> None:
    rig = module(trust=BEFORE, key=KEY)
    rig.greet(CHILD)
    rig.see(CHILD)
    ask = message_in(rig.submit(), SchedRequest)
    assert (ask.trust, ask.dialers) == (BEFORE, (KEY,))
    assert sent(rig.hear(CHILD, deny(ask.id)), SchedRequest) == ()
    again = message_in(rig.handle(RootsChanged(key=b"2" * 16, trust=AFTER)), SchedRequest)
    assert (again.trust, again.dialers) == (AFTER, (b"2" * 16,))


def test_roots_that_are_the_same_change_nothing(module: ModuleFactory) -> None:
    rig = module(trust=BEFORE, key=KEY)
    rig.greet(CHILD)
    rig.see(CHILD)
    rig.hear(CHILD, deny(message_in(rig.submit(), SchedRequest).id))
    assert rig.handle(RootsChanged(key=KEY, trust=BEFORE)) == ()
