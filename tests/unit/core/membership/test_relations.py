"""Neighbors that come at run time or change: rows win over the topology file, and a changed file is applied."""

from dataclasses import replace

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Answer, Forget, Link, SendVector, Store, Unlink
from messiahs.core.interface.events import (
    AnswerTo,
    LinkDown,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
    SettingsApplied,
)
from messiahs.core.interface.membership_messages import AssignedSibling, HandoverDone, Leave, SiblingAssignment
from messiahs.core.interface.membership_rows import HandoverRow, MemberRow, RemovalCause, RemovedRow
from messiahs.core.interface.messages import SchedAccept, SchedRequest, VectorKind
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.recovery import Remains
from tests.unit.core.rig import (
    CHILD,
    ME,
    NEIGHBORS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    make_module,
    message_in,
    only,
    request,
    sent,
)

ASKED = AnswerTo(9)
NEW = SystemId("new")
NEW_CHILD = Neighbor(system=NEW, is_child=True, is_primary_child=True)
FILE = tuple((each, f"{each.system}:1") for each in NEIGHBORS)


def add(rig: Rig, neighbor: Neighbor, *, address: str = "") -> tuple[Action, ...]:
    """Let a neighbor join."""
    return rig.handle(MemberAdded(answer_to=ASKED, neighbor=neighbor, address=address, text="by token"))


def apply(rig: Rig, *neighbors: tuple[Neighbor, str]) -> tuple[Action, ...]:
    """Let a changed topology file be applied."""
    return rig.handle(SettingsApplied(answer_to=ASKED, neighbors=neighbors))


def test_a_child_that_joins_is_stored_linked_and_counted_with_its_first_vector(rig: Rig) -> None:
    actions = add(rig, NEW_CHILD, address="there:1")
    row = MemberRow(neighbor=NEW_CHILD, since=rig.now, address="there:1", text="by token")
    assert Store(row=row) in actions
    assert Link(neighbor=NEW_CHILD, address="there:1") in actions
    assert actions[-1] == Answer(answer_to=ASKED)
    rig.greet(NEW)
    rig.see(NEW)
    rig.wait(SECOND)
    assert queries.own_sums(rig.state).up.machines == 2
    assert rig.state.updates.up.machines == 2
    assert queries.members_of(rig.state) == {NEW: row}


def test_it_is_a_neighbor_again_after_a_restart(rig: Rig) -> None:
    stored = only(add(rig, NEW_CHILD, address="there:1"), Store)
    (row,) = [each.row for each in stored if isinstance(each.row, MemberRow)]
    again = Rig(make_module())
    assert Link(neighbor=NEW_CHILD, address="there:1") in again.resume(Remains(rows=(row,)))
    again.greet(NEW)
    again.measure()
    assert message_in(again.hear(NEW, request()), SchedAccept).places == 1


def test_a_claim_that_passes_to_it_survives_a_restart(rig: Rig) -> None:
    rows = [each.row for each in only(add(rig, NEW_CHILD), Store)]
    rig.greet(NEW)
    rig.see(NEW)
    rig.see(CHILD)
    ((asked, _),) = sent(rig.hear(PARENT, request()), SchedRequest)
    assert asked in (CHILD, NEW)
    again = Rig(make_module())
    again.resume(Remains(rows=tuple(rows)))
    assert NEW in again.state.neighbors


def test_a_second_parent_is_viewed_and_not_the_primary_one(rig: Rig) -> None:
    add(rig, Neighbor(system=NEW, is_parent=True, is_primary_parent=True))
    assert not rig.state.neighbors[NEW].is_primary_parent
    sent_to_new = [each.message for each in only(rig.greet(NEW), SendVector) if each.to == NEW]
    assert [(each.kind, each.counted) for each in sent_to_new] == [(VectorKind.FOR_PARENTS, False)]


def test_a_root_that_gains_a_parent_is_counted_there() -> None:
    root = Rig(make_module(neighbors=()))
    root.resume()
    root.measure()
    add(root, Neighbor(system=PARENT, is_parent=True, is_primary_parent=True), address="parent:1")
    vectors = [each.message for each in only(root.greet(PARENT), SendVector)]
    assert [(each.kind, each.counted, each.vector.machines) for each in vectors] == [(VectorKind.FOR_PARENTS, True, 1)]


