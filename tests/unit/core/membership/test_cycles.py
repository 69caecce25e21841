"""Numbers that climb find cycles of parents, and no child can flood the systems above."""

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Decision, Report
from messiahs.core.interface.events import AnswerTo, LinkDown, MemberAdded, PrimaryParentChanged, SettingsApplied
from messiahs.core.interface.membership_messages import CycleProbe, HandoverDone, Leave
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE
from messiahs.core.model.neighbors import Neighbor
from tests.unit.core.rig import CHILD, NEIGHBORS, OTHER_CHILD, PARENT, SIBLING, Rig, make_module, message_in, only, sent

ASKED = AnswerTo(1)
ADDED = SystemId("added-parent")


def probe(number: int = 77, hops: int = 32) -> CycleProbe:
    return CycleProbe(number=number, hops_left=hops)


def leave(rig: Rig, parent: SystemId) -> str:
    return f"type `messiahs module leave {parent} --module {rig.state.system}`"


@pytest.fixture
def grown(rig: Rig) -> Rig:
    """Add a second parent at run time."""
    rig.handle(SettingsApplied(answer_to=ASKED, neighbors=tuple((each, "") for each in NEIGHBORS)))
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=Neighbor(system=ADDED, is_parent=True)))
    rig.greet(PARENT, CHILD, OTHER_CHILD)
    return rig


def test_each_parent_gets_a_number_of_its_own_when_its_link_opens_and_again_within_minutes(grown: Rig) -> None:
    first = message_in(grown.greet(ADDED), CycleProbe)
    again = dict(sent(grown.wait(6 * MINUTE), CycleProbe))
    assert set(again) == {PARENT, ADDED}
    assert len({first.number, again[PARENT].number, again[ADDED].number}) == 3


def test_a_sibling_that_becomes_a_parent_gets_a_number_on_the_link_that_it_has(grown: Rig) -> None:
    grown.greet(SIBLING)
    both = Neighbor(system=SIBLING, is_parent=True, is_sibling=True)
    own = message_in(grown.handle(MemberAdded(answer_to=ASKED, neighbor=both)), CycleProbe)
    assert sent(grown.handle(MemberAdded(answer_to=ASKED, neighbor=both)), CycleProbe) == ()
    assert SIBLING in {to for to, _ in sent(grown.hear(CHILD, own), Leave)}


def test_a_parent_of_run_time_in_a_cycle_is_left_and_people_learn_why(grown: Rig) -> None:
    own = message_in(grown.greet(ADDED), CycleProbe)
    actions = grown.hear(CHILD, probe(own.number, hops=3))
    assert "cycle" in [each.what for each in only(actions, Decision)]
    assert {to for to, _ in sent(actions, Leave)} >= {ADDED}
    assert grown.state.membership.is_leaving(ADDED)
    assert not grown.state.membership.is_leaving(PARENT)
    assert grown.hear(CHILD, probe(own.number)) != actions, "it is an unknown number now"


def test_a_parent_that_was_added_long_ago_stays_and_is_reported_since_a_number_can_be_feigned(grown: Rig) -> None:
    grown.greet(ADDED)
    grown.wait(10 * MINUTE)
    grown.handle(LinkDown(neighbor=ADDED))
    own = message_in(grown.greet(ADDED), CycleProbe)
    (decision,) = only(grown.hear(CHILD, own), Decision)
    assert (decision.what, decision.task) == ("cycle", ADDED)
    assert decision.text.endswith(leave(grown, ADDED))
    assert "file" not in decision.text
    assert queries.cycles_of(grown.state) == {ADDED: leave(grown, ADDED)}
    assert not grown.state.membership.is_leaving(ADDED)


def test_a_change_of_the_primary_parent_makes_no_parent_a_new_one(grown: Rig) -> None:
    grown.greet(ADDED)
    grown.wait(10 * MINUTE)
    grown.handle(PrimaryParentChanged(answer_to=ASKED, parent=ADDED))
    grown.hear(PARENT, HandoverDone(number=1))
    assert grown.state.neighbors[ADDED].is_primary_parent
    grown.handle(LinkDown(neighbor=ADDED))
    grown.hear(CHILD, message_in(grown.greet(ADDED), CycleProbe))
    assert not grown.state.membership.is_leaving(ADDED)


