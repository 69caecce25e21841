"""Searching for places: sched_request, sched_accept and sched_deny at each kind of module."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Decision, Report, SendControl, Store
from messiahs.core.interface.events import LinkDown, StoreChanged
from messiahs.core.interface.messages import ClaimEnd, DenyCode, Reason, SchedAccept, SchedDeny, SchedRequest
from messiahs.core.interface.policies import Refused
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SearchId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.model.routes import Leg, Route
from messiahs.core.vectors.vectors import EMPTY
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    FAR,
    ME,
    ORIGIN,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    STRANGER,
    TICKET,
    Rig,
    accept,
    deny,
    message_in,
    only,
    reported,
    request,
    sent,
    tdv,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy


def asked(actions: tuple[Action, ...]) -> tuple[SystemId, SchedRequest]:
    ((to, message),) = sent(actions, SchedRequest)
    return to, message


def codes(denial: SchedDeny) -> list[str]:
    return [reason.code for reason in denial.reasons]


def hops(denial: SchedDeny) -> list[tuple[str, str]]:
    return [(hop.module, hop.code) for reason in denial.reasons for hop in reason.hops]


def test_a_request_for_which_the_own_machine_has_room_is_accepted(rig: Rig) -> None:
    rig.measure()
    actions = rig.hear(CHILD, request(count=3))
    granted = message_in(actions, SchedAccept)
    assert (granted.request, granted.places, granted.window) == (1, 3, 3)
    assert (granted.claim.executor, granted.address) == (ME, "me:1")
    assert sent(actions, SchedRequest) == ()
    assert rig.state.hop.searches == {}


def test_what_the_own_machine_cannot_take_is_asked_of_the_next_one(rig: Rig) -> None:
    rig.measure(slots=2)
    actions = rig.hear(CHILD, request(count=5))
    assert message_in(actions, SchedAccept).places == 2
    to, ask = asked(actions)
    assert (to, ask.count) == (SIBLING, 3)


@pytest.mark.parametrize("asker", [PARENT, SIBLING])
def test_a_request_from_above_or_beside_only_descends(rig: Rig, asker: SystemId) -> None:
    to, ask = asked(rig.hear(asker, request()))
    assert to == CHILD
    denial = message_in(rig.hear(CHILD, deny(ask.id)), SchedDeny)
    assert codes(denial) == ["no_class"]


def test_a_request_from_a_child_may_go_to_other_children_siblings_and_parents(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    for system in (CHILD, OTHER_CHILD, SIBLING, PARENT):
        rig.see(system)
    order = []
    to, ask = asked(rig.hear(CHILD, request()))
    for _ in range(2):
        order.append(to)
        to, ask = asked(rig.hear(to, deny(ask.id)))
    order.append(to)
    assert order == [OTHER_CHILD, SIBLING, PARENT]
    assert sent(rig.hear(PARENT, deny(ask.id)), SchedDeny)[0][0] == CHILD


def test_a_request_never_goes_back_to_its_asker(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.see(CHILD)
    assert sent(rig.hear(CHILD, request()), SchedRequest) == ()


def test_each_budget_shrinks_from_hop_to_hop(rig: Rig) -> None:
    given = request(hops_left=5, asks_left=7, remaining_ns=10 * SECOND)
    _, ask = asked(rig.hear(CHILD, given))
    assert (ask.hops_left, ask.asks_left) == (4, 6)
    assert ask.remaining_ns == (10 * SECOND - 20 * MILLISECOND) * 3 // 4
    assert (ask.search, ask.origin, ask.tdv) == (given.search, given.origin, given.tdv)


def test_the_last_candidate_gets_all_the_time_that_is_left_but_what_the_hop_keeps(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request(remaining_ns=10 * SECOND)))
    assert ask.remaining_ns == 10 * SECOND - 20 * MILLISECOND


def test_asks_that_a_neighbor_used_up_are_gone(rig: Rig) -> None:
    to, ask = asked(rig.hear(CHILD, request(asks_left=10)))
    _, ask = asked(rig.hear(to, deny(ask.id, asks_left=4)))
    assert ask.asks_left == 3


def test_no_neighbor_can_give_asks_back_that_it_was_never_given(rig: Rig) -> None:
    to, ask = asked(rig.hear(CHILD, request(asks_left=10)))
    _, ask = asked(rig.hear(to, deny(ask.id, asks_left=1_000)))
    assert ask.asks_left == 8


def test_a_request_cannot_have_larger_budgets_than_one_of_our_own(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request(hops_left=1 << 40, asks_left=1 << 40, remaining_ns=1 << 62)))
    assert (ask.hops_left, ask.asks_left) == (31, 63)
    assert ask.remaining_ns < 600 * SECOND


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"hops_left": 0}, DenyCode.HOP_LIMIT),
        ({"asks_left": 0}, DenyCode.TIMED_OUT),
        ({"remaining_ns": 20 * MILLISECOND}, DenyCode.TIMED_OUT),
        ({"remaining_ns": 0}, DenyCode.TIMED_OUT),
        ({"requirement": "$speed >"}, DenyCode.BAD_PREDICATE),
    ],
)
def test_a_request_that_can_go_nowhere_is_denied_at_once(rig: Rig, said: dict[str, object], code: DenyCode) -> None:
    actions = rig.hear(CHILD, request(**said))
    assert codes(message_in(actions, SchedDeny)) == [code]
    assert sent(actions, SchedRequest) == ()


def test_a_module_whose_disk_is_full_denies(rig: Rig) -> None:
    rig.handle(StoreChanged(has_space=False))
    assert codes(message_in(rig.hear(CHILD, request()), SchedDeny)) == ["no_space"]
    rig.handle(StoreChanged(has_space=True))
    assert asked(rig.hear(CHILD, request(2)))[0] == SIBLING


def test_a_denial_is_known_by_its_request_and_returns_the_asks_that_are_left(rig: Rig) -> None:
    to, ask = asked(rig.hear(PARENT, request(41, asks_left=9)))
    actions = rig.hear(to, replace(deny(ask.id, asks_left=5), reasons=(Reason(module=FAR, code=DenyCode.NO_CLASS),)))
    reason = Reason(module=ME, code=DenyCode.NO_CLASS, hops=(Reason(module=FAR, code=DenyCode.NO_CLASS),))
    assert actions == (
        Decision(what="sched_deny", task=(b"s" * 16).hex()[:8], text="parent: no_class"),
        SendControl(to=PARENT, message=SchedDeny(request=MessageId(41), reasons=(reason,), asks_left=5)),
    )


def test_a_module_that_was_asked_descending_denies_a_second_descending_request(rig: Rig) -> None:
    rig.hear(PARENT, request())
    assert codes(message_in(rig.hear(SIBLING, request(2)), SchedDeny)) == ["already_asked"]


def test_a_module_that_was_asked_climbing_denies_every_later_request(rig: Rig) -> None:
    rig.hear(CHILD, request())
    assert codes(message_in(rig.hear(SIBLING, request(2)), SchedDeny)) == ["already_asked"]
    assert codes(message_in(rig.hear(CHILD, request(3)), SchedDeny)) == ["already_asked"]


def test_a_module_asked_descending_may_be_asked_once_more_climbing_and_tries_only_siblings_and_parents(
    rig: Rig,
) -> None:
    rig.measure()
    to, ask = asked(rig.hear(PARENT, request(count=9)))
    assert to == CHILD
    again = rig.hear(CHILD, request(2, count=2))
    assert sent(again, SchedAccept) == ()
    assert asked(again)[0] == SIBLING
    rig.hear(CHILD, deny(ask.id))
    assert codes(message_in(rig.hear(CHILD, request(3)), SchedDeny)) == ["already_asked"]


def test_a_search_is_forgotten_when_it_is_over_wherever_it_may_be(rig: Rig) -> None:
    rig.hear(PARENT, request(remaining_ns=2 * SECOND))
    rig.wait(3 * SECOND)
    assert rig.state.hop.seen == {}


def test_a_final_refusal_forwards_nothing(rig: Rig, policy: ScriptedPolicy) -> None:
    rig.measure()
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="no students", text="ask for an account")
    for number, asker in enumerate((CHILD, SIBLING, PARENT), start=1):
        actions = rig.hear(asker, request(number, search=SearchId(bytes([number] * 16))))
        assert sent(actions, SchedRequest) == ()
        (reason,) = message_in(actions, SchedDeny).reasons
        # The rule itself is its owner's.
        assert (reason.code, reason.rule, reason.text) == ("refused_by_policy", "", "ask for an account")


def test_a_soft_refusal_lets_a_childs_request_climb_and_cross_only(module: ModuleFactory) -> None:
    policy = ScriptedPolicy(verdict=Refused(code=DenyCode.LIMIT_REACHED, is_final=False))
    rig = module(policy=policy)
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    for system in (CHILD, OTHER_CHILD, SIBLING, PARENT):
        rig.see(system)
    rig.measure()
    to, ask = asked(rig.hear(CHILD, request()))
    assert to == SIBLING
    to, ask = asked(rig.hear(SIBLING, deny(ask.id)))
    assert to == PARENT
    assert codes(message_in(rig.hear(PARENT, deny(ask.id)), SchedDeny)) == ["limit_reached"]


@pytest.mark.parametrize("asker", [PARENT, SIBLING])
def test_a_soft_refusal_denies_a_request_from_above_or_beside(
    rig: Rig, policy: ScriptedPolicy, asker: SystemId
) -> None:
    policy.verdict = Refused(code=DenyCode.LIMIT_REACHED, is_final=False)
    actions = rig.hear(asker, request())
    assert codes(message_in(actions, SchedDeny)) == ["limit_reached"]
    assert sent(actions, SchedRequest) == ()


@pytest.mark.parametrize("is_final", [True, False])
def test_the_gate_keeps_local_users_from_the_own_machine_and_from_nothing_else(
    rig: Rig,
    policy: ScriptedPolicy,
    is_final: bool,  # noqa: FBT001 - pytest hands it in by name
) -> None:
    rig.measure()
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, is_final=is_final)
    assert asked(rig.submit())[0] == CHILD
    assert rig.state.executor.claims == {}


def test_denials_carry_the_hops_below_in_order(rig: Rig) -> None:
    to, ask = asked(rig.hear(CHILD, request()))
    first = Reason(module=SIBLING, code=DenyCode.NO_CLASS)
    to, ask = asked(rig.hear(to, replace(deny(ask.id), reasons=(first,))))
    second = Reason(module=PARENT, code=DenyCode.NO_CAPACITY, hops=(Reason(module=FAR, code=DenyCode.DRAINING),))
    denial = message_in(rig.hear(to, replace(deny(ask.id), reasons=(second,))), SchedDeny)
    assert denial.reasons[0].hops == (first, second)


def test_a_denial_of_a_request_that_is_not_held_changes_nothing(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request()))
    assert rig.hear(CHILD, deny(MessageId(999))) == ()
    assert rig.hear(SIBLING, deny(ask.id)) == ()
    assert ask.id in rig.state.hop.asks


def test_an_accept_is_stored_and_passed_on_under_the_askers_request(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request(41, count=2)))
    given = accept(ask.id, places=2)
    actions = rig.hear(CHILD, given)
    row = rig.state.hop.passed[CLAIM]
    leg = Leg(system=FAR, address="far:1", ticket=TICKET)
    assert row == PassedClaimRow(
        id=CLAIM,
        toward_origin=PARENT,
        toward_executor=CHILD,
        tdv=tdv(),
        slots=2,
        origin=ORIGIN,
        ticket=row.ticket,
        route=Route(straight=leg, path=leg),
    )
    passed = replace(given, request=MessageId(41), hop_address="me:1", hop_ticket=row.ticket)
    assert actions == (Store(row=row), SendControl(to=PARENT, message=passed))
    assert row.ticket not in (None, TICKET)
    assert not (rig.state.hop.searches)
    assert not (rig.state.hop.asks)


def test_after_a_partial_accept_the_same_neighbor_answers_the_rest(rig: Rig) -> None:
    _, ask = asked(rig.hear(CHILD, request(count=5)))
    rig.hear(SIBLING, accept(ask.id, places=2))
    to, next_ask = asked(rig.hear(SIBLING, deny(ask.id)))
    assert (to, next_ask.count) == (PARENT, 3)


@pytest.mark.parametrize("fault", ["too late", "too large", "from a stranger"])
def test_an_accept_that_nobody_waits_for_is_answered_by_the_end_of_its_claim(rig: Rig, fault: str) -> None:
    _, ask = asked(rig.hear(PARENT, request(count=2)))
    if fault == "too late":
        rig.wait(10 * SECOND)
    sender = SIBLING if fault == "from a stranger" else CHILD
    # Neighbors are silent for longer than their input timeout here, and stay linked.
    actions = rig.hear(sender, accept(ask.id, places=3 if fault == "too large" else 2))
    assert actions == (SendControl(to=sender, message=ClaimEnd(claim=CLAIM)),)
    assert rig.state.hop.passed == {}


@pytest.mark.parametrize("claim", [CLAIM, ClaimId(ME, Epoch(7), 5)])
def test_a_claim_that_is_known_by_that_name_cannot_be_granted_again(rig: Rig, claim: ClaimId) -> None:
    _, ask = asked(rig.hear(CHILD, request(1)))
    rig.hear(SIBLING, accept(ask.id))
    _, ask = asked(rig.hear(PARENT, request(2, search=SearchId(b"o" * 16))))
    report, end = rig.hear(CHILD, accept(ask.id, claim=claim))
    assert (reported((report,)), end) == ("out_of_range", SendControl(to=CHILD, message=ClaimEnd(claim=claim)))
    assert rig.state.hop.passed[CLAIM].toward_executor == SIBLING


@pytest.mark.parametrize("sender", [CHILD, SIBLING])
def test_a_claim_that_is_held_ends_only_for_another_neighbor_that_grants_it_again(rig: Rig, sender: SystemId) -> None:
    _, ask = asked(rig.submit(members=3))
    rig.hear(CHILD, accept(ask.id, places=1))
    _, again = asked(rig.hear(CHILD, deny(ask.id)))
    assert bool(sent(rig.hear(sender, accept(again.id, places=1)), ClaimEnd)) == (sender == SIBLING)
    assert rig.state.origin.claims[CLAIM].row.via == CHILD


def test_the_origin_takes_no_second_claim_by_the_same_name(rig: Rig) -> None:
    _, ask = asked(rig.submit(members=3))
    rig.hear(CHILD, accept(ask.id, places=1))
    assert reported(rig.hear(CHILD, accept(ask.id, places=1))) == "out_of_range"
    assert len(rig.state.origin.claims) == 1


def test_a_request_made_twice_is_reported_and_changes_nothing(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request(1)))
    actions = rig.hear(PARENT, request(1, search=SearchId(b"o" * 16)))
    assert reported(actions) == "out_of_range"
    assert sent(rig.hear(CHILD, accept(ask.id)), SchedAccept)[0][0] == PARENT


def test_a_silent_neighbor_is_given_up_in_time_to_ask_another(rig: Rig) -> None:
    first, ask = asked(rig.hear(CHILD, request()))
    second, _ = asked(rig.wait(ask.remaining_ns))
    assert (first, second) == (SIBLING, PARENT)


def test_a_hop_denies_before_its_own_time_ends(rig: Rig) -> None:
    rig.hear(PARENT, request(remaining_ns=5 * SECOND))
    assert sent(rig.wait(5 * SECOND - 21 * MILLISECOND), SchedDeny) == ()
    denial = message_in(rig.wait(1 * MILLISECOND), SchedDeny)
    assert hops(denial) == [(CHILD, "timed_out")]


def test_a_request_to_a_lost_neighbor_counts_as_denied_and_the_search_continues(rig: Rig) -> None:
    _, ask = asked(rig.hear(CHILD, request()))
    to, ask = asked(rig.handle(LinkDown(neighbor=SIBLING)))
    assert to == PARENT
    assert hops(message_in(rig.hear(PARENT, deny(ask.id)), SchedDeny)) == [(SIBLING, "lost")]


def test_what_a_lost_neighbor_asked_is_dropped(rig: Rig) -> None:
    _, ask = asked(rig.hear(PARENT, request()))
    assert rig.handle(LinkDown(neighbor=PARENT)) == ()
    assert rig.hear(CHILD, accept(ask.id)) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)


@pytest.mark.parametrize(
    ("there", "said", "code"),
    [
        (EMPTY, {}, "no_class"),
        (view(), {"tdv": tdv(mem=1 << 50)}, "no_class"),
        (view(), {"requirement": '$arch eq "vax"'}, "requirement_unmet"),
        (view(free_slots=0), {}, "no_capacity"),
    ],
)
def test_the_denial_says_what_was_lacking(rig: Rig, there: object, said: dict[str, object], code: str) -> None:
    rig.see(CHILD, there)  # type: ignore[arg-type]
    assert codes(message_in(rig.hear(PARENT, request(**said)), SchedDeny)) == [code]


def test_a_requirement_is_judged_on_the_own_machine_exactly(rig: Rig) -> None:
    rig.measure(speed=1001)
    yes = rig.hear(CHILD, request(1, requirement="$speed = 1001"))
    assert message_in(yes, SchedAccept).claim.executor == ME
    no = rig.hear(CHILD, request(2, search=SearchId(b"o" * 16), requirement="$speed = 1002"))
    assert sent(no, SchedAccept) == ()


def test_a_stranger_is_asked_and_answered_nothing(rig: Rig) -> None:
    (report,) = only(rig.hear(STRANGER, request()), Report)
    assert (report.neighbor, report.code) == (STRANGER, "not_a_neighbor")


def test_a_child_that_gives_all_it_may_be_asked_for_is_not_waited_for(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.limit_slots = 2
    ((to, ask),) = sent(rig.hear(PARENT, request(count=5)), SchedRequest)
    assert (to, ask.count) == (CHILD, 2)
    actions = rig.hear(CHILD, accept(ask.id, places=2))
    assert message_in(actions, SchedAccept).places == 2
    assert codes(message_in(actions, SchedDeny)) == ["no_capacity"]


def test_a_child_cannot_give_more_than_it_was_asked_for(rig: Rig, policy: ScriptedPolicy) -> None:
    policy.limit_slots = 2
    ((_, ask),) = sent(rig.hear(PARENT, request(count=5)), SchedRequest)
    assert rig.hear(CHILD, accept(ask.id, places=3)) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)