def test_a_root_leaves_its_siblings_when_it_gains_a_parent() -> None:
    sibling = Neighbor(system=SIBLING, is_sibling=True)
    root = Rig(make_module(neighbors=(sibling, NEW_CHILD)))
    root.resume()
    root.greet(SIBLING)
    parent = Neighbor(system=PARENT, is_parent=True, is_primary_parent=True)
    assert {to for to, _ in sent(add(root, parent), Leave)} == {SIBLING}
    assert queries.own_sums(root.state).sibling.machines == 0
    # A repetition, and a further parent, change nothing.
    again = add(root, parent), add(root, Neighbor(system=CHILD, is_parent=True))
    assert not [each for actions in again for each in sent(actions, Leave)]


def test_siblings_of_the_file_stay_when_its_primary_parent_returns_after_them(rig: Rig) -> None:
    of_file = {each.system: each for each in NEIGHBORS}
    rig.handle(MemberRemoved(answer_to=ASKED, system=PARENT, is_forced=True))
    rig.wait(30 * SECOND)
    assert not queries.neighbors_of(rig.state).keys() & {PARENT, SIBLING}
    add(rig, of_file[SIBLING])
    rig.greet(SIBLING)
    assert sent(add(rig, of_file[PARENT]), Leave) == ()
    assert not rig.state.membership.is_leaving(SIBLING)


def test_a_neighbor_gets_the_vectors_of_its_new_relation_and_its_old_ones_do_not_count(rig: Rig) -> None:
    assert queries.own_sums(rig.state).up.machines == 1
    actions = add(rig, Neighbor(system=CHILD, is_parent=True))
    assert [each.message.kind for each in only(actions, SendVector) if each.to == CHILD] == [VectorKind.FOR_PARENTS]
    assert queries.own_sums(rig.state).up.machines == 0
    rig.wait(SECOND)
    assert rig.state.updates.up.machines == 0


def test_the_own_name_and_a_link_that_is_being_ended_are_refused(rig: Rig) -> None:
    (own,) = add(rig, replace(NEW_CHILD, system=ME))
    assert own == Answer(answer_to=ASKED, problem="me is the name of this module itself")
    rig.handle(MemberRemoved(answer_to=ASKED, system=CHILD))
    (leaving,) = add(rig, NEIGHBORS[0])
    assert leaving == Answer(answer_to=ASKED, problem="the link with child is being ended; add it when it has ended")


def test_a_sibling_that_this_module_dials_dials_when_it_becomes_a_child(rig: Rig) -> None:
    sibling = Neighbor(system=NEW, is_sibling=True)
    add(rig, sibling, address="there:1")
    child = replace(sibling, is_child=True)
    assert Link(neighbor=child, address="") in add(rig, child)
    assert queries.members_of(rig.state)[NEW].address == ""


def test_a_removed_system_may_join_again(rig: Rig) -> None:
    rig.handle(MemberRemoved(answer_to=ASKED, system=CHILD))
    rig.hear(CHILD, Leave(is_done=True))
    assert Forget(key=(RowKind.REMOVED, CHILD)) in add(rig, NEIGHBORS[0])
    rig.greet(CHILD)
    rig.see(CHILD)
    assert queries.own_sums(rig.state).up.machines == 1


def test_a_file_that_says_the_same_changes_no_neighbor(rig: Rig) -> None:
    apply(rig, *FILE)
    before = dict(rig.state.neighbors)
    assert apply(rig, *FILE) == (Answer(answer_to=ASKED),)
    assert rig.state.neighbors == before


