"""The log has some decisions about messages of each neighbor, and the number of those that it leaves out."""

from messiahs.core.interface.actions import Action, Decision, TaskEnded
from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.daemon.process.decision_limit import LIMIT, WINDOW_NS, DecisionLimit

OWN, LEFT, RIGHT = SystemId("own"), SystemId("left"), SystemId("right")
NOW = Instant(0)


def denials(count: int, what: str = "sched_deny") -> tuple[Action, ...]:
    return tuple(Decision(what=what, task=f"{number:08x}", text="left: no_capacity") for number in range(count))


def test_a_neighbor_that_asks_without_end_has_some_lines_and_a_count() -> None:
    limit = DecisionLimit(OWN)
    assert len(limit.within(LEFT, denials(1_000), NOW)) == LIMIT
    assert list(limit.omitted(NOW)) == []
    (omitted,) = limit.omitted(Instant(NOW + WINDOW_NS))
    assert (omitted.what, omitted.task) == ("sched_deny", LEFT)
    assert omitted.text.startswith(f"{1_000 - LIMIT} more for it are left out")
    assert list(limit.omitted(Instant(NOW + WINDOW_NS))) == []
    assert len(limit.within(LEFT, denials(1), Instant(NOW + WINDOW_NS))) == 1


def test_other_neighbors_and_other_kinds_have_lines_of_their_own() -> None:
    limit = DecisionLimit(OWN)
    limit.within(LEFT, denials(1_000), NOW)
    assert len(limit.within(RIGHT, denials(3), NOW)) == 3
    assert len(limit.within(LEFT, denials(3, "sched_accept"), NOW)) == 3


def test_tasks_of_own_users_and_all_other_actions_are_never_left_out() -> None:
    ended = TaskEnded(task=TaskId(OWN, Epoch(1), 1))
    ends = tuple(Decision(what="finished", task=f"own.{number}") for number in range(1_000))
    assert len(DecisionLimit(OWN).within(LEFT, (*ends, *([ended] * 1_000)), NOW)) == 2_000
