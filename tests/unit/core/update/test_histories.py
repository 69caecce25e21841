"""Histories of neighbors and of the own machine, as a module keeps and uses them (MESSIAHS 5.1)."""

from dataclasses import dataclass, field, replace

import pytest

from messiahs.core.interface.events import AnswerTo, LinkDown, LinkUp, MemberRemoved, PolicyChanged
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest
from messiahs.core.model.ids import Epoch, SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.queries import neighbor_view, sight_of
from messiahs.core.update.histories import mean_values
from messiahs.core.vectors.buckets import bucket_of, highest_in, lowest_in
from messiahs.core.vectors.vectors import MachineClass, Vector, interval
from messiahs.language.compiler.files import parse_policy
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from tests.history_by_definition import Heard, by_definition
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    ME,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    hello,
    message_in,
    request,
    sent,
    view,
)

LENGTH_NS = 8 * MINUTE
KEEPING = "history { keep $load over 8min; } accept from any { limit 9 tasks; } "


def policy(text: str = KEEPING) -> CompiledPolicy:
    return parse_policy(text, file="x.policy")


def middle(value: int) -> int:
    """Return what a receiver takes a number of one machine for."""
    return (lowest_in(bucket_of(value)) + highest_in(bucket_of(value))) // 2


def facts(rig: Rig, system: SystemId = CHILD) -> dict[str, int | str]:
    return dict(rig.state.updates.histories.facts_of(system, rig.now))


@dataclass(slots=True)
class Course:
    """A child that reports its load every second (mutable)."""

    rig: Rig
    heard: list[Heard] = field(default_factory=list)

    def report(self, load: int, *, seconds: int) -> None:
        """Let the child report a load every second for some time."""
        for _ in range(seconds):
            self.rig.see(CHILD, view(load=load))
            self.heard.append((self.rig.now, middle(load)))
            self.rig.wait(SECOND)


@pytest.fixture
def rig(module: ModuleFactory) -> Rig:
    made = module(policy=policy())
    made.greet(CHILD, OTHER_CHILD, PARENT, SIBLING)
    return made


def test_what_is_known_of_a_neighbor_is_what_it_reported_over_time(rig: Rig) -> None:
    course = Course(rig)
    for load, seconds in ((900, 100), (3_000, 20), (100, 300), (5_000, 400)):
        course.report(load, seconds=seconds)
        expected = by_definition(course.heard, LENGTH_NS, rig.now)
        assert facts(rig) == {f"load_{name}": value for name, value in expected.items()}


def test_a_silent_neighbor_adds_nothing_after_its_input_timeout(rig: Rig) -> None:
    course = Course(rig)
    course.report(900, seconds=30)
    rig.wait(MINUTE)
    assert not rig.state.updates.views
    known = facts(rig)
    rig.wait(MINUTE)
    assert facts(rig) == known
    rig.wait(LENGTH_NS + LENGTH_NS)
    assert facts(rig) == {}


def test_a_lost_link_ends_a_value_and_keeps_what_was(rig: Rig) -> None:
    Course(rig).report(900, seconds=30)
    rig.handle(LinkDown(neighbor=CHILD))
    known = facts(rig)
    rig.wait(10 * SECOND)
    assert known["load_mean"] == middle(900)
    assert facts(rig) == known


def test_another_system_with_the_name_of_a_neighbor_begins_anew(rig: Rig) -> None:
    Course(rig).report(900, seconds=30)
    rig.handle(LinkDown(neighbor=CHILD))
    rig.greet(CHILD)
    assert facts(rig)
    rig.handle(LinkDown(neighbor=CHILD))
    rig.handle(LinkUp(neighbor=CHILD))
    rig.hear(CHILD, replace(hello(CHILD), epoch=Epoch(99)))
    assert facts(rig) == {}


def test_a_neighbor_that_was_removed_leaves_no_history(rig: Rig) -> None:
    Course(rig).report(900, seconds=5)
    assert CHILD in rig.state.updates.histories.series
    rig.handle(MemberRemoved(answer_to=AnswerTo(1), system=CHILD, text="gone"))
    rig.wait(5 * MINUTE)
    assert CHILD not in rig.state.neighbors
    assert CHILD not in rig.state.updates.histories.series