def test_neighbors_of_a_changed_file_come_change_and_go(rig: Rig) -> None:
    apply(rig, *FILE)
    kept = [(each, address) for each, address in FILE if each.system not in (SIBLING, OTHER_CHILD)]
    moved = replace(NEIGHBORS[1], is_primary_child=False)
    actions = apply(rig, *kept, (moved, "elsewhere:1"), (NEW_CHILD, ""))
    assert set(only(actions, Link)) == {
        Link(neighbor=moved, address="elsewhere:1"),
        Link(neighbor=NEW_CHILD, address=""),
    }
    assert {to for to, _ in sent(actions, Leave)} == {SIBLING}
    assert rig.state.membership.members.keys() == {SIBLING}
    ended = rig.hear(SIBLING, Leave(is_done=True))
    assert {each.key[0] for each in only(ended, Forget)} >= {RowKind.MEMBER, RowKind.REMOVED}
    assert [each.neighbor for each in only(ended, Unlink)] == [SIBLING]
    assert set(rig.state.neighbors) == {CHILD, OTHER_CHILD, PARENT, NEW}
    assert queries.removed_from(rig.state) == {}


def test_rows_win_over_a_changed_file(rig: Rig) -> None:
    apply(rig, *FILE)
    add(rig, NEW_CHILD, address="there:1")
    rig.handle(MemberRemoved(answer_to=ASKED, system=CHILD))
    rig.hear(CHILD, Leave(is_done=True))
    assert only(apply(rig, *FILE), Link) == ()
    assert NEW in rig.state.neighbors
    assert CHILD not in rig.state.neighbors
    # The file no longer names it, and later does again: that is a new decision.
    apply(rig, *FILE[1:])
    again = apply(rig, *FILE)
    assert Forget(key=(RowKind.REMOVED, CHILD)) in again
    assert Link(neighbor=NEIGHBORS[0], address="child:1") in again


