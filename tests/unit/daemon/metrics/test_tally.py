"""What metrics count of the steps of a core: each thing once, however often its row is stored."""

from dataclasses import replace
from itertools import pairwise

import pytest

from messiahs.channel.contract import Counters
from messiahs.core import queries
from messiahs.core.counts import Counts
from messiahs.core.interface.actions import Action, FetchOutputs, Store
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import AnswerTo, CancelRequested, ControlReceived, Event
from messiahs.core.interface.messages import Command, ControlMessage, DenyCode, Reason, SchedRequest, TaskState
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.task_files import Output
from messiahs.daemon.metrics.families import About, Reading, families_of
from messiahs.daemon.metrics.file_bytes import FileBytes
from messiahs.daemon.metrics.histograms import Histogram
from messiahs.daemon.metrics.tally import Direction, Outcome, Tally
from messiahs.daemon.metrics.text import Renderer
from messiahs.daemon.otlp.sender import SpanCounts
from messiahs.daemon.transfer.budgets import Moved
from messiahs.trace.record.recorder import RecordedModule
from tests.unit.core.rig import (
    CHILD,
    PARENT,
    TASK,
    Rig,
    accept,
    attempt,
    deny,
    make_module,
    message_in,
    only,
    request,
    status,
    statuses,
)


class Counted(Rig):
    """A module whose steps are counted (mutable)."""

    tally: Tally

    def step(self, event: Event | None, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """Count a step that has happened."""
        self.tally.on_step(event, actions, self.now)
        return actions

    def hear(self, sender: SystemId, message: ControlMessage) -> tuple[Action, ...]:
        """Let a neighbor say something."""
        return self.step(ControlReceived(sender=sender, message=message), super().hear(sender, message))

    def submit(self, members: int = 0, **more: object) -> tuple[Action, ...]:
        """Submit tasks."""
        return self.step(None, super().submit(members, **more))

    def wait(self, duration_ns: int) -> tuple[Action, ...]:
        """Let time pass."""
        return self.step(None, super().wait(duration_ns))

    def counts(self) -> Counts:
        """Count what there is."""
        counting = queries.counting(self.state, self.now)
        while True:
            try:
                next(counting)
            except StopIteration as done:
                found: Counts = done.value
                return found


@pytest.fixture
def module() -> Counted:
    module = Counted(module=make_module())
    module.tally = Tally(RecordedModule(module.module))
    module.resume()
    module.greet(CHILD, PARENT)
    module.see(PARENT)
    return module


def test_a_task_is_submitted_placed_and_ended_once_although_its_rows_are_stored_again(module: Counted) -> None:
    asked = module.submit()
    assert module.counts().pending.waiting == 1
    search = message_in(asked, SchedRequest)
    module.wait(2 * SECOND)
    placed = module.hear(PARENT, accept(search.id))
    module.step(None, tuple(action for action in placed if isinstance(action, Store)))
    assert (module.tally.submitted_tasks, module.tally.placed_tasks) == (1, {False: 1})
    assert module.tally.placement_waits.sum_seconds == 2
    assert (module.counts().pending.waiting, sum(module.counts().placed.values())) == (0, 1)
    module.hear(PARENT, statuses(status(attempt())))
    assert module.tally.ended_tasks == {TaskState.FINISHED: 1}
    assert module.counts().placed == {}


def test_members_that_were_never_tried_are_counted_when_they_end(module: Counted) -> None:
    module.submit(7)
    cancel = CancelRequested(answer_to=AnswerTo(2), task=TASK)
    module.step(cancel, module.handle(cancel))
    assert (module.tally.submitted_tasks, module.tally.ended_tasks) == (7, {TaskState.KILLED: 7})


def test_an_attempt_that_is_revoked_is_an_eviction(module: Counted) -> None:
    search = message_in(module.submit(), SchedRequest)
    module.hear(PARENT, accept(search.id))
    module.hear(PARENT, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.REVOKED)))
    assert module.tally.evicted_tasks == {Cause.REVOKED: 1}
    assert not module.tally.ended_tasks


