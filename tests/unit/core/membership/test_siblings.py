"""Siblings that a primary parent assigns to its children."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Report
from messiahs.core.interface.events import AnswerTo, LinkDown, MemberAdded, MemberRemoved, VectorReceived
from messiahs.core.interface.membership_messages import Handover, Leave, SiblingAssignment, SiblingRequest
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from tests.unit.core.membership.sibling_messages import ask, assign, assigned_to, one
from tests.unit.core.rig import (
    CHILD,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    make_module,
    message_in,
    sent,
    view,
)

ASKED = AnswerTo(1)
THIRD = SystemId("third-child")


def with_children(count: int, *, siblings: int = 16) -> tuple[Rig, tuple[SystemId, ...]]:
    names = tuple(SystemId(f"c{number:02}") for number in range(count))
    made = make_module(neighbors=tuple(Neighbor(system=each, is_child=True, is_primary_child=True) for each in names))
    made.state.identity = replace(made.state.identity, siblings=siblings)
    rig = Rig(made)
    rig.resume()
    rig.greet(*names)
    return rig, names


def test_two_children_that_ask_learn_each_others_names_and_addresses(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    assert assigned_to(rig.hear(CHILD, ask(address="child:1"))) == {}
    actions = rig.hear(OTHER_CHILD, ask(address="other:1"))
    assert sent(actions, SiblingAssignment) == (
        (CHILD, assign(one(OTHER_CHILD, "other:1"))),
        (OTHER_CHILD, assign(one(CHILD, "child:1"))),
    )


def test_links_of_the_file_are_left_to_the_file(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask(OTHER_CHILD))
    assert assigned_to(rig.hear(OTHER_CHILD, ask(CHILD))) == {}


def test_a_newcomer_gets_all_of_a_circle_and_no_circle_exceeds_the_bound() -> None:
    rig, names = with_children(5, siblings=2)
    for name in names:
        rig.hear(name, ask())
    links = {name: set(said.assigned) for name, said in rig.state.membership.siblings_of.items()}
    first, second = set(names[:3]), set(names[3:])
    assert links == {each: circle - {each} for circle in (first, second) for each in circle}


def test_the_bound_of_a_child_holds_too_and_a_lie_of_a_child_makes_no_circle_larger() -> None:
    rig, names = with_children(4, siblings=2)
    rig.hear(names[0], ask(most=1))
    rig.hear(names[1], ask())
    assert assigned_to(rig.hear(names[2], ask())) == {names[1]: (names[2],), names[2]: (names[1],)}
    assert assigned_to(rig.hear(names[3], ask(*names[:3], "nobody"))) == {}


def test_a_child_that_names_a_sibling_twice_is_answered_as_if_it_had_named_it_once() -> None:
    rig, names = with_children(2)
    rig.hear(names[0], ask(assigned=("stranger", "stranger"), most=0))
    assert set(rig.state.membership.siblings_of[names[0]].assigned) == set()


def test_children_that_take_few_siblings_get_no_more_and_the_others_still_get_all() -> None:
    rig, names = with_children(6)
    for name in names[:3]:
        rig.hear(name, ask())
    rig.wait(30 * SECOND)
    rig.hear(names[0], ask(assigned=names[1:3], most=0))
    rig.hear(names[3], ask(most=0))
    rig.hear(names[4], ask(*names[:3], most=1))
    rig.hear(names[5], ask())
    links = {name: set(said.assigned) for name, said in rig.state.membership.siblings_of.items()}
    assert links == {
        names[0]: set(names[1:3]),
        names[1]: {names[0], names[2], names[5]},
        names[2]: {names[0], names[1], names[5]},
        names[3]: set(),
        names[4]: set(),
        names[5]: set(names[1:3]),
    }


def test_a_child_that_asked_while_the_others_were_away_is_linked_with_their_circle(rig: Rig) -> None:
    third = Neighbor(system=THIRD, is_child=True, is_primary_child=True)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=third, address=""))
    rig.greet(THIRD, CHILD, OTHER_CHILD)
    assert assigned_to(rig.hear(THIRD, ask())) == {}
    assert assigned_to(rig.hear(CHILD, ask(OTHER_CHILD))) == {CHILD: (THIRD,), THIRD: (CHILD,)}
    assert assigned_to(rig.hear(OTHER_CHILD, ask(CHILD))) == {OTHER_CHILD: (THIRD,), THIRD: (OTHER_CHILD,)}


def test_two_children_that_nobody_can_dial_are_no_siblings_and_one_of_them_is(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask(address=""))
    assert assigned_to(rig.hear(OTHER_CHILD, ask(address=""))) == {}
    rig.wait(30 * SECOND)
    assert set(assigned_to(rig.hear(OTHER_CHILD, ask()))) == {CHILD, OTHER_CHILD}


@pytest.mark.parametrize("apart", [CHILD, OTHER_CHILD])
def test_a_child_of_another_site_is_assigned_to_nobody(apart: SystemId) -> None:
    rig = Rig(make_module(apart=(apart,)))
    rig.resume()
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    assert assigned_to(rig.hear(OTHER_CHILD, ask())) == {}


def test_a_child_without_a_connection_is_told_when_it_asks_again(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.handle(LinkDown(neighbor=CHILD))
    assert set(assigned_to(rig.hear(OTHER_CHILD, ask()))) == {OTHER_CHILD}
    rig.greet(CHILD)
    assert rig.hear(CHILD, ask()) == ()
    assert assigned_to(rig.wait(30 * SECOND))[CHILD] == (OTHER_CHILD,)


@pytest.mark.parametrize(("handovers", "counted", "stays"), [(0, True, False), (1, False, False), (2, True, True)])
def test_a_child_that_is_counted_here_again_after_a_handover_stays_a_sibling(
    *, handovers: int, counted: bool, stays: bool
) -> None:
    rig, (first, second) = with_children(2)
    rig.hear(first, Handover(number=1))
    said = StatusVector(
        kind=VectorKind.FOR_PARENTS,
        vector=view(),
        period_ns=2 * SECOND,
        age_ns=0,
        counted=counted,
        handovers=handovers,
    )
    rig.handle(VectorReceived(sender=first, message=said))
    actions = rig.hear(second, ask(assigned=(first,)))
    withdrawn = [message.withdrawn for _, message in sent(actions, SiblingAssignment)]
    assert withdrawn == ([] if stays else [(first,)])


@pytest.mark.parametrize(
    "parting", [MemberRemoved(answer_to=ASKED, system=CHILD), Handover(number=1), Leave(text="moves away")]
)
def test_a_child_that_goes_is_withdrawn_from_the_others(rig: Rig, parting: MemberRemoved | Handover | Leave) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask())
    actions = rig.handle(parting) if isinstance(parting, MemberRemoved) else rig.hear(CHILD, parting)
    assert sent(actions, SiblingAssignment) == ((OTHER_CHILD, assign(withdrawn=(CHILD,))),)


def test_a_former_child_is_withdrawn_from_one_that_was_away(rig: Rig) -> None:
    rig.greet(CHILD)
    answer = message_in(rig.hear(CHILD, ask(assigned=("gone", OTHER_CHILD))), SiblingAssignment)
    assert answer.withdrawn == (SystemId("gone"),)


def test_after_a_restart_a_newcomer_joins_the_circle_that_is_there(rig: Rig) -> None:
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=Neighbor(system=THIRD, is_child=True, is_primary_child=True)))
    rig.greet(CHILD, OTHER_CHILD, THIRD)
    rig.hear(CHILD, ask(assigned=(OTHER_CHILD,)))
    assert assigned_to(rig.hear(THIRD, ask())) == {CHILD: (THIRD,), THIRD: (CHILD,)}
    assert set(assigned_to(rig.hear(OTHER_CHILD, ask(assigned=(CHILD,))))[OTHER_CHILD]) == {CHILD, THIRD}


def test_only_a_child_may_ask(rig: Rig) -> None:
    rig.greet(SIBLING)
    (report,) = rig.hear(SIBLING, ask())
    assert isinstance(report, Report)


def test_a_module_asks_its_primary_parent_on_each_connection(rig: Rig) -> None:
    expected = SiblingRequest(address="me:1", siblings=(SIBLING,), most=16)
    assert sent(rig.greet(PARENT), SiblingRequest) == ((PARENT, expected),)
    rig.handle(LinkDown(neighbor=PARENT))
    assert sent(rig.greet(PARENT, CHILD), SiblingRequest) == ((PARENT, expected),)


def test_a_child_that_asks_again_and_again_does_not_make_its_parent_tell_the_others_what_they_know(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask())
    rig.wait(30 * SECOND)
    assert assigned_to(rig.hear(OTHER_CHILD, ask())) == {OTHER_CHILD: (CHILD,)}
    rig.wait(30 * SECOND)
    assert set(assigned_to(rig.hear(OTHER_CHILD, ask(address="moved:1")))) == {CHILD, OTHER_CHILD}


def test_a_child_that_moves_again_and_again_makes_its_parent_tell_the_others_once_in_half_a_minute(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask(address="there:0"))
    for port in range(1, 100):
        assert rig.hear(OTHER_CHILD, ask(address=f"there:{port}")) == ()
    said = [message for to, message in sent(rig.wait(30 * SECOND), SiblingAssignment) if to == CHILD]
    assert said == [assign(one(OTHER_CHILD, "there:99"))]
    assert rig.hear(OTHER_CHILD, ask(address="there:100")) == (), "another half a minute"


def test_a_child_cannot_keep_the_others_busy_with_handovers_and_requests(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    actions: list[Action] = []
    for number in range(1, 100):
        actions += rig.hear(OTHER_CHILD, ask())
        actions += rig.hear(OTHER_CHILD, Handover(number=number))
    actions += rig.wait(60 * SECOND)
    said = [message for to, message in sent(actions, SiblingAssignment) if to == CHILD]
    assert said == [assign(one(OTHER_CHILD)), assign(withdrawn=(OTHER_CHILD,))]


def test_a_child_that_goes_before_it_is_answered_is_assigned_to_nobody(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask(most=0))
    rig.hear(OTHER_CHILD, ask())
    rig.hear(OTHER_CHILD, Leave(is_done=True))
    assert sent(rig.wait(60 * SECOND), SiblingAssignment) == ()
    assert set(rig.state.membership.siblings_of) == {CHILD}


def test_a_refused_sibling_is_withdrawn_from_the_other_end_and_assigned_again_once_it_is_taken(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask())
    rig.wait(30 * SECOND)
    refused = rig.hear(CHILD, ask(refused=(OTHER_CHILD,)))
    assert sent(refused, SiblingAssignment) == ((OTHER_CHILD, assign(withdrawn=(CHILD,))),)
    assert rig.hear(OTHER_CHILD, ask()) == ()
    rig.wait(30 * SECOND)
    assert assigned_to(rig.hear(CHILD, ask())) == {CHILD: (OTHER_CHILD,), OTHER_CHILD: (CHILD,)}


def test_a_parent_that_has_started_again_withdraws_a_refused_sibling_from_an_end_that_asks_later(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask(refused=(OTHER_CHILD,)))
    answer = message_in(rig.hear(OTHER_CHILD, ask(assigned=(CHILD,))), SiblingAssignment)
    assert answer == assign(withdrawn=(CHILD,))
