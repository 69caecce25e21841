"""Communication costs of links and paths: measured, added up, and shown as far as the policy says (MESSIAHS 5.1)."""

from collections.abc import Iterable

from messiahs.core.interface.actions import Action, SendVector
from messiahs.core.interface.events import VectorReceived
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.interface.spliced_bytes import FilesSent
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND, Instant
from messiahs.core.model.link_costs import LEAST_MEASURED_BYTES, NO_PROBE, UNKNOWN_COSTS, LinkCosts, Probe
from messiahs.core.state.link_costs import MeasuredLink
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, CLAIM, NEIGHBORS, OTHER_CHILD, PARENT, SIBLING, Rig, only, view
from tests.unit.core.scripted_policy import ScriptedPolicy

KINDS = {
    CHILD: VectorKind.FOR_PARENTS,
    OTHER_CHILD: VectorKind.FOR_PARENTS,
    PARENT: VectorKind.FOR_CHILDREN,
    SIBLING: VectorKind.FOR_SIBLINGS,
}
START = Instant(5 * SECOND)


def at(milliseconds: int) -> Instant:
    return Instant(START + milliseconds * MILLISECOND)


def round_trip_ms(link: MeasuredLink) -> float | None:
    value = link.costs.round_trip_ns
    return None if value is None else value / MILLISECOND


def test_a_round_trip_is_measured_with_the_own_clock_without_the_time_for_which_the_other_side_held_it() -> None:
    link = MeasuredLink()
    sent = link.probe(START)
    assert sent == Probe(stamp=1)
    link.on_probe(Probe(stamp=7, echo=sent.stamp, held_ns=1_900 * MILLISECOND), at(1_940))
    assert round_trip_ms(link) == 40
    assert link.probe(at(2_000)) == Probe(stamp=2, echo=7, held_ns=60 * MILLISECOND)


def test_later_round_trips_are_smoothed() -> None:
    link = MeasuredLink()
    for trip in (40, 120, 120):
        sent = link.probe(START)
        link.on_probe(Probe(stamp=sent.stamp, echo=sent.stamp), at(trip))
    assert round_trip_ms(link) == 40 + 10 + 8.75


def test_an_echo_counts_once_and_one_that_was_never_sent_or_was_held_too_long_does_not_count() -> None:
    link = MeasuredLink()
    sent = link.probe(START)
    link.on_probe(Probe(stamp=1, echo=99), at(1))
    link.on_probe(Probe(stamp=2, echo=sent.stamp, held_ns=HOUR), at(30))
    assert link.costs == UNKNOWN_COSTS
    link.on_probe(Probe(stamp=3, echo=sent.stamp), at(30))
    assert link.costs == UNKNOWN_COSTS
    again = link.probe(START)
    link.on_probe(Probe(stamp=4, echo=again.stamp), at(30))
    link.on_probe(Probe(stamp=5, echo=again.stamp), at(9_000))
    assert round_trip_ms(link) == 30


def test_a_neighbor_cannot_make_a_module_remember_many_stamps() -> None:
    link = MeasuredLink()
    for _ in range(1_000):
        link.probe(START)
    assert len(link.sent) == 8


def test_a_stamp_that_was_overtaken_is_not_returned() -> None:
    link = MeasuredLink()
    link.on_probe(Probe(stamp=5), at(0))
    link.on_probe(Probe(stamp=4), at(10))
    assert link.probe(at(20)) == Probe(stamp=1, echo=5, held_ns=20 * MILLISECOND)


def test_throughput_is_smoothed_and_has_a_bound() -> None:
    link = MeasuredLink()
    link.on_transfer(10_000_000, SECOND)
    link.on_transfer(20_000_000, SECOND)
    assert link.costs.throughput == 12_500_000
    link = MeasuredLink()
    link.on_transfer(2**62, 0)
    assert link.costs.throughput == 2**40 - 1


def hear(
    rig: Rig, system: SystemId, *, probe: Probe = NO_PROBE, behind: LinkCosts = UNKNOWN_COSTS
) -> tuple[Action, ...]:
    message = StatusVector(
        kind=KINDS[system], vector=view(), period_ns=2 * SECOND, age_ns=0, probe=probe, behind=behind
    )
    return rig.handle(VectorReceived(sender=system, message=message))


