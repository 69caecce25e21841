"""The simulated host keeps the order in which the daemon commits and performs."""

import pytest

from messiahs.core.interface.actions import Action, FetchOutputs
from messiahs.core.interface.events import AnswerTo, CancelRequested, Event
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, after
from messiahs.sim.world.observer import NoWatcher
from messiahs.sim.world.task_channel import Read
from tests.unit.sim.two_systems import CHILD, PARENT, submitted, two_systems


class HeardOutputs(NoWatcher):
    """Keeps what modules hear of outputs (mutable)."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def happened(self, system: SystemId, event: Event) -> None:
        """Keep it."""
        del system
        if isinstance(event, OutputsHome | OutputsFailed):
            self.heard.append(event)


def test_a_batch_that_waited_for_room_on_the_disk_is_performed_before_the_next_one() -> None:
    federation = two_systems()
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    host = federation.members[CHILD]
    host.disk.is_full = True
    federation.post(CHILD, submitted(1))
    federation.run(lambda: False, until=after(federation.now, 2 * SECOND))
    federation.post(CHILD, submitted(2))
    federation.run(lambda: False, until=after(federation.now, 2 * SECOND))
    assert federation.answers == []
    host.disk.is_full = False
    federation.run(lambda: len(federation.answers) == 2, until=after(federation.now, 5 * SECOND))
    assert [(int(answer.answer_to), answer.problem[:8]) for answer in federation.answers] == [(1, ""), (2, "no_space")]


@pytest.mark.parametrize(("cancels", "heard"), [(0, 1), (1, 0)])
def test_a_fetch_that_was_ended_brings_nothing_home(cancels: int, heard: int) -> None:
    watcher = HeardOutputs()
    federation = two_systems(writing=100, watcher=watcher)
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    federation.post(PARENT, submitted(1, origin=PARENT))
    origin = federation.members[PARENT].module.state.origin
    federation.run(lambda: bool(origin.fetching), until=after(federation.now, 60 * SECOND))
    (attempt,) = origin.fetching
    for _ in range(cancels):
        federation.post(PARENT, CancelRequested(answer_to=AnswerTo(2), task=attempt.task))
    federation.run(lambda: False, until=after(federation.now, 60 * SECOND))
    assert len(watcher.heard) == heard
    assert not origin.tasks


def test_the_outputs_of_an_attempt_are_for_the_origin_of_its_claim_alone() -> None:
    federation = two_systems(writing=100)
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    fetches: list[FetchOutputs] = []

    def note(_: SystemId, action: Action) -> None:
        fetches.extend([action] if isinstance(action, FetchOutputs) else [])

    federation.observe = note
    federation.post(PARENT, submitted(1, origin=PARENT))
    federation.run(lambda: bool(fetches), until=after(federation.now, 60 * SECOND))
    executor = federation.members[CHILD]
    wanted = fetches[0].leg, fetches[0].claim, fetches[0].attempt
    assert executor.answer_read(Read(PARENT, *wanted))
    assert executor.answer_read(Read(SystemId("stranger"), *wanted)) is False