@pytest.mark.parametrize("stops", ["is_refused", "is_full"])
def test_outputs_that_are_stopped_or_missing_are_no_eviction(module: Counted, stops: str) -> None:
    search = message_in(module.submit(command=Command(argv=("true",), outputs=("o",))), SchedRequest)
    module.hear(PARENT, accept(search.id))
    reported = status(attempt(), outputs=(Output(name="stdout", size_bytes=5),))
    (fetch,) = only(module.hear(PARENT, statuses(reported)), FetchOutputs)
    failed = OutputsFailed(attempt=attempt(), leg=fetch.leg, text="no more now", is_gone=False)
    stopped = replace(failed, is_refused=stops == "is_refused", is_full=stops == "is_full")
    home = OutputsHome(attempt=attempt())
    for event in (stopped, home):
        actions = module.step(event, module.handle(event))
    rows = [store.row for store in only(actions, Store) if isinstance(store.row, TaskRow)]
    assert [row.result and row.result.cause for row in rows] == [Cause.OUTPUT_MISSING]
    assert (module.tally.ended_tasks, module.tally.evicted_tasks) == ({TaskState.ABORTED: 1}, {})


def test_a_search_has_one_outcome_and_one_that_nobody_answers_has_one_later(module: Counted) -> None:
    neighbors = queries.neighbors_of(module.state)
    first = message_in(module.submit(), SchedRequest)
    module.hear(PARENT, deny(first.id))
    module.hear(PARENT, deny(first.id))
    assert module.tally.searches == {(PARENT, Outcome.DENIED): 1}
    asked = [message_in(module.wait(MINUTE), SchedRequest)]
    module.tally.keep_only(neighbors, module.now)
    assert module.tally.searches == {(PARENT, Outcome.DENIED): 1}
    later = module.now + asked[0].remaining_ns + 1
    module.tally.keep_only(neighbors, type(module.now)(later))
    assert module.tally.searches[PARENT, Outcome.UNANSWERED] == 1
    module.tally.keep_only((), module.now)
    assert not module.tally.searches


def test_denials_are_counted_by_direction_and_code(module: Counted) -> None:
    search = message_in(module.submit(), SchedRequest)
    reason = Reason(module=PARENT, code=DenyCode.NO_CAPACITY)
    module.hear(PARENT, replace(deny(search.id), reasons=(reason,)))
    assert module.tally.denials == {(Direction.RECEIVED, DenyCode.NO_CAPACITY): 1}
    module.hear(CHILD, request(remaining_ns=1))
    assert module.tally.denials[Direction.SENT, DenyCode.TIMED_OUT] == 1
    assert module.tally.answers == {(CHILD, Outcome.DENIED): 1}


def test_a_duration_of_exactly_a_bound_is_in_its_bucket() -> None:
    histogram = Histogram((0.5, 1.0))
    for duration_ns in (SECOND // 2, SECOND // 2 + 1, SECOND, 3 * SECOND):
        histogram.add(duration_ns)
    assert histogram.buckets == [("0.5", 1), ("1.0", 3), ("+Inf", 4)]
    assert histogram.sum_seconds == pytest.approx(5)


def test_every_family_is_there_from_the_start_and_systems_without_a_link_are_one(module: Counted) -> None:
    families = families_of(reading(module, moved={(SystemId(f"far{each}"), Moved.SENT): each for each in range(9)}))
    assert len({family.name for family in families}) == len(families)
    assert all(family.documentation.endswith(".") for family in families)
    (files,) = (family for family in families if family.name == "messiahs_file_bytes")
    assert {sample.labels["neighbor"] for sample in files.samples} == {*queries.neighbors_of(module.state), "other"}
    assert sum(sample.value for sample in files.samples) == sum(range(9))


def test_words_of_a_newer_release_become_one_reason(module: Counted) -> None:
    for each in range(5):
        module.tally.ended_attempts[TaskState.ABORTED, f"unheard of {each}"] += 1
    (ended,) = (each for each in families_of(reading(module)) if each.name == "messiahs_ended_attempts")
    assert [(each.labels["reason"], each.value) for each in ended.samples] == [("other", 5)]


def test_a_text_is_that_of_its_reading_whatever_is_counted_later(module: Counted) -> None:
    renderer = Renderer()
    families = renderer.families(reading(module))
    module.tally.submitted_tasks += 1
    texts = (renderer.text_of(families), renderer.text_of(renderer.families(reading(module))))
    own = [[line for line in text.splitlines() if line.startswith(b"messiahs_")] for text in texts]
    assert [len(set(one) - set(other)) for one, other in pairwise(own)] == [1]


def reading(module: Counted, *, moved: dict[tuple[SystemId, Moved], int] | None = None) -> Reading:
    return Reading(
        about=About(release="1", federation="lab", module="me"),
        counts=module.counts(),
        tally=module.tally,
        messages={PARENT: Counters(sent=1)},
        file_bytes=FileBytes().read(moved or {}, module.counts().linked),
        throttled=frozenset(),
        has_commit_failed=False,
        spans=SpanCounts(),
    )
