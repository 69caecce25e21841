"""Names of systems that `introductions:` cover: claims in their name count only if bytes end at their site."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.messages import ClaimEnd, DenyCode, SchedAccept, SchedRequest
from messiahs.core.model.ids import ClaimId, Epoch, SystemId, Ticket
from messiahs.core.model.routes import Splice, SpliceEnd
from messiahs.core.model.trust import OtherRoots, Trust
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    FAR,
    PARENT,
    SIBLING,
    TICKET,
    Rig,
    accept,
    deny,
    message_in,
    only,
    request,
    sent,
)

OURS, THEIRS, THIRD = b"1" * 16, b"2" * 16, b"3" * 16
HOP_TICKET = Ticket(b"h" * 16)
ALPHA, PACT = Trust(roots=(OURS, THEIRS), vouchers=(OURS,)), Trust(roots=(THIRD,), vouchers=(THIRD,))
BETA = Trust(roots=(THEIRS, OURS), vouchers=(THEIRS,))
INTRODUCED = OtherRoots(roots=(THEIRS,), names=(FAR, "far-*"), is_introduction=True)
OF_THIRD = OtherRoots(roots=(THIRD,), names=(SIBLING, "third-*"))
OTHERS = (INTRODUCED, OF_THIRD)
FOREIGN, FAR_GATE, THIRD_GATE = ClaimId(SystemId("foreign"), Epoch(3), 1), SystemId("far-gate"), SystemId("third-gate")
OWN_CLAIM = ClaimId(SIBLING, Epoch(3), 1)
CHAINED = SpliceEnd(system=SystemId("far-gate"), ticket=TICKET)

UNPROVED: Mapping[str, Mapping[str, object]] = {
    "the third site is the server and states its own roots": {"server": SIBLING, "trust": PACT},
    "the third site is the server and states the roots of the introduced one": {"server": SIBLING, "trust": BETA},
    "the third site is the server and states no roots": {"server": SIBLING},
    "the third site offers to pass bytes on": {"hop_ticket": HOP_TICKET, "hop_address": "sibling:1"},
    "another module of the third site is the server": {"server": THIRD_GATE, "trust": PACT},
    "a splice ends at the third site itself": {
        "address": "",
        "hop_ticket": HOP_TICKET,
        "splice": SpliceEnd(system=SIBLING, ticket=TICKET),
        "trust": BETA,
    },
    "the server alone has such a name": {"claim": FOREIGN, "server": FAR_GATE, "hop_ticket": HOP_TICKET},
    "no name is covered, but the roots stated are": {"claim": FOREIGN, "server": SIBLING, "trust": BETA},
}
PROVED: Mapping[str, Mapping[str, object]] = {
    "the executor is reached straight": {"trust": BETA},
    "the gate of its site is the server": {"server": FAR_GATE, "trust": BETA},
    "a splice leads to its site": {"address": "", "hop_ticket": HOP_TICKET, "splice": CHAINED, "trust": BETA},
    "the third site takes the task under its own name": {"claim": OWN_CLAIM, "trust": PACT},
    "a machine behind the third site has a name that nothing covers": {
        "claim": FOREIGN,
        "server": SIBLING,
        "trust": PACT,
    },
}


def origin(module: ModuleFactory, *, trust: Trust = ALPHA, others: tuple[OtherRoots, ...] = OTHERS) -> Rig:
    """Return a module whose sibling belongs to a third site, and whose parent to its own."""
    rig = module(trust=trust, apart=(SIBLING,))
    rig.state.identity = replace(rig.state.identity, apart_roots=((THIRD,),), other_sites=others)
    for system in (SIBLING, PARENT):
        rig.greet(system)
        rig.see(system)
    return rig


def offered(ask: SchedRequest, /, said: Mapping[str, object]) -> SchedAccept:
    return replace(accept(ask.id), **said)  # type: ignore[arg-type]


def asked_of_sibling(rig: Rig) -> SchedRequest:
    ((to, ask),) = sent(rig.submit(), SchedRequest)
    assert to == SIBLING
    return ask


@pytest.mark.parametrize("said", UNPROVED.values(), ids=UNPROVED)
def test_an_origin_refuses_a_covered_name_whose_bytes_would_not_end_at_its_site(
    module: ModuleFactory, said: Mapping[str, object]
) -> None:
    rig = origin(module)
    granted = offered(asked_of_sibling(rig), said)
    actions = rig.hear(SIBLING, granted)
    assert sent(actions, ClaimEnd) == ((SIBLING, ClaimEnd(claim=granted.claim)),)
    assert only(actions, SendTasks) == ()
    assert not rig.state.origin.claims
    # The search goes on with the next neighbor, and its reasons say why.
    ((to, again),) = sent(actions, SchedRequest)
    assert to == PARENT
    rig.hear(PARENT, deny(again.id))
    (shape,) = rig.state.origin.shapes.values()
    hops = [hop for reason in shape.reasons for hop in (reason, *reason.hops)]
    (text,) = [hop.text for hop in hops if hop.code is DenyCode.UNREACHABLE and hop.text]
    assert "`introductions:`" in text
    assert "`trusts_relays: true`" in text


@pytest.mark.parametrize("said", PROVED.values(), ids=PROVED)
def test_an_origin_uses_a_covered_name_whose_bytes_end_at_its_site_and_all_other_names(
    module: ModuleFactory, said: Mapping[str, object]
) -> None:
    rig = origin(module)
    granted = offered(asked_of_sibling(rig), said)
    actions = rig.hear(SIBLING, granted)
    assert sent(actions, ClaimEnd) == ()
    (brought,) = only(actions, SendTasks)
    assert isinstance(brought.address, Splice) is ("splice" in said)
    assert granted.claim in rig.state.origin.claims


def test_a_system_of_the_own_site_may_pass_on_what_is_for_a_covered_name(module: ModuleFactory) -> None:
    rig = origin(module)
    again = message_in(rig.hear(SIBLING, deny(asked_of_sibling(rig).id)), SchedRequest)
    for_far = {"server": PARENT, "hop_ticket": HOP_TICKET, "hop_address": "parent:1", "trust": ALPHA}
    (brought,) = only(rig.hear(PARENT, offered(again, for_far)), SendTasks)
    assert brought.to == PARENT


@pytest.mark.parametrize("roots", [THEIRS, THIRD])
def test_the_link_with_an_introduced_site_proves_its_names(module: ModuleFactory, roots: bytes) -> None:
    rig = origin(module)
    rig.state.identity = replace(rig.state.identity, apart_roots=((roots,),))
    stated = Trust(roots=(roots,), vouchers=(roots,))
    granted = offered(asked_of_sibling(rig), {"server": SIBLING, "trust": stated})
    assert bool(only(rig.hear(SIBLING, granted), SendTasks)) is (roots == THEIRS)


@pytest.mark.parametrize("said", UNPROVED.values(), ids=UNPROVED)
def test_a_site_that_trusts_relays_asks_for_no_proof(module: ModuleFactory, said: Mapping[str, object]) -> None:
    rig = origin(module, trust=replace(ALPHA, trusts_relays=True))
    assert only(rig.hear(SIBLING, offered(asked_of_sibling(rig), said)), SendTasks) != ()


def test_a_site_without_introductions_asks_for_no_proof(module: ModuleFactory) -> None:
    rig = origin(module, trust=Trust(roots=(OURS,), vouchers=(OURS,)), others=(OF_THIRD,))
    said = UNPROVED["the third site is the server and states the roots of the introduced one"]
    assert only(rig.hear(SIBLING, offered(asked_of_sibling(rig), said)), SendTasks) != ()


@pytest.mark.parametrize(
    ("asker", "is_refused"), [(ALPHA, True), (replace(ALPHA, trusts_relays=True), False), (Trust(), False)]
)
def test_a_hop_of_the_origins_site_judges_as_the_origin_does_and_one_elsewhere_does_not(
    module: ModuleFactory, asker: Trust, *, is_refused: bool
) -> None:
    rig = origin(module)
    rig.greet(CHILD)
    ((_, ask),) = sent(rig.hear(CHILD, request(1, trust=asker)), SchedRequest)
    actions = rig.hear(SIBLING, offered(ask, {"server": SIBLING, "trust": PACT}))
    assert bool(sent(actions, ClaimEnd)) is is_refused
    assert bool(sent(actions, SchedAccept)) is not is_refused
    assert [to for to, _ in sent(actions, SchedRequest)] == [PARENT] * is_refused
