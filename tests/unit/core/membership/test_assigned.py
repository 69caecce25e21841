"""How a child takes the siblings that its primary parent assigns."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Forget, Link, Report, SendVector, Store, Unlink
from messiahs.core.interface.events import (
    AnswerTo,
    LeaveRequested,
    LinkDown,
    LinkRefused,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
)
from messiahs.core.interface.membership_messages import AssignedSibling, HandoverDone, Leave, SiblingRequest
from messiahs.core.interface.membership_rows import MemberRow
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.missing_link import MissingLink
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import OtherRoots, Trust
from messiahs.core.module import SchedulingModule
from messiahs.core.recovery import Remains
from tests.unit.core.membership.sibling_messages import assign, one
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
)

ASKED = AnswerTo(1)
ROOT, FOREIGN = b"r" * 16, b"f" * 16
SECOND_PARENT = SystemId("second-parent")


def trusting(module: SchedulingModule) -> Rig:
    """Return a rig whose module knows the root of its site, and that of another."""
    other = OtherRoots(roots=(FOREIGN,), names=("far-*",))
    trust = Trust(roots=(ROOT, FOREIGN), vouchers=(ROOT,))
    module.state.identity = replace(module.state.identity, trust=trust, other_sites=(other,))
    rig = Rig(module)
    rig.resume()
    rig.greet(PARENT)
    return rig


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
    refusal = message_in(rig.hear(PARENT, assign(one(STRANGER))), SiblingRequest)
    assert refusal.refused == (STRANGER,)
    assert rig.hear(PARENT, assign(one(STRANGER))) == ()
    assert message_in(rig.wait(10 * MINUTE), SiblingRequest).refused == ()
    assert only(rig.hear(PARENT, assign(one(STRANGER))), Link)
    rig.greet(STRANGER)
    rig.handle(MemberRemoved(answer_to=ASKED, system=STRANGER))
    ended = rig.hear(STRANGER, Leave(is_done=True))
    assert message_in(ended, SiblingRequest).refused == (STRANGER,), "it would dial in vain"
    assert rig.hear(PARENT, assign(one(STRANGER))) == ()


def test_a_parent_learns_once_which_siblings_are_beyond_the_bound_until_there_is_room() -> None:
    module = make_module()
    module.state.identity = replace(module.state.identity, siblings=2)
    rig = Rig(module)
    rig.resume()
    rig.greet(PARENT)
    first, second = SystemId("first"), SystemId("second")
    request = message_in(rig.hear(PARENT, assign(one(first), one(second))), SiblingRequest)
    assert (request.assigned, request.refused) == ((first,), (second,))
    again = rig.hear(PARENT, assign(one(second)))
    assert sent(again, SiblingRequest) == (), "a parent of an earlier release repeats it for each request"
    rig.handle(LinkDown(neighbor=PARENT))
    assert message_in(rig.greet(PARENT), SiblingRequest).refused == (second,)
    rig.greet(first)
    rig.hear(PARENT, assign(withdrawn=(first,)))
    assert message_in(rig.hear(first, Leave(is_done=True)), SiblingRequest).refused == ()
    assert only(rig.hear(PARENT, assign(one(second))), Link)


def test_a_new_primary_parent_learns_nothing_of_what_the_former_one_has_assigned(rig: Rig) -> None:
    rig.greet(PARENT)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=Neighbor(system=SECOND_PARENT, is_parent=True)))
    rig.greet(SECOND_PARENT)
    rig.hear(PARENT, assign(one(ME)))
    rig.handle(PrimaryParentChanged(answer_to=ASKED, parent=SECOND_PARENT))
    request = message_in(rig.hear(PARENT, HandoverDone(number=1)), SiblingRequest)
    assert request.refused == ()


def test_a_hostile_parent_cannot_fill_the_memory_with_what_is_refused(rig: Rig) -> None:
    rig.greet(PARENT)
    for number in range(300):
        rig.hear(PARENT, assign(one(SystemId(f"tls.{number}..x"))))
    rig.wait(30 * SECOND)
    assert len(rig.state.membership.refused) == 256


def test_a_hostile_parent_cannot_make_it_write_and_dial_without_end_and_its_last_word_counts(rig: Rig) -> None:
    rig.greet(PARENT)
    other, last = SystemId("yet-another"), SystemId("zoe")
    linked = list[Link]()
    for number in range(1_000):
        linked += only(rig.hear(PARENT, assign(one(last, f"there:{number}"), one(other))), Link)
    linked += only(rig.hear(PARENT, assign(one(STRANGER), withdrawn=(other,))), Link)
    assert len(linked) == 33
    later = rig.wait(30 * SECOND)
    assert {each.neighbor.system: each.address for each in only(later, Link)} == {
        last: "there:999",
        STRANGER: "there:1",
    }
    assert rig.state.membership.is_leaving(other) or other not in rig.state.neighbors
    rig.wait(30 * SECOND)
    assert only(rig.hear(PARENT, assign(one(last, "there:0"))), Link)


def test_what_was_assigned_too_soon_has_no_effect_once_the_parent_is_left(rig: Rig) -> None:
    rig.greet(PARENT)
    for number in range(40):
        rig.hear(PARENT, assign(one(STRANGER, f"there:{number}")))
    rig.handle(LeaveRequested(answer_to=ASKED, parent=PARENT))
    rig.hear(PARENT, Leave(is_done=True))
    assert PARENT not in rig.state.neighbors
    later = rig.wait(30 * SECOND)
    assert only(later, Link) == ()
    assert only(later, Report) == ()


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
    assert only(rig.hear(PARENT, assign(sibling)), Report)
    assert only(rig.hear(PARENT, assign(one(STRANGER, roots=(ROOT,)))), Link)


@pytest.mark.parametrize("name", [".", "..", "a..b", "tls", "cs.json", "z" * 255])
def test_a_hostile_parent_cannot_assign_a_name_that_no_system_may_have(rig: Rig, name: str) -> None:
    rig.greet(PARENT)
    assert only(rig.hear(PARENT, assign(one(SystemId(name)))), Report)
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
