"""An idle machine asks a busy one that has only running tasks: what happens to them, in virtual time."""

import pytest

from messiahs.core.interface.actions import Action, Decision, SendControl
from messiahs.core.interface.events import PolicyChanged
from messiahs.core.interface.messages import TaskDeny, TaskRevoke, TaskState
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.language.compiler.files import parse_policy
from tests.simulation.test_owners import LEFT, RIGHT, TOP, Desks, events

OFFERING = """policy "sharing what runs";
attribute $kind string optional;
accept from any { limit 100 tasks; }
migrate {
    ask every 5s when $here.tasks = 0 wanting { $kind ne "dull" };
    RULES
}
"""
RUN_NS = 200 * SECOND


class Sharing(Desks):
    """The two machines, whose policies share running tasks by some rules; messages are recorded."""

    def __init__(self, rules: str) -> None:
        self.said: list[tuple[SystemId, Action]] = []
        super().__init__(OFFERING.replace("RULES", rules), mean_ns=RUN_NS)
        self.federation.observe = lambda system, action: self.said.append((system, action))

    def denials_of(self, system: SystemId) -> set[str]:
        """Return the codes with which a module denied task requests."""
        sent = [action.message for sender, action in self.said if sender == system and isinstance(action, SendControl)]
        return {reason.code for message in sent if isinstance(message, TaskDeny) for reason in message.reasons}


def machine_of(desks: Desks) -> SystemId:
    return SystemId(desks.task.executed_on)


def test_a_running_task_moves_to_the_idle_machine_that_asks_and_stays_there() -> None:
    desks = Sharing("offer when $task.ran < 10min;")
    desks.submit("any")
    first = machine_of(desks)
    desks.wait(15)
    assert (desks.task.attempt, machine_of(desks)) == (2, ({LEFT, RIGHT} - {first}).pop())
    # Now the other one is idle and asks; without the rule the task would move back and forth.
    ended = desks.finish()
    assert (ended.state, ended.attempt) == (TaskState.FINISHED, 2)
    assert events(ended) == ["bound", "moving", "vacating", "moved", "bound", "finished"]
    (moving,) = [entry for entry in ended.history if entry.event == "moving"]
    assert "asked for tasks" in moving.text


@pytest.mark.parametrize(
    ("kind", "rules", "code"),
    [
        ("any", "offer when $task.ran > 1h;", "refused_by_policy"),
        ("any", "offer when $task.ran < 10min; keep at least 1 tasks;", "refused_by_policy"),
        ("dull", "offer when $task.ran < 10min;", "no_task"),
    ],
)
def test_a_task_that_is_not_offered_or_not_wanted_stays(kind: str, rules: str, code: str) -> None:
    desks = Sharing(rules)
    desks.submit(kind)
    first = machine_of(desks)
    desks.wait(60)
    assert (desks.task.attempt, machine_of(desks)) == (1, first)
    assert desks.denials_of(first) == {code}
    assert desks.finish().attempt == 1


def test_without_a_rule_running_tasks_are_not_requested() -> None:
    desks = Sharing("")
    desks.submit("any")
    desks.wait(60)
    assert not any(isinstance(action, Decision) and action.what == "task_request" for _, action in desks.said)
    assert desks.finish().attempt == 1


def test_a_task_continues_if_the_requester_has_no_place_any_more() -> None:
    desks = Sharing("offer when $task.ran < 10min;")
    desks.submit("any")
    first = machine_of(desks)
    (other,) = {LEFT, RIGHT} - {first}
    closed = PolicyChanged(policy=parse_policy('policy "closed";', file="closed"))

    def close(system: SystemId, action: Action) -> None:
        desks.said.append((system, action))
        if system == first and isinstance(action, Decision) and action.what == "offer":
            desks.federation.post(other, closed)

    desks.federation.observe = close
    desks.wait(60)
    assert [action.what for _, action in desks.said if isinstance(action, Decision) and action.what == "offer"]
    assert (desks.task.attempt, machine_of(desks)) == (1, first)
    ended = desks.finish()
    assert (ended.state, ended.attempt) == (TaskState.FINISHED, 1)


@pytest.mark.parametrize("after_ms", [1, 12])
@pytest.mark.parametrize("whose", ["executor", "origin", "asker"])
def test_a_daemon_that_crashes_during_an_offer_neither_loses_nor_duplicates_the_task(whose: str, after_ms: int) -> None:
    desks = Sharing("offer when $task.ran < 10min;")
    desks.submit("any")
    first = machine_of(desks)
    (other,) = {LEFT, RIGHT} - {first}
    victim = desks.federation.members[{"executor": first, "origin": TOP, "asker": other}[whose]]
    offers: list[TaskRevoke] = []

    def crash(system: SystemId, action: Action) -> None:
        revoke = action.message if isinstance(action, SendControl) else None
        if system == first and isinstance(revoke, TaskRevoke) and not offers:
            offers.append(revoke)
            desks.federation.later(after_ms * MILLISECOND, victim.crash)
            desks.federation.later(2 * SECOND, victim.start)

    desks.federation.observe = crash
    ended = desks.finish()
    # The number of attempts at once is checked all the time.
    assert offers
    assert ended.state is TaskState.FINISHED