def test_a_sibling_that_people_have_removed_and_the_file_has_dropped_is_not_assigned(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(PARENT)
    rig.handle(MemberRemoved(answer_to=ASKED, system=SIBLING))
    rig.hear(SIBLING, Leave(is_done=True))
    apply(rig, *(each for each in FILE if each[0].system != SIBLING))
    named = AssignedSibling(system=SIBLING, address="sibling:1", roots=())
    assert only(rig.hear(PARENT, SiblingAssignment(siblings=(named,))), Link) == ()
    assert SIBLING not in rig.state.neighbors


def test_of_systems_that_the_file_does_not_name_the_latest_removals_are_remembered(rig: Rig) -> None:
    with rig.checked_at_the_end():
        for number in range(1_030):
            system = SystemId(f"guest-{number}")
            add(rig, replace(NEW_CHILD, system=system))
            rig.handle(MemberRemoved(answer_to=ASKED, system=system))
            rig.wait(SECOND)
        rig.wait(70 * SECOND)
    removed = queries.removed_from(rig.state)
    assert len(removed) == 1_024
    assert isinstance(removed[SystemId("guest-1029")], RemovedRow)
    assert SystemId("guest-0") not in removed


def test_a_row_that_says_what_the_file_says_now_is_forgotten_and_the_file_may_change_it_again(rig: Rig) -> None:
    apply(rig, *FILE)
    add(rig, NEW_CHILD, address="there:1")
    assert Forget(key=(RowKind.MEMBER, NEW)) in apply(rig, *FILE, (NEW_CHILD, "there:1"))
    assert queries.members_of(rig.state) == {}
    assert NEW in queries.neighbors_of(rig.state)
    apply(rig, *FILE)
    assert rig.state.membership.is_leaving(NEW)


def test_a_neighbor_that_was_added_again_while_its_link_ended_is_there_after_a_repetition(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(CHILD)
    rig.measure()
    message_in(rig.hear(CHILD, request()), SchedAccept)
    apply(rig, *(each for each in FILE if each[0].system != CHILD))
    assert rig.state.membership.is_leaving(CHILD)
    apply(rig, *FILE)
    assert rig.state.membership.is_leaving(CHILD), "its claim has not ended"
    rig.hear(CHILD, Leave(is_done=True))
    assert CHILD not in queries.neighbors_of(rig.state)
    actions = apply(rig, *FILE)
    assert CHILD in queries.neighbors_of(rig.state)
    assert [each.neighbor.system for each in only(actions, Link)] == [CHILD]


def test_the_file_names_a_neighbor_again_that_was_the_first_to_end_the_link(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(CHILD)
    rig.measure()
    message_in(rig.hear(CHILD, request()), SchedAccept)
    rig.hear(CHILD, Leave(text="sold"))
    (row,) = [each.row for each in only(apply(rig, *FILE[1:]), Store) if isinstance(each.row, RemovedRow)]
    assert (row.system, row.cause, row.is_ended) == (CHILD, RemovalCause.FILE, False)
    apply(rig, *FILE)
    rig.hear(CHILD, Leave(is_done=True))
    assert queries.removed_from(rig.state) == {}
    assert [each.neighbor.system for each in only(apply(rig, *FILE), Link)] == [CHILD]


def test_relations_that_a_handover_by_the_file_has_left_follow_the_file_there_and_back(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(PARENT)
    others = tuple(each for each in FILE if each[0].system not in (PARENT, SIBLING))
    new = Neighbor(system=NEW, is_parent=True, is_primary_parent=True)
    apply(rig, *FILE, (replace(new, is_primary_parent=False), "new:1"))
    rig.handle(PrimaryParentChanged(answer_to=ASKED, parent=NEW, is_by_file=True))
    rig.hear(PARENT, HandoverDone(number=1))
    # The parent of before is a sibling by the new one.
    former = Neighbor(system=PARENT, is_sibling=True)
    apply(rig, *others, (new, "new:1"), (former, ""))
    assert (rig.state.neighbors[NEW], rig.state.neighbors[PARENT]) == (new, former)
    assert queries.members_of(rig.state).keys() <= {SIBLING}

    (primary,) = (each for each, _ in FILE if each.system == PARENT)
    both = replace(primary, is_primary_parent=False, is_sibling=True)
    actions = apply(rig, *others, (new, "new:1"), (both, "parent:1"))
    assert Link(neighbor=both, address="parent:1") in actions
    rig.handle(PrimaryParentChanged(answer_to=ASKED, parent=PARENT, is_by_file=True))
    rig.handle(LinkDown(neighbor=NEW))
    rig.wait(60 * SECOND)
    assert rig.state.neighbors[PARENT] == primary
    apply(rig, *others, (primary, "parent:1"))
    assert rig.state.membership.is_leaving(NEW), "the file does not list it any more"
    assert PARENT not in queries.members_of(rig.state)


def test_the_primary_parent_that_people_have_chosen_stays_when_the_file_is_applied(rig: Rig) -> None:
    new = Neighbor(system=NEW, is_parent=True)
    apply(rig, *FILE, (new, "new:1"))
    rig.handle(PrimaryParentChanged(answer_to=ASKED, parent=NEW))
    rig.wait(60 * SECOND)
    apply(rig, *FILE, (new, "new:1"))
    assert rig.state.neighbors[NEW].is_primary_parent
    assert SIBLING not in rig.state.neighbors, "the sums of the new parent have it, too"


def test_an_assigned_sibling_becomes_at_once_what_the_file_says(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(PARENT)
    rig.hear(PARENT, SiblingAssignment(siblings=(AssignedSibling(system=NEW, address="there:1"),)))
    assert rig.state.membership.is_assigned(NEW)
    actions = apply(rig, *FILE, (NEW_CHILD, ""))
    assert Forget(key=(RowKind.MEMBER, NEW)) in actions
    assert Link(neighbor=NEW_CHILD, address="") in actions
    assert rig.state.neighbors[NEW] == NEW_CHILD


def after_restart(*rows: MemberRow | RemovedRow | HandoverRow) -> tuple[Rig, tuple[Action, ...]]:
    """Return a module whose topology file is that of before, and what it does when it starts with some rows."""
    again = Rig(make_module())
    return again, again.resume(Remains(rows=rows))


def test_after_a_restart_the_file_wins_over_the_rows_of_an_earlier_file_and_of_assigned_siblings(rig: Rig) -> None:
    (primary,) = (each for each in NEIGHBORS if each.system == PARENT)
    former = replace(primary, is_primary_parent=False, is_sibling=True)
    by_file = MemberRow(neighbor=former, since=rig.now, address="parent:1", is_by_file=True)
    as_sibling = Neighbor(system=CHILD, is_sibling=True)
    assigned = MemberRow(neighbor=as_sibling, since=rig.now, address="child:1", assigned_by=PARENT)
    again, actions = after_restart(by_file, assigned)
    assert again.state.neighbors == rig.state.neighbors
    assert set(only(actions, Forget)) == {Forget(key=(RowKind.MEMBER, each)) for each in (PARENT, CHILD)}
    assert only(actions, Link) == ()


def test_after_a_restart_the_rows_of_people_win_over_the_file(rig: Rig) -> None:
    row = MemberRow(neighbor=Neighbor(system=CHILD, is_sibling=True), since=rig.now, address="there:1")
    again, actions = after_restart(row)
    assert again.state.neighbors[CHILD] == row.neighbor
    assert Link(neighbor=row.neighbor, address="there:1") in actions


def test_a_neighbor_that_only_an_earlier_file_has_named_is_left_after_a_restart(rig: Rig) -> None:
    row = MemberRow(neighbor=Neighbor(system=NEW, is_parent=True), since=rig.now, address="there:1", is_by_file=True)
    again, actions = after_restart(row)
    assert again.state.membership.is_leaving(NEW)
    assert Link(neighbor=row.neighbor, address="there:1") in actions
    again.greet(NEW)
    again.hear(NEW, Leave(is_done=True))
    assert (queries.members_of(again.state), queries.removed_from(again.state)) == ({}, {})


def test_a_parent_of_an_earlier_file_is_left_when_its_handover_ends_after_a_restart(rig: Rig) -> None:
    row = MemberRow(neighbor=Neighbor(system=NEW, is_parent=True), since=rig.now, address="there:1", is_by_file=True)
    handover = HandoverRow(number=1, old=NEW, new=PARENT, since=rig.now, is_by_file=True)
    again, _ = after_restart(row, handover)
    assert not again.state.membership.is_leaving(NEW)
    again.greet(NEW)
    again.hear(NEW, HandoverDone(number=1))
    apply(again, *FILE)
    assert again.state.membership.is_leaving(NEW)


def test_a_neighbor_that_ended_the_link_by_itself_is_added_again_by_the_file_and_one_removed_by_people_is_not(
    rig: Rig,
) -> None:
    apply(rig, *FILE)
    rig.greet(OTHER_CHILD)
    rig.hear(OTHER_CHILD, Leave(text="sold", is_done=True))
    rig.handle(MemberRemoved(answer_to=ASKED, system=CHILD))
    rig.hear(CHILD, Leave(is_done=True))
    assert not queries.neighbors_of(rig.state).keys() & {CHILD, OTHER_CHILD}
    actions = apply(rig, *FILE)
    assert Forget(key=(RowKind.REMOVED, OTHER_CHILD)) in actions
    assert [each.neighbor.system for each in only(actions, Link)] == [OTHER_CHILD]
    assert queries.removed_from(rig.state).keys() == {CHILD}


def test_siblings_that_are_left_with_the_primary_parent_return_by_the_file_unless_people_have_left_it(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.greet(SIBLING)
    said = dict(sent(rig.hear(PARENT, Leave(text="moved", is_done=True)), Leave))
    assert said[SIBLING].is_sibling
    rig.hear(SIBLING, Leave(is_done=True))
    assert {each.neighbor.system for each in only(apply(rig, *FILE), Link)} == {PARENT, SIBLING}
    rig.greet(SIBLING)
    said = dict(sent(rig.handle(MemberRemoved(answer_to=ASKED, system=PARENT, is_forced=True)), Leave))
    assert not said[SIBLING].is_sibling
    rig.hear(SIBLING, Leave(is_done=True))
    assert only(apply(rig, *FILE), Link) == ()


def test_a_child_that_leaves_its_former_sibling_stays_a_child_by_the_newer_file(rig: Rig) -> None:
    child = Neighbor(system=SIBLING, is_child=True, is_primary_child=True)
    apply(rig, *(each for each in FILE if each[0].system != SIBLING), (child, ""))
    assert rig.hear(SIBLING, Leave(text="moved", is_sibling=True)) == ()
    assert (SIBLING, Leave(is_done=True)) in sent(rig.hear(SIBLING, Leave(is_done=True, is_sibling=True)), Leave)
    assert not rig.state.membership.is_leaving(SIBLING)
    assert rig.state.neighbors[SIBLING] == child
    rig.hear(SIBLING, Leave(text="moved"))
    assert rig.state.membership.is_leaving(SIBLING), "it leaves its parent"