def vectors_to(actions: Iterable[Action]) -> dict[SystemId, StatusVector]:
    return {action.to: action.message for action in only(actions, SendVector)}


def measured(rig: Rig, trips: dict[SystemId, int], /, behind: dict[SystemId, LinkCosts]) -> None:
    """Let each neighbor answer the last vector to it after some milliseconds."""
    for system in sorted(trips, key=lambda each: trips[each]):
        stamp = rig.state.updates.measured_links[system].last
        waited_ns = rig.now - rig.state.updates.measured_links[system].sent[stamp]
        rig.wait(max(0, trips[system] * MILLISECOND - waited_ns))
        hear(rig, system, probe=Probe(stamp=1, echo=stamp), behind=behind.get(system, UNKNOWN_COSTS))
        assert rig.state.updates.link_costs(system).round_trip_ns == trips[system] * MILLISECOND


def gateway(module: ModuleFactory, policy: ScriptedPolicy | None = None) -> Rig:
    """Return a module without a machine, whose neighbors have answered after 1, 2, 3 and 4 ms."""
    rig = module(policy=policy)
    rig.greet(*(neighbor.system for neighbor in NEIGHBORS))
    for system in KINDS:
        hear(rig, system)
    rig.wait(3 * SECOND)
    for link in rig.state.updates.measured_links.values():
        link.probe(rig.now)
    far = LinkCosts(20 * MILLISECOND, 1_000)
    measured(rig, {CHILD: 1, OTHER_CHILD: 2, SIBLING: 3, PARENT: 4}, {CHILD: far})
    return rig


def test_a_module_without_a_machine_says_what_it_adds_to_the_nearest_machines_of_each_vector(
    module: ModuleFactory,
) -> None:
    rig = gateway(module)
    trips = {system: message.behind.round_trip_ns for system, message in vectors_to(rig.wait(3 * SECOND)).items()}
    near = {system: None if trip is None else trip / MILLISECOND for system, trip in trips.items()}
    # The first child's machines are 1 + 20 ms away, which is not the nearest for anybody but the other child.
    assert near == {PARENT: 2, SIBLING: 2, CHILD: 2, OTHER_CHILD: 3}


def test_one_with_a_machine_adds_nothing(module: ModuleFactory) -> None:
    rig = gateway(module)
    rig.measure(slots=4)
    assert {message.behind for message in vectors_to(rig.wait(3 * SECOND)).values()} == {UNKNOWN_COSTS}


def test_to_whom_the_policy_reveals_nothing_it_shows_no_costs(module: ModuleFactory) -> None:
    rig = gateway(module, ScriptedPolicy(silent_to=(PARENT,)))
    sent = vectors_to(rig.wait(3 * SECOND))
    assert sent[PARENT].behind == UNKNOWN_COSTS
    assert sent[SIBLING].behind.round_trip_ns == 2 * MILLISECOND


def test_large_files_measure_the_link_over_which_they_went_and_those_of_strangers_none(module: ModuleFactory) -> None:
    rig = gateway(module)
    rig.handle(FilesSent(claim=CLAIM, to=CHILD, size_bytes=LEAST_MEASURED_BYTES, duration_ns=SECOND))
    rig.handle(FilesSent(claim=CLAIM, to=PARENT, size_bytes=LEAST_MEASURED_BYTES - 1, duration_ns=SECOND))
    rig.handle(FilesSent(claim=CLAIM, to=SystemId("stranger"), size_bytes=LEAST_MEASURED_BYTES, duration_ns=SECOND))
    known = {system: rig.state.updates.link_costs(system).throughput for system in (*KINDS, SystemId("stranger"))}
    assert {system: value for system, value in known.items() if value} == {CHILD: LEAST_MEASURED_BYTES}
    # 1,000 bytes a second are what the child itself reports behind it: the least of a path counts.
    assert vectors_to(rig.wait(3 * SECOND))[PARENT].behind.throughput == 1_000
