"""Siblings that a primary parent assigns to its children, and how a child takes them."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Forget, Link, Report, SendVector, Store, Unlink
from messiahs.core.interface.events import (
    AnswerTo,
    LeaveRequested,
    LinkDown,
    LinkRefused,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
    VectorReceived,
)
from messiahs.core.interface.membership_messages import (
    AssignedSibling,
    Handover,
    HandoverDone,
    Leave,
    SiblingAssignment,
    SiblingRequest,
)
from messiahs.core.interface.membership_rows import MemberRow
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import OtherRoots, Trust
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    ME,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    STRANGER,
    Rig,
    make_module,
    message_in,
    only,
    sent,
    view,
)

ASKED = AnswerTo(1)
ROOT, FOREIGN = b"r" * 16, b"f" * 16
THIRD = SystemId("third-child")
SECOND_PARENT = SystemId("second-parent")


def ask(*siblings: str, assigned: tuple[str, ...] = (), address: str = "there:1", most: int = 16) -> SiblingRequest:
    return SiblingRequest(
        address=address, siblings=tuple(map(SystemId, siblings)), assigned=tuple(map(SystemId, assigned)), most=most
    )


def one(system: SystemId, address: str = "there:1", *, roots: tuple[bytes, ...] = ()) -> AssignedSibling:
    return AssignedSibling(system=system, address=address, roots=roots)


def assign(*siblings: AssignedSibling, withdrawn: tuple[SystemId, ...] = ()) -> SiblingAssignment:
    return SiblingAssignment(siblings=siblings, withdrawn=withdrawn)


def assigned_to(actions: tuple[Action, ...]) -> dict[SystemId, tuple[SystemId, ...]]:
    return {to: tuple(each.system for each in message.siblings) for to, message in sent(actions, SiblingAssignment)}


def with_children(count: int, *, siblings: int = 16) -> tuple[Rig, tuple[SystemId, ...]]:
    names = tuple(SystemId(f"c{number:02}") for number in range(count))
    made = make_module(neighbors=tuple(Neighbor(system=each, is_child=True, is_primary_child=True) for each in names))
    made.state.identity = replace(made.state.identity, siblings=siblings)
    rig = Rig(made)
    rig.resume()
    rig.greet(*names)
    return rig, names


def trusting(module: SchedulingModule) -> Rig:
    """Return a rig whose module knows the root of its site, and that of another."""
    other = OtherRoots(roots=(FOREIGN,), names=("far-*",))
    trust = Trust(roots=(ROOT, FOREIGN), vouchers=(ROOT,))
    module.state.identity = replace(module.state.identity, trust=trust, other_sites=(other,))
    rig = Rig(module)
    rig.resume()
    rig.greet(PARENT)
    return rig


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
    rig, names = with_children(4)
    rig.hear(names[0], ask(most=1))
    rig.hear(names[1], ask())
    assert assigned_to(rig.hear(names[2], ask())) == {}
    claimed = assigned_to(rig.hear(names[3], ask(*names[:3], "nobody")))
    assert set(claimed) == {names[3], names[2]}


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
    assert assigned_to(rig.hear(CHILD, ask()))[CHILD] == (OTHER_CHILD,)


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


def test_an_assigned_sibling_is_a_neighbor_with_a_row_and_the_smaller_name_dials(rig: Rig) -> None:
    rig.greet(PARENT)
    greater, smaller = SystemId("zoe"), SystemId("ann")
    actions = rig.hear(PARENT, assign(one(greater), one(smaller)))
    rows = [each.row for each in only(actions, Store) if isinstance(each.row, MemberRow)]
    assert [(row.system, row.address, row.assigned_by) for row in rows] == [
        (greater, "there:1", PARENT),
        (smaller, "", PARENT),
    ]
    assert {(each.neighbor.system, each.address) for each in only(actions, Link)} == {
        (greater, "there:1"),
        (smaller, ""),
    }
    assert rig.state.neighbors[greater] == Neighbor(system=greater, is_sibling=True)
    assert rig.hear(PARENT, assign(one(greater), one(smaller))) == ()
    moved = rig.hear(PARENT, assign(one(greater, "elsewhere:1")))
    assert [each.address for each in only(moved, Link)] == ["elsewhere:1"]
    request = message_in((*rig.handle(LinkDown(neighbor=PARENT)), *rig.greet(PARENT)), SiblingRequest)
    assert request == SiblingRequest(address="me:1", siblings=(SIBLING,), assigned=(greater, smaller), most=16)


def test_an_assigned_sibling_is_there_after_a_restart(rig: Rig) -> None:
    rig.greet(PARENT)
    stored = only(rig.hear(PARENT, assign(one(STRANGER))), Store)
    again = Rig(make_module())
    actions = again.resume(Remains(rows=tuple(each.row for each in stored)))
    assert [each.neighbor.system for each in only(actions, Link)] == [STRANGER]


def test_a_withdrawn_sibling_is_left_on_both_sides_and_may_be_assigned_again(rig: Rig) -> None:
    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER)))
    rig.greet(STRANGER)
    actions = rig.hear(PARENT, assign(withdrawn=(STRANGER,)))
    assert STRANGER in {to for to, _ in sent(actions, Leave)}
    ended = rig.hear(STRANGER, Leave(is_done=True))
    assert {each.key for each in only(ended, Forget)} >= {(RowKind.MEMBER, STRANGER), (RowKind.REMOVED, STRANGER)}
    assert [each.neighbor for each in only(ended, Unlink)] == [STRANGER]
    assert [to for to, _ in sent(ended, SiblingRequest)] == [PARENT]
    assert only(rig.hear(PARENT, assign(one(STRANGER))), Link)


def test_a_sibling_that_leaves_by_itself_may_be_assigned_again_after_minutes_and_one_removed_by_hand_may_not(
    rig: Rig,
) -> None:
    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER)))
    rig.greet(STRANGER)
    left = rig.hear(STRANGER, Leave(is_done=True))
    assert [each.neighbor for each in only(left, Unlink)] == [STRANGER]
    assert sent(left, SiblingRequest) == (), "the parent would assign it at once, and it could leave again"
    assert rig.hear(PARENT, assign(one(STRANGER))) == ()
    assert [to for to, _ in sent(rig.wait(10 * MINUTE), SiblingRequest)] == [PARENT]
    assert only(rig.hear(PARENT, assign(one(STRANGER))), Link)
    rig.greet(STRANGER)
    rig.handle(MemberRemoved(answer_to=ASKED, system=STRANGER))
    rig.hear(STRANGER, Leave(is_done=True))
    assert rig.hear(PARENT, assign(one(STRANGER))) == ()


def test_a_sibling_that_leaves_and_is_withdrawn_may_be_assigned_again_at_once(rig: Rig) -> None:
    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER)))
    rig.greet(STRANGER)
    rig.hear(STRANGER, Leave(is_done=True))
    rig.hear(PARENT, assign(withdrawn=(STRANGER,)))
    assert only(rig.hear(PARENT, assign(one(STRANGER))), Link)


def test_siblings_that_leave_because_of_a_handover_may_be_assigned_by_the_new_parent(rig: Rig) -> None:
    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER)))
    rig.greet(STRANGER)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=Neighbor(system=SECOND_PARENT, is_parent=True)))
    rig.greet(SECOND_PARENT)
    rig.handle(PrimaryParentChanged(answer_to=ASKED, parent=SECOND_PARENT))
    rig.hear(STRANGER, Leave(is_done=True))
    rig.hear(PARENT, HandoverDone(number=1))
    assert only(rig.hear(SECOND_PARENT, assign(one(STRANGER))), Link)


def test_who_leaves_its_primary_parent_leaves_the_assigned_siblings_and_keeps_no_row_of_them(rig: Rig) -> None:
    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER)))
    rig.greet(STRANGER)
    actions = rig.handle(LeaveRequested(answer_to=ASKED, parent=PARENT))
    assert STRANGER in {to for to, _ in sent(actions, Leave)}
    rig.hear(STRANGER, Leave(is_done=True))
    assert STRANGER not in queries.removed_from(rig.state)
    assert STRANGER not in queries.members_of(rig.state)


@pytest.mark.parametrize("sender", [CHILD, SIBLING])
def test_only_a_parent_assigns(rig: Rig, sender: SystemId) -> None:
    rig.greet(sender)
    (report,) = rig.hear(sender, assign(one(STRANGER)))
    assert isinstance(report, Report)


def test_a_parent_that_is_not_the_primary_one_assigns_nothing(rig: Rig) -> None:
    second = Neighbor(system=SECOND_PARENT, is_parent=True)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=second))
    rig.greet(SECOND_PARENT)
    assert rig.hear(SECOND_PARENT, assign(one(STRANGER))) == ()


@pytest.mark.parametrize("named", [CHILD, OTHER_CHILD, PARENT, SIBLING])
def test_no_neighbor_of_the_file_is_changed(rig: Rig, named: SystemId) -> None:
    rig.greet(PARENT)
    before = dict(rig.state.neighbors)
    assert rig.hear(PARENT, assign(one(named, "evil:1"), withdrawn=(named,))) == ()
    assert rig.state.neighbors == before


def test_no_more_siblings_than_the_setting_are_taken(rig: Rig) -> None:
    rig.greet(PARENT)
    names = [SystemId(f"s{number:02}") for number in range(20)]
    actions = rig.hear(PARENT, assign(*map(one, names)))
    assert len(only(actions, Link)) == 15, "one is in the file"
    assert len(only(actions, Report)) == 5


@pytest.mark.parametrize(
    "sibling",
    [one(ME), one(SystemId("far-away")), one(STRANGER, roots=(FOREIGN,)), one(STRANGER, roots=(b"x" * 16,))],
    ids=["itself", "a name of another site", "roots of another site", "unknown roots"],
)
def test_a_hostile_parent_cannot_make_it_trust_foreign_names(sibling: AssignedSibling) -> None:
    rig = trusting(make_module())
    (report,) = rig.hear(PARENT, assign(sibling))
    assert isinstance(report, Report)
    assert only(rig.hear(PARENT, assign(one(STRANGER, roots=(ROOT,)))), Link)


@pytest.mark.parametrize("name", [".", "..", "a..b", "tls", "cs.json", "z" * 255])
def test_a_hostile_parent_cannot_assign_a_name_that_no_system_may_have(rig: Rig, name: str) -> None:
    rig.greet(PARENT)
    (report,) = rig.hear(PARENT, assign(one(SystemId(name))))
    assert isinstance(report, Report)
    assert name not in rig.state.neighbors


def test_a_hostile_parent_cannot_read_in_vectors_what_answers_at_an_address_that_it_assigns(rig: Rig) -> None:
    def told() -> set[tuple[MissingLink, ...]]:
        return {each.message.missing for each in only(rig.wait(10 * SECOND), SendVector) if each.to == PARENT}

    rig.greet(PARENT)
    rig.hear(PARENT, assign(one(STRANGER, "inside:22")))
    rig.wait(10 * SECOND)
    before = told()
    assert before == {(MissingLink(module=ME, neighbor=STRANGER, text=""),)}
    rig.handle(LinkRefused(neighbor=STRANGER, text="inside:22: Connection refused"))
    assert told() == before
    assert queries.why_unlinked(rig.state)[STRANGER] == "inside:22: Connection refused"


def test_a_child_that_asks_again_and_again_does_not_make_its_parent_tell_the_others_what_they_know(rig: Rig) -> None:
    rig.greet(CHILD, OTHER_CHILD)
    rig.hear(CHILD, ask())
    rig.hear(OTHER_CHILD, ask())
    assert assigned_to(rig.hear(OTHER_CHILD, ask())) == {OTHER_CHILD: (CHILD,)}
    assert set(assigned_to(rig.hear(OTHER_CHILD, ask(address="moved:1")))) == {CHILD, OTHER_CHILD}