def test_a_parent_of_the_file_in_a_cycle_stays_and_is_reported_until_the_cycle_has_ended(grown: Rig) -> None:
    grown.handle(LinkDown(neighbor=PARENT))
    own = message_in(grown.greet(PARENT), CycleProbe)
    (decision,) = only(grown.hear(OTHER_CHILD, probe(own.number)), Decision)
    assert (decision.what, decision.task) == ("cycle", PARENT)
    in_file = "remove one of these relations in the topology file, or "
    assert queries.cycles_of(grown.state) == {PARENT: in_file + leave(grown, PARENT)}
    assert not grown.state.membership.is_leaving(PARENT)
    grown.wait(15 * MINUTE)
    assert queries.cycles_of(grown.state) == {}


def test_a_number_of_another_system_climbs_to_all_parents_once_with_fewer_hops(grown: Rig) -> None:
    grown.greet(ADDED)
    passed = sent(grown.hear(CHILD, probe(hops=9)), CycleProbe)
    assert set(passed) == {(PARENT, probe(hops=8)), (ADDED, probe(hops=8))}
    assert sent(grown.hear(OTHER_CHILD, probe()), CycleProbe) == ()
    assert sent(grown.hear(CHILD, probe(78, hops=0)), CycleProbe) == ()
    assert {message.hops_left for _, message in sent(grown.hear(CHILD, probe(79, hops=10**9)), CycleProbe)} == {31}


def test_a_child_that_floods_is_passed_on_less_and_less_and_stops_no_other(grown: Rig) -> None:
    passed = [bool(sent(grown.hear(CHILD, probe(number)), CycleProbe)) for number in range(2_000)]
    assert all(passed[:128])
    assert 128 < sum(passed) < 700
    assert sum(passed[1_000:]) < sum(passed[128:1_000])
    assert sent(grown.hear(OTHER_CHILD, probe(5_000)), CycleProbe)
    grown.wait(MINUTE)
    assert sent(grown.hear(CHILD, probe(6_000)), CycleProbe)
    assert len(grown.state.membership.cycles.passed) == 1


def test_a_system_that_floods_does_not_stop_the_numbers_of_others_one_level_up(grown: Rig) -> None:
    above = Rig(make_module())
    above.resume()
    above.greet(PARENT, CHILD)
    arrived = 0
    for minute in range(10):
        numbers = range(10_000 * (minute + 1), 10_000 * (minute + 1) + 1_100)
        heard = [*(grown.hear(CHILD, probe(number)) for number in numbers), grown.hear(OTHER_CHILD, probe(77 + minute))]
        passed = [message for actions in heard for to, message in sent(actions, CycleProbe) if to == PARENT]
        arrived += [bool(sent(above.hear(CHILD, message), CycleProbe)) for message in passed][-1]
        assert passed[-1].number == 77 + minute
        for rig in (grown, above):
            rig.wait(MINUTE)
    assert arrived


@pytest.mark.parametrize("sender", [PARENT, SIBLING])
def test_only_a_child_sends_a_number(grown: Rig, sender: SystemId) -> None:
    grown.greet(SIBLING)
    (report,) = grown.hear(sender, probe())
    assert isinstance(report, Report)


def test_a_root_passes_nothing_on_and_a_border_passes_numbers_without_how_far_they_have_climbed() -> None:
    root = Rig(make_module(neighbors=NEIGHBORS[:2]))
    root.resume()
    root.greet(CHILD)
    assert root.hear(CHILD, probe()) == ()
    border = Rig(make_module())
    border.state.identity = type(border.state.identity)(
        system=border.state.system, epoch=border.state.epoch, address="me:1", border_key=b"k" * 32
    )
    border.resume()
    own = message_in(border.greet(PARENT), CycleProbe)
    border.greet(CHILD, OTHER_CHILD)
    for number, hops in ((77, 32), (78, 9), (79, 1)):
        passed = message_in(border.hear(CHILD, probe(number, hops)), CycleProbe)
        assert passed == probe(number, own.hops_left)
        assert border.hear(OTHER_CHILD, passed) == (), "a cycle through the border ends there"
