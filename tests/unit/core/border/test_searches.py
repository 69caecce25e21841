"""What a border shows of requests, grants and denials (MESSIAHS 4, 6.2)."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import SendVector
from messiahs.core.interface.events import LinkDown
from messiahs.core.interface.messages import (
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskDeny,
    TaskRequest,
)
from messiahs.core.interface.policies import Asker
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.places import digest_of
from messiahs.core.model.trust import Trust
from messiahs.core.relay.disclosure import signed
from tests.unit.core.border.gate import (
    HOME,
    INSIDE_CLAIM,
    INSIDE_KEY,
    OURS,
    OUTSIDE_CLAIM,
    OUTSIDE_KEY,
    OWN_KEY,
    asked,
    gate,
    granted_inside,
    granted_outside,
    leaks,
    toward,
)
from tests.unit.core.rig import (
    CHILD,
    FAR,
    ME,
    ORIGIN,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    message_in,
    request,
    sent,
    tdv,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

THEIRS = Trust(roots=(b"t" * 16,), vouchers=(b"t" * 16,))


def outward_request(rig: Rig, number: int = 1, /, **said: object) -> SchedRequest:
    """Return the request that leaves the site for one from the child, which finds nothing at the other child."""
    message = request(number, search=bytes([number]) * 16, origin=HOME, trust=THEIRS, **said)
    actions = rig.hear(CHILD, message)
    for _ in range(3):
        ((to, ask),) = sent(actions, SchedRequest)
        if to in (PARENT, SIBLING):
            assert leaks(actions) == []
            return ask
        actions = rig.hear(to, SchedDeny(request=ask.id, reasons=(), asks_left=60))
    raise AssertionError("the request did not leave the site")


def test_a_request_leaves_the_site_as_one_of_the_border_with_its_roots_and_its_key_alone() -> None:
    ask = outward_request(gate(), tdv=tdv(origin=HOME, mem=5), dialers=(INSIDE_KEY,))
    assert (ask.origin, ask.trust, ask.dialers) == (ME, OURS, (OWN_KEY,))
    said = ask.tdv.description()
    assert (said["origin"], said["mem"]) == (ME, 5)
    assert said["user"] != "ann"


def test_the_pseudonym_of_a_user_is_stable_and_differs_by_home_by_neighbor_and_by_key() -> None:
    def pseudonym(
        policy: ScriptedPolicy, *, user: str = "ann", home: SystemId = HOME, key: bytes = b"k" * 32
    ) -> object:
        rig = gate(policy, key=key)
        ask = message_in(rig.hear(CHILD, request(tdv=tdv(user=user), origin=home)), SchedRequest)
        return ask.tdv.description()["user"]

    to_parent, to_sibling = toward(PARENT), toward(SIBLING)
    first = pseudonym(to_parent)
    assert pseudonym(to_parent) == first
    others = {
        pseudonym(to_sibling),
        pseudonym(to_parent, user="bob"),
        pseudonym(to_parent, home=CHILD),
        pseudonym(to_parent, key=b"l" * 32),
    }
    assert len(others - {first}) == 4


def test_requests_of_the_borders_own_users_name_the_border_and_a_pseudonym() -> None:
    rig = gate(toward(PARENT))
    ask = message_in(rig.submit(), SchedRequest)
    assert (ask.origin, ask.dialers) == (ME, (OWN_KEY,))
    assert ask.tdv.description()["user"] != "ann"


def test_a_request_between_two_children_is_not_changed() -> None:
    rig = gate(toward(OTHER_CHILD))
    message = request(origin=HOME, dialers=(INSIDE_KEY,), trust=THEIRS)
    ask = message_in(rig.hear(CHILD, message), SchedRequest)
    assert (ask.origin, ask.dialers, ask.trust, ask.tdv) == (HOME, (INSIDE_KEY,), THEIRS, message.tdv)


def test_a_request_from_outside_keeps_its_origin_and_gets_the_borders_key() -> None:
    ask = asked(gate(), PARENT, dialers=(OUTSIDE_KEY,), trust=THEIRS)
    assert (ask.origin, ask.dialers, ask.trust) == (ORIGIN, (OWN_KEY,), OURS)
    assert ask.tdv.description()["user"] == "ann"


def test_the_outside_is_hidden_from_a_child_to_whom_the_policy_names_this_system() -> None:
    rig = gate(toward(CHILD, names={CHILD: "campus"}))
    ask = asked(rig, PARENT)
    assert ask.origin == ME
    assert ask.tdv.description()["origin"] == ME
    assert ask.tdv.description()["user"] != "ann"


def test_a_request_for_tasks_leaves_the_site_as_one_of_the_border() -> None:
    rig = gate()
    rig.state.updates.views = {
        key: replace(view, message=replace(view.message, waiting=3)) for key, view in rig.state.updates.views.items()
    }
    wanted = TaskRequest(
        id=MessageId(1), search=SearchId(b"r" * 16), requester=FAR, wanting="", count=1, hops_left=32, asks_left=64,
        remaining_ns=10 * SECOND, trust=THEIRS,
    )  # fmt: skip
    actions = rig.hear(CHILD, wanted)
    while sent(actions, TaskRequest)[0][0] == OTHER_CHILD:
        ask = message_in(actions, TaskRequest)
        actions = rig.hear(OTHER_CHILD, TaskDeny(request=ask.id, reasons=(), asks_left=60))
    ask = message_in(actions, TaskRequest)
    assert (ask.requester, ask.trust) == (ME, OURS)
    assert leaks(actions) == []


def test_a_grant_from_inside_has_another_claim_a_place_and_the_borders_address() -> None:
    rig = gate()
    shown, row = granted_inside(rig)
    assert row.shown == shown.claim != INSIDE_CLAIM
    assert shown.claim.executor == ME
    assert not rig.state.is_own(*shown.claim[:2])
    assert (shown.server, shown.address, shown.ticket) == (ME, "me:1", row.ticket)
    assert (shown.hop_address, shown.hop_ticket, shown.trust) == (None, None, OURS)
    assert len(shown.place) == 16


def test_the_place_of_a_machine_is_the_same_for_its_claims_and_another_for_each_machine_and_neighbor() -> None:
    rig = gate(toward(CHILD))
    second = ClaimId(FAR, Epoch(3), 2)
    elsewhere = ClaimId(OTHER_CHILD, Epoch(3), 1)
    places = [
        granted_inside(rig, number, claim=claim)[0].place
        for number, claim in enumerate((INSIDE_CLAIM, second, elsewhere), start=1)
    ]
    assert places[0] == places[1] != places[2]
    ask = asked(rig, SIBLING, 9)
    third = message_in(rig.hear(CHILD, accept(ask.id, claim=ClaimId(FAR, Epoch(3), 3))), SchedAccept)
    assert third.place not in places


def test_a_place_behind_an_inner_border_tells_its_machines_apart() -> None:
    rig = gate(toward(CHILD))
    places = []
    for number, place in enumerate((b"1" * 16, b"2" * 16, b"1" * 16), start=1):
        ask = asked(rig, PARENT, number)
        grant = replace(accept(ask.id, claim=ClaimId(FAR, Epoch(3), number)), place=place)
        places.append(message_in(rig.hear(CHILD, grant), SchedAccept).place)
    assert places[0] == places[2] != places[1]


def test_a_grant_from_outside_goes_in_unchanged_but_for_the_borders_address() -> None:
    rig = gate(toward(PARENT))
    ask = asked(rig, CHILD, origin=HOME)
    grant = replace(accept(ask.id, claim=OUTSIDE_CLAIM), place=b"p" * 16)
    shown = message_in(rig.hear(PARENT, grant), SchedAccept)
    assert (shown.claim, shown.place, shown.server, shown.address) == (OUTSIDE_CLAIM, b"p" * 16, ME, "me:1")


def test_a_grant_with_an_id_that_only_this_border_gives_is_dropped() -> None:
    rig = gate(toward(PARENT))
    shown, _ = granted_inside(rig, 2)
    ask = asked(rig, CHILD, origin=HOME)
    actions = rig.hear(PARENT, accept(ask.id, claim=shown.claim))
    assert sent(actions, SchedAccept) == ()


def test_machines_to_avoid_are_named_to_their_own_side_alone() -> None:
    rig = gate(toward(CHILD))
    shown, _ = granted_inside(rig)
    search = SearchId(b"\x05" * 16)
    known, strange = digest_of(shown.place, search), digest_of(b"strange", search)
    assert asked(rig, PARENT, 5, avoids=(strange, known)).avoids == (digest_of(FAR.encode(), search),)


def test_machines_inside_are_not_named_outside_even_by_digests() -> None:
    rig = gate(toward(PARENT))
    granted_outside(rig)
    search = SearchId(b"\x06" * 16)
    within, without = digest_of(FAR.encode(), search), digest_of(OUTSIDE_CLAIM.executor.encode(), search)
    assert asked(rig, CHILD, 6, origin=HOME, avoids=(within, without)).avoids == (without,)


@pytest.mark.parametrize("viewer", [PARENT, SIBLING])
def test_denials_from_inside_have_codes_and_the_texts_of_rules_alone(viewer: SystemId) -> None:
    rig = gate(toward(CHILD))
    ask = asked(rig, viewer)
    below = (
        Reason(module=FAR, code=DenyCode.REFUSED_BY_POLICY, text="too large"),
        Reason(module=HOME, code=DenyCode.LIMIT_REACHED, text=f"{CHILD} has 256 searches open"),
    )
    reasons = (Reason(module=CHILD, code=DenyCode.NO_CAPACITY, text="full", hops=below),)
    actions = rig.hear(CHILD, SchedDeny(request=ask.id, reasons=reasons, asks_left=60))
    last = message_in(actions, SchedRequest)
    actions = rig.hear(OTHER_CHILD, SchedDeny(request=last.id, reasons=(), asks_left=60))
    (reason,) = message_in(actions, SchedDeny).reasons
    assert reason.module == ME
    withheld = f"text withheld by the border {ME}"
    assert (reason.module, reason.code, reason.text) == (ME, DenyCode.NO_CAPACITY, withheld)
    assert [(each.module, each.code, each.text, each.hops) for each in reason.hops] == [
        (ME, DenyCode.REFUSED_BY_POLICY, "too large", ()),
        (ME, DenyCode.LIMIT_REACHED, withheld, ()),
    ]
    assert leaks(actions) == []


@pytest.mark.parametrize(("viewer", "text"), [(PARENT, ""), (SIBLING, ""), (CHILD, "all slots are in use now")])
def test_what_a_border_says_of_its_own_limits_stays_inside(viewer: SystemId, text: str) -> None:
    rig = gate(toward(CHILD))
    reason = Reason(module=ME, code=DenyCode.LIMIT_REACHED, rule="limit 1 tasks", text="all slots are in use now")
    asker = Asker(system=viewer, relation=rig.state.neighbors[viewer].relation)
    shown = signed(rig.state, reason, asker)
    assert (shown.code, shown.rule, shown.text) == (DenyCode.LIMIT_REACHED, "", text)


def test_a_denial_with_the_borders_own_code_tells_of_no_level_below_it() -> None:
    rig = gate(toward(CHILD))
    ask = asked(rig, PARENT)
    for child, text in ((CHILD, ""), (OTHER_CHILD, "too large")):
        refusal = Reason(module=FAR, code=DenyCode.REFUSED_BY_POLICY, text=text)
        actions = rig.hear(child, SchedDeny(request=ask.id, reasons=(refusal,), asks_left=60))
        ask = next((each for _, each in sent(actions, SchedRequest)), ask)
    (reason,) = message_in(actions, SchedDeny).reasons
    assert (reason.code, reason.text, reason.hops) == (DenyCode.REFUSED_BY_POLICY, "too large", ())


def test_the_outside_learns_of_missing_links_of_the_border_to_the_outside_alone() -> None:
    rig = gate()
    rig.handle(LinkDown(neighbor=OTHER_CHILD))
    rig.handle(LinkDown(neighbor=SIBLING))
    vectors = [each for each in rig.wait(5 * SECOND) if isinstance(each, SendVector)]
    to_parent = [each.message.missing for each in vectors if each.to == PARENT]
    assert to_parent[-1] == (MissingLink(module=ME, neighbor=SIBLING),)
    to_child = [each.message.missing for each in vectors if each.to == CHILD]
    assert {each.neighbor for each in to_child[-1]} == {SIBLING, OTHER_CHILD}


def test_a_system_without_a_key_is_no_border() -> None:
    rig = gate(key=b"")
    shown, row = granted_inside(rig)
    assert (shown.claim, shown.place, row.shown) == (INSIDE_CLAIM, b"", None)
