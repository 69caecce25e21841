"""A change of the primary parent: a system is counted by one parent or by none, never by two (MESSIAHS 7.3)."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Action, Answer, Decision, Report, SendVector, Store
from messiahs.core.interface.events import AnswerTo, LinkDown, PrimaryParentChanged, VectorReceived
from messiahs.core.interface.membership_messages import Handover, HandoverDone, Leave, SumsSettled
from messiahs.core.interface.membership_rows import HandoverRow
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.rows import Row, key_of
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.recovery import Remains
from messiahs.core.update.counting import counting_of
from messiahs.core.vectors.vectors import EMPTY
from tests.unit.core.rig import (
    CHILD,
    NEIGHBORS,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    STRANGER,
    Rig,
    answered,
    make_module,
    message_in,
    only,
    sent,
    view,
)

NEW = SystemId("new-parent")
MARK = 77


def start(rows: tuple[Row, ...] = ()) -> Rig:
    """Start a module with a second parent."""
    rig = Rig(make_module(neighbors=(*NEIGHBORS, Neighbor(system=NEW, is_parent=True))))
    rig.resume(Remains(rows=rows))
    return rig


@pytest.fixture
def mover() -> Rig:
    """Return a module that is linked with both parents, and knows a machine of a child and one of its own."""
    rig = start()
    rig.greet(PARENT, NEW, CHILD)
    rig.see(PARENT)
    rig.see(NEW)
    rig.see(CHILD)
    rig.measure()
    rig.wait(5 * SECOND)
    return rig


@pytest.fixture
def left(rig: Rig) -> Rig:
    """Return a module with a parent whose children are counted; CHILD is to be handed over."""
    rig.greet(PARENT, CHILD, OTHER_CHILD, SIBLING)
    rig.see(PARENT)
    say(rig, CHILD)
    say(rig, OTHER_CHILD)
    return rig


def change(rig: Rig, parent: SystemId = NEW) -> tuple[Action, ...]:
    return rig.handle(PrimaryParentChanged(answer_to=AnswerTo(1), parent=parent, text="moved"))


def say(
    rig: Rig, child: SystemId, *, counted: bool = True, handovers: int = 0, settling: tuple[int, ...] = ()
) -> tuple[Action, ...]:
    """Let a child send its vector."""
    message = StatusVector(
        kind=VectorKind.FOR_PARENTS,
        vector=view(),
        period_ns=2 * SECOND,
        age_ns=0,
        counted=counted,
        handovers=handovers,
        settling=settling,
    )
    return rig.handle(VectorReceived(sender=child, message=message))


def counted_at(rig: Rig) -> SystemId | None:
    return counting_of(rig.state).parent


def is_counted(rig: Rig, child: SystemId) -> bool:
    return counting_of(rig.state).neighbors[child].is_primary_child


def vectors(actions: tuple[Action, ...]) -> dict[SystemId, StatusVector]:
    """Return the last vector sent to each parent."""
    return {each.to: each.message for each in only(actions, SendVector) if each.message.kind is VectorKind.FOR_PARENTS}


def counted_by(actions: tuple[Action, ...]) -> dict[SystemId, tuple[bool | None, int]]:
    """Return whether each parent is to count the sender, and the number of its handover."""
    return {to: (message.counted, message.handovers) for to, message in vectors(actions).items()}


def rows_of(*actions: tuple[Action, ...]) -> tuple[Row, ...]:
    """Return the rows that are stored after some actions."""
    rows = [each.row for some in actions for each in only(some, Store)]
    return tuple({key_of(row): row for row in rows}.values())


def stored(actions: tuple[Action, ...]) -> HandoverRow:
    (row,) = (row for row in rows_of(actions) if isinstance(row, HandoverRow))
    return row


def test_no_parent_counts_it_until_the_old_one_has_answered_and_then_the_new_one(mover: Rig) -> None:
    assert counted_at(mover) == PARENT
    begun = change(mover)
    assert answered(begun).problem == ""
    assert sent(begun, Handover) == ((PARENT, Handover(number=1)),)
    assert "handover" in [each.what for each in only(begun, Decision)]
    assert not stored(begun).is_done
    assert counted_by((*begun, *mover.wait(SECOND))) == {PARENT: (False, 1), NEW: (False, 1)}
    assert counted_at(mover) is None

    ended = mover.hear(PARENT, HandoverDone(number=1))
    assert stored(ended).is_done
    assert counted_at(mover) == NEW
    after = vectors((*ended, *mover.wait(3 * SECOND)))
    assert {to: message.counted for to, message in after.items()} == {PARENT: False, NEW: True}
    assert [each.system for each in mover.state.neighbors.values() if each.is_primary_parent] == [NEW]


def test_the_siblings_of_the_old_parent_are_left_when_the_new_one_counts(mover: Rig) -> None:
    mover.greet(SIBLING)
    assert sent(change(mover), Leave) == ()
    assert {to for to, _ in sent(mover.hear(PARENT, HandoverDone(number=1)), Leave)} == {SIBLING}
    assert mover.state.membership.is_leaving(SIBLING)


def test_a_later_change_has_the_next_number_and_goes_back(mover: Rig) -> None:
    change(mover)
    mover.hear(PARENT, HandoverDone(number=1))
    back = change(mover, PARENT)
    assert sent(back, Handover) == ((NEW, Handover(number=2)),)
    mover.hear(NEW, HandoverDone(number=2))
    assert counted_at(mover) == PARENT


def test_a_connected_parent_that_does_not_answer_is_waited_for_until_its_input_timeout(mover: Rig) -> None:
    change(mover)
    mover.see(PARENT)
    mover.wait(2 * SECOND)
    assert counted_at(mover) is None
    mover.see(NEW)
    mover.wait(MINUTE)
    assert counted_at(mover) == NEW
    assert mover.hear(PARENT, HandoverDone(number=1)) == (), "it is late"


def test_a_parent_with_a_very_long_update_period_is_not_waited_for_longer_than_minutes(mover: Rig) -> None:
    said = StatusVector(kind=VectorKind.FOR_CHILDREN, vector=EMPTY, period_ns=HOUR, age_ns=0)
    mover.handle(VectorReceived(sender=PARENT, message=said))
    change(mover)
    mover.wait(9 * MINUTE)
    assert counted_at(mover) is None
    mover.wait(2 * MINUTE)
    mover.see(NEW)
    assert counted_at(mover) == NEW


def test_a_parent_that_is_silent_already_is_not_waited_for() -> None:
    rig = start()
    rig.greet(PARENT, NEW)
    rig.see(NEW)
    for _ in range(30):
        rig.wait(2 * SECOND)
        rig.see(NEW)
    assert counted_at(rig) == NEW
    begun = change(rig)
    assert sent(begun, Handover) == ()
    assert stored(begun).is_done
    assert counted_at(rig) == NEW
    rig.see(PARENT)
    assert counted_at(rig) == NEW, "the former primary parent is heard again"


def test_it_continues_after_a_restart_with_the_same_number(mover: Rig) -> None:
    begun = change(mover)
    again = start(rows_of(begun))
    assert counted_at(again) is None
    again.greet(NEW)
    assert counted_at(again) is None
    assert sent(again.greet(PARENT), Handover) == ((PARENT, Handover(number=1)),)
    ended = again.hear(PARENT, HandoverDone(number=1))
    assert counted_at(again) == NEW
    once_more = start(rows_of(begun, ended))
    assert counted_at(once_more) == NEW
    assert sent(once_more.greet(PARENT, NEW), Handover) == ()


def test_after_a_restart_it_waits_no_longer_than_the_input_timeout_for_a_parent_that_does_not_return(
    mover: Rig,
) -> None:
    again = start(rows_of(change(mover)))
    again.greet(NEW)
    again.wait(MINUTE)
    row = queries.handover_of(again.state)
    assert row is not None
    assert row.is_done
    assert counted_at(again) == NEW


def test_a_connection_that_was_lost_gets_the_same_handover_again(mover: Rig) -> None:
    change(mover)
    mover.handle(LinkDown(neighbor=PARENT))
    assert sent(mover.greet(PARENT), Handover) == ((PARENT, Handover(number=1)),)
    mover.hear(PARENT, HandoverDone(number=1))
    mover.handle(LinkDown(neighbor=PARENT))
    assert sent(mover.greet(PARENT), Handover) == ()


@pytest.mark.parametrize(("sender", "number"), [(PARENT, 2), (PARENT, 0), (NEW, 1), (SIBLING, 1), (CHILD, 1)], ids=str)
def test_an_answer_of_another_number_or_system_has_no_effect(mover: Rig, sender: SystemId, number: int) -> None:
    change(mover)
    mover.greet(SIBLING)
    assert only(mover.hear(sender, HandoverDone(number=number)), Store) == ()
    assert counted_at(mover) is None


@pytest.mark.parametrize("parent", [NEW, PARENT])
def test_another_change_is_refused_until_the_first_is_done(mover: Rig, parent: SystemId) -> None:
    change(mover)
    before = queries.handover_of(mover.state)
    refused = change(mover, parent)
    problem = "the primary parent is already being changed to new-parent"
    assert refused == (Answer(answer_to=AnswerTo(1), problem=problem),)
    assert queries.handover_of(mover.state) == before
    mover.hear(PARENT, HandoverDone(number=1))
    assert counted_at(mover) == NEW


def test_the_present_primary_parent_is_no_change_and_only_a_parent_can_become_it(mover: Rig) -> None:
    assert change(mover, PARENT) == (Answer(answer_to=AnswerTo(1)),)
    for system in (CHILD, SIBLING, STRANGER):
        assert answered(change(mover, system)).problem == f"{system} is no parent of me"
    assert queries.handover_of(mover.state) is None


def test_the_old_parent_counts_the_child_no_more_and_marks_its_vectors_until_the_sums_above_lack_it(left: Rig) -> None:
    assert (is_counted(left, CHILD), is_counted(left, OTHER_CHILD)) == (True, True)
    begun = left.hear(CHILD, Handover(number=1))
    assert sent(begun, HandoverDone) == ()
    assert (is_counted(left, CHILD), is_counted(left, OTHER_CHILD)) == (False, True)
    marks = vectors((*begun, *left.wait(3 * SECOND)))[PARENT].settling
    assert len(marks) == 1
    assert sent(left.hear(PARENT, SumsSettled(marks=marks)), HandoverDone) == ((CHILD, HandoverDone(number=1)),)
    assert vectors(left.wait(3 * SECOND))[PARENT].settling == ()
    assert sent(left.hear(PARENT, SumsSettled(marks=marks)), HandoverDone) == ()


def test_a_vector_from_before_the_handover_does_not_count_and_a_later_one_that_says_so_does(left: Rig) -> None:
    left.hear(CHILD, Handover(number=1))
    say(left, CHILD)
    assert not is_counted(left, CHILD), "it was sent before, and overtaken"
    say(left, CHILD, counted=False, handovers=1)
    assert not is_counted(left, CHILD)
    say(left, CHILD, handovers=2)
    assert is_counted(left, CHILD), "it was handed back"


def test_a_repeated_number_is_answered_again_an_earlier_one_is_late_and_a_later_one_is_another(left: Rig) -> None:
    left.hear(CHILD, Handover(number=2))
    mark = left.state.membership.released[CHILD].mark
    assert sent(left.hear(CHILD, Handover(number=2)), HandoverDone) == (), "it is not settled yet"
    assert left.state.membership.released[CHILD].mark == mark
    left.hear(PARENT, SumsSettled(marks=(mark,)))
    assert message_in(left.hear(CHILD, Handover(number=2)), HandoverDone) == HandoverDone(number=2)
    assert left.hear(CHILD, Handover(number=1)) == ()
    assert sent(left.hear(CHILD, Handover(number=3)), HandoverDone) == ()
    assert left.state.membership.released[CHILD].mark != mark
    assert sent(left.hear(PARENT, SumsSettled(marks=(mark,))), HandoverDone) == (), "the mark of the earlier one"


@pytest.mark.parametrize("forger", [SIBLING, OTHER_CHILD, CHILD])
def test_only_the_parent_that_counts_says_that_sums_are_settled(left: Rig, forger: SystemId) -> None:
    left.hear(CHILD, Handover(number=1))
    mark = left.state.membership.released[CHILD].mark
    assert sent(left.hear(forger, SumsSettled(marks=(mark,))), HandoverDone) == ()
    assert not left.state.membership.released[CHILD].is_settled
    assert sent(left.hear(PARENT, SumsSettled(marks=(mark,))), HandoverDone) == ((CHILD, HandoverDone(number=1)),)


def test_a_second_parent_that_does_not_count_says_nothing_of_the_sums(mover: Rig) -> None:
    say(mover, CHILD)
    mover.hear(CHILD, Handover(number=1))
    mark = mover.state.membership.released[CHILD].mark
    assert sent(mover.hear(NEW, SumsSettled(marks=(mark,))), HandoverDone) == ()
    assert sent(mover.hear(PARENT, SumsSettled(marks=(mark,))), HandoverDone) == ((CHILD, HandoverDone(number=1)),)


def test_an_answer_descends_to_the_children_whose_vectors_have_its_marks(left: Rig) -> None:
    say(left, CHILD, settling=(MARK, MARK + 1))
    marks = vectors(left.wait(3 * SECOND))[PARENT].settling
    assert marks == (MARK, MARK + 1)
    passed = sent(left.hear(PARENT, SumsSettled(marks=(MARK, MARK + 5))), SumsSettled)
    assert passed == ((CHILD, SumsSettled(marks=(MARK,))),)


def test_the_topmost_system_answers_at_once() -> None:
    root = Rig(make_module(neighbors=NEIGHBORS[:2]))
    root.resume()
    root.greet(CHILD, OTHER_CHILD)
    say(root, CHILD)
    assert sent(say(root, OTHER_CHILD, settling=(MARK,)), SumsSettled) == ((OTHER_CHILD, SumsSettled(marks=(MARK,))),)
    assert sent(root.hear(CHILD, Handover(number=1)), HandoverDone) == ((CHILD, HandoverDone(number=1)),)
    assert not is_counted(root, CHILD)


@pytest.mark.parametrize(("sender", "number"), [(PARENT, 1), (SIBLING, 1), (CHILD, 0)], ids=str)
def test_only_a_child_hands_itself_over_with_a_number(left: Rig, sender: SystemId, number: int) -> None:
    (report,) = left.hear(sender, Handover(number=number))
    assert isinstance(report, Report)
    assert left.state.membership.released == {}
