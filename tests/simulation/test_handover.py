"""A change of the primary parent in virtual time: each machine is counted once when it is quiet, and never twice."""

from collections.abc import Callable

import pytest

from messiahs.core.interface.actions import Action, Answer
from messiahs.core.interface.events import AnswerTo, PrimaryParentChanged
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.update.counting import counting_of
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.family import family, let_pass, machines_at

TALL = {
    "root": (),
    "old-2": ("root",),
    "old-1": ("old-2",),
    "old": ("old-1",),
    "new": ("root",),
    "child": ("old", "new"),
    "leaf": ("child",),
}
"""The old parent is farther from the root than the new one: its sums arrive there later."""
CHILD, OLD, NEW, ROOT = map(SystemId, ("child", "old", "new", "root"))
MACHINES = ("leaf", "child", "new", "old")


def change(federation: SimulatedFederation, parent: SystemId) -> None:
    federation.post(CHILD, PrimaryParentChanged(answer_to=AnswerTo(1), parent=parent, text="moved"))


def most_at(federation: SimulatedFederation, *systems: SystemId) -> Callable[[], dict[SystemId, int]]:
    """Return a function that returns the most machines that were counted at each system until then."""
    most = dict.fromkeys(systems, 0)

    def note(_: SystemId, __: Action) -> None:
        for system in systems:
            if federation.members[system].is_up:
                most[system] = max(most[system], machines_at(federation, system))

    federation.observe = note
    return lambda: most


def counted_at(federation: SimulatedFederation) -> SystemId | None:
    return counting_of(federation.members[CHILD].module.state).parent


def is_done(federation: SimulatedFederation) -> bool:
    handover = federation.members[CHILD].module.state.membership.handover
    return handover is not None and handover.is_done


@pytest.mark.parametrize("turns", [1, 4])
def test_each_machine_is_counted_once_afterwards_and_never_twice_meanwhile(turns: int) -> None:
    federation = family(TALL, machines=MACHINES)
    assert (machines_at(federation, ROOT), machines_at(federation, OLD), machines_at(federation, NEW)) == (4, 3, 1)
    most = most_at(federation, ROOT)
    for turn in range(turns):
        change(federation, (NEW, OLD)[turn % 2])
        let_pass(federation, 20 * SECOND)
        assert is_done(federation)
    assert counted_at(federation) == (OLD, NEW)[turns % 2]
    assert machines_at(federation, ROOT) == 4
    assert machines_at(federation, NEW) == (1, 3)[turns % 2]
    assert most() == {ROOT: 4}


def test_the_handover_takes_no_longer_than_the_sums_take_to_the_root_and_back() -> None:
    federation = family(TALL, machines=MACHINES)
    change(federation, NEW)
    let_pass(federation, SECOND)
    assert is_done(federation)
    assert counted_at(federation) == NEW


def test_it_survives_restarts_of_all_three_sides() -> None:
    for crashed in (CHILD, OLD, NEW):
        for after_ns in range(0, 200_000_000, 20_000_000):
            federation = family(TALL, machines=MACHINES)
            change(federation, NEW)
            let_pass(federation, after_ns)
            federation.members[crashed].crash()
            let_pass(federation, 5 * SECOND)
            federation.members[crashed].start()
            let_pass(federation, MINUTE)
            assert (crashed, after_ns, counted_at(federation)) == (crashed, after_ns, NEW)
            assert machines_at(federation, ROOT) == 4
            assert machines_at(federation, NEW) == 3
            assert machines_at(federation, OLD) == 1


def test_a_parent_that_does_not_answer_is_waited_for_until_its_input_timeout() -> None:
    federation = family(TALL, machines=MACHINES)
    most = most_at(federation, ROOT)
    federation.members[OLD].crash()
    change(federation, NEW)
    let_pass(federation, 2 * SECOND)
    assert counted_at(federation) is None
    let_pass(federation, 20 * SECOND)
    assert counted_at(federation) == NEW
    assert machines_at(federation, ROOT) == 3
    assert most() == {ROOT: 4}


def test_the_relations_are_those_of_the_new_parent_also_after_a_restart() -> None:
    federation = family({**TALL, "beside": ("old",)}, machines=MACHINES)
    assert SystemId("beside") in federation.members[CHILD].module.state.neighbors
    change(federation, NEW)
    let_pass(federation, MINUTE)
    for _ in range(2):
        neighbors = federation.members[CHILD].module.state.neighbors
        assert [each.system for each in neighbors.values() if each.is_primary_parent] == [NEW]
        assert sorted(neighbors) == ["leaf", "new", "old"]
        federation.members[CHILD].crash()
        let_pass(federation, SECOND)
        federation.members[CHILD].start()
        let_pass(federation, MINUTE)
    assert CHILD not in federation.members[SystemId("beside")].module.state.neighbors


@pytest.mark.parametrize("parent", ["leaf", "root", "nobody"])
def test_only_a_parent_can_become_the_primary_one(parent: str) -> None:
    federation = family(TALL, machines=MACHINES)
    change(federation, SystemId(parent))
    let_pass(federation, SECOND)
    assert federation.answers == [Answer(answer_to=AnswerTo(1), problem=f"{parent} is no parent of child")]
    assert counted_at(federation) == OLD


def test_a_second_change_waits_for_the_first() -> None:
    federation = family(TALL, machines=MACHINES)
    federation.members[OLD].crash()
    change(federation, NEW)
    let_pass(federation, SECOND)
    change(federation, OLD)
    let_pass(federation, SECOND)
    assert federation.answers[-1].problem == "the primary parent is already being changed to new"