def test_without_a_history_in_the_policy_nothing_is_kept(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    rig.measure()
    rig.see(CHILD)
    assert rig.state.updates.histories.series == {}


def test_a_new_policy_keeps_histories_of_the_same_length_and_begins_others_anew(rig: Rig) -> None:
    Course(rig).report(900, seconds=30)
    rig.handle(PolicyChanged(policy=policy("history { keep $load over 8min; keep $slots over 1h; }")))
    assert facts(rig)["load_count"] == 30
    rig.handle(PolicyChanged(policy=policy("history { keep $load over 9min; }")))
    assert facts(rig) == {}
    rig.handle(PolicyChanged(policy=policy("")))
    assert rig.state.updates.histories.series == {}


def test_the_own_machine_has_a_history_that_policies_read(module: ModuleFactory) -> None:
    rule = 'require $here.load_mean < 20% else "busy of late";'
    rig = module(policy=policy(f"history {{ keep $load over 8min; }} accept from any {{ {rule} limit 9 tasks; }}"))
    rig.greet(CHILD)
    rig.measure(load=9_000)
    rig.wait(MINUTE)
    rig.measure(load=0)
    (reason,) = message_in(rig.hear(CHILD, request(1)), SchedDeny).reasons
    assert reason.text == "busy of late"
    rig.wait(LENGTH_NS)
    assert message_in(rig.hear(CHILD, request(2)), SchedAccept).places == 1


def test_the_history_of_the_asker_decides_about_its_request(module: ModuleFactory) -> None:
    rule = 'require $peer.load_sd < 5% else "it varies";'
    rig = module(policy=policy(f"history {{ keep $load over 8min; }} accept from any {{ {rule} limit 9 tasks; }}"))
    rig.greet(CHILD)
    rig.measure()
    course = Course(rig)
    course.report(0, seconds=30)
    assert message_in(rig.hear(CHILD, request(1)), SchedAccept).places == 1
    course.report(9_000, seconds=30)
    (reason,) = message_in(rig.hear(CHILD, request(2)), SchedDeny).reasons
    assert reason.text == "it varies"


@pytest.mark.parametrize(("key", "first"), [("least $cand.load_mean", OTHER_CHILD), ("most $cand.load_mean", CHILD)])
def test_candidates_are_ranked_by_their_history(module: ModuleFactory, key: str, first: SystemId) -> None:
    rig = module(policy=policy(f"{KEEPING} rank candidates by {key};"))
    rig.greet(CHILD, OTHER_CHILD)
    for _ in range(30):
        rig.see(CHILD, view(load=8_000))
        rig.see(OTHER_CHILD, view(load=2_000))
        rig.wait(SECOND)
    # Now their loads are the other way round: only their past differs as the rule says.
    rig.see(CHILD, view(load=0))
    rig.see(OTHER_CHILD, view(load=9_000))
    ((asked, _),) = sent(rig.submit(), SchedRequest)
    assert asked == first


def test_the_own_history_is_advertised_only_if_it_is_named(module: ModuleFactory) -> None:
    for said, names in (("send $load_mean, $load_sd;", {"load_mean", "load_sd"}), ("send all;", set()), ("", set())):
        rig = module(policy=policy(f"history {{ keep $load over 8min; }} advertise every 2s {{ {said} }}"))
        rig.greet(PARENT)
        rig.measure(load=3_000)
        rig.wait(MINUTE)
        (machine,) = rig.state.updates.own.classes
        assert {name for name, _ in machine.attributes if name.startswith("load_")} == names


def test_a_preview_of_a_policy_changes_no_history(rig: Rig) -> None:
    rig.measure(load=3_000)
    rig.wait(10 * SECOND)
    before = rig.state.updates.histories.copied()
    rig.wait(SECOND // 10)
    sight_of(rig.state, rig.state.neighbors[PARENT], policy("history { keep $slots over 1h; }"), rig.now)
    assert rig.state.updates.histories == before


def test_the_view_of_a_neighbor_shows_its_history(rig: Rig) -> None:
    Course(rig).report(900, seconds=30)
    seen = neighbor_view(rig.state, rig.state.neighbors[CHILD], rig.now)
    assert seen is not None
    assert dict(seen.history) == facts(rig)


def test_a_number_beyond_its_range_counts_as_the_nearest_one_in_it(rig: Rig) -> None:
    for _ in range(10):
        rig.see(CHILD, view(load=10**18))
        rig.see(SIBLING, view(load=-5))
        rig.wait(SECOND)
    assert facts(rig)["load_mean"] == 10_000
    assert facts(rig, SIBLING)["load_mean"] == 0


def test_a_value_that_is_withheld_later_ends(rig: Rig) -> None:
    Course(rig).report(900, seconds=10)
    for _ in range(10):
        rig.see(CHILD, Vector((MachineClass(count=1, attributes=()),)))
        rig.wait(SECOND)
    assert facts(rig)["load_permanence"] == 10


def test_the_value_of_many_machines_is_their_mean() -> None:
    few = MachineClass(count=1, attributes=(("load", interval(bucket_of(4), bucket_of(4))), ("os", "Linux")))
    many = MachineClass(count=3, attributes=(("load", interval(0, 0)),))
    lacking = MachineClass(count=9, attributes=())
    assert mean_values(Vector((few, many, lacking)), ["load", "os", "speed"]) == {"load": 1}


def test_the_own_system_and_its_neighbors_are_all_that_has_a_history(rig: Rig) -> None:
    rig.measure(load=10)
    for system in (CHILD, PARENT, SIBLING):
        rig.see(system, view(load=10))
    assert set(rig.state.updates.histories.series) == {ME, CHILD, PARENT, SIBLING}
    assert all(set(known) == {"load"} for known in rig.state.updates.histories.series.values())
