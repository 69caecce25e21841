"""When rules about running tasks act: durations that must hold without break, graces, and the severest act first."""

from dataclasses import dataclass, field

import pytest

from messiahs.core.interface.policies import Act, CalendarTime, RunningQuery
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.rule_timing import Due, Memory, Standing, acted, decide, next_evaluation

_NOON = CalendarTime(clock=720, date=20_649)


@dataclass(slots=True, kw_only=True, eq=False)
class Rule:
    """A rule that is due while a test says so (mutable)."""

    act: Act
    for_ns: int = 0
    grace_ns: int | None = None
    then: Act = Act.KILL
    is_on: bool = True
    rule: str = ""
    text: str = ""
    reads_memory: bool = False
    reads_waiting: bool = False

    def is_due(self, query: RunningQuery, /) -> bool:
        """Return what the test wants."""
        del query
        return self.is_on


@dataclass(slots=True)
class Task:
    """A task under some rules, at a second of its life (mutable)."""

    rules: tuple[Rule, ...]
    memory: Memory = field(default_factory=Memory)

    def at(self, second: int) -> list[Act]:
        """Do all that is due at a second, and name it."""
        done: list[Act] = []
        while (due := self.look(second)) is not None:
            done.append(due.act)
            self.memory = acted(self.memory, due, Instant(second * SECOND))
        return done

    def look(self, second: int) -> Due | None:
        """Look at the rules, and do nothing."""
        query = RunningQuery(task={}, here={}, now=_NOON)
        self.memory, due = decide(self.rules, self.memory, query, Instant(second * SECOND))
        return due

    def next_after(self, second: int) -> float | None:
        """Return the second of the next end of a `for` or a grace."""
        instant = next_evaluation(self.rules, self.memory, Instant(second * SECOND))
        return None if instant is None else instant / SECOND


def test_a_rule_acts_only_when_it_was_due_for_long_enough_without_break() -> None:
    rule = Rule(act=Act.SUSPEND, for_ns=60 * SECOND)
    task = Task((rule,))
    assert task.at(0) == []
    assert task.at(59) == []
    rule.is_on = False
    assert task.at(59) == []
    rule.is_on = True
    assert task.at(60) == []
    assert task.next_after(60) == 120
    assert task.at(119) == []
    assert task.at(120) == [Act.SUSPEND]
    assert task.memory.standing is Standing.SUSPENDED


def test_an_act_that_is_done_is_not_done_again() -> None:
    task = Task((Rule(act=Act.SUSPEND),))
    assert [task.at(second) for second in range(3)] == [[Act.SUSPEND], [], []]


def test_a_task_is_not_resumed_while_it_would_be_suspended() -> None:
    suspend, resume = Rule(act=Act.SUSPEND), Rule(act=Act.RESUME)
    task = Task((suspend, resume))
    assert [task.at(second) for second in range(3)] == [[Act.SUSPEND], [], []]
    suspend.is_on = False
    assert task.at(3) == [Act.RESUME]
    assert task.memory.standing is Standing.RUNNING


def test_an_act_that_cannot_be_done_yet_stays_due() -> None:
    task = Task((Rule(act=Act.RESUME),), Memory(standing=Standing.SUSPENDED))
    for second in range(3):
        due = task.look(second)
        assert due is not None
        assert due.act is Act.RESUME


@pytest.mark.parametrize("severer", range(1, len(Act)))
def test_the_severest_act_wins_wherever_it_stands(severer: int) -> None:
    acts = list(Act)[:severer]
    for order in (acts, acts[::-1]):
        due = Task(tuple(Rule(act=act, grace_ns=0) for act in order)).look(0)
        assert due is not None
        assert due.act is acts[0]


def test_of_equally_severe_rules_the_first_of_the_file_acts() -> None:
    first, second = Rule(act=Act.VACATE, grace_ns=5), Rule(act=Act.VACATE)
    assert Task((first, second)).look(0) == Due(act=Act.VACATE, rule=first, place=0, grace_ns=5)


def test_a_task_that_vacates_is_killed_when_its_grace_is_over_whatever_happens_meanwhile() -> None:
    vacate, suspend = Rule(act=Act.VACATE, grace_ns=5 * SECOND), Rule(act=Act.SUSPEND, is_on=False)
    task = Task((vacate, suspend))
    assert task.at(0) == [Act.VACATE]
    vacate.is_on, suspend.is_on = False, True
    assert task.at(4) == []
    assert task.next_after(4) == 5
    assert task.at(5) == [Act.KILL]
    assert task.memory.standing is Standing.GONE
    assert task.at(6) == []
    assert task.next_after(6) is None


def test_a_kill_is_at_once_unless_it_has_a_grace() -> None:
    at_once, later = Task((Rule(act=Act.KILL),)), Task((Rule(act=Act.KILL, grace_ns=5 * SECOND),))
    assert (at_once.at(0), at_once.memory.standing) == ([Act.KILL], Standing.GONE)
    assert (later.at(0), later.memory.standing) == ([Act.KILL], Standing.VACATING)
    assert (later.at(5), later.memory.standing) == ([Act.KILL], Standing.GONE)


def test_a_kill_without_grace_cuts_a_grace_short() -> None:
    kill = Rule(act=Act.KILL, is_on=False)
    task = Task((Rule(act=Act.VACATE, grace_ns=50 * SECOND), kill))
    assert task.at(0) == [Act.VACATE]
    kill.is_on = True
    assert (task.at(1), task.memory.standing) == ([Act.KILL], Standing.GONE)


def test_vacating_without_a_grace_of_its_own_has_that_of_the_policy() -> None:
    due = Task((Rule(act=Act.VACATE),)).look(0)
    assert due is not None
    assert due.grace_ns is None


@pytest.mark.parametrize("then", [Act.KILL, Act.VACATE, Act.SUSPEND])
def test_a_move_without_a_taker_ends_as_its_rule_says(then: Act) -> None:
    task = Task((Rule(act=Act.MOVE, grace_ns=10 * SECOND, then=then),))
    assert task.at(0) == [Act.MOVE]
    assert task.at(9) == []
    assert task.next_after(9) == 10
    assert task.at(10)[0] is then


def test_a_task_is_suspended_while_another_place_is_looked_for() -> None:
    task = Task((Rule(act=Act.SUSPEND), Rule(act=Act.MOVE, grace_ns=10 * SECOND)))
    assert task.at(0) == [Act.MOVE, Act.SUSPEND]
    assert task.at(10) == [Act.KILL]


def test_a_move_is_called_off_when_its_rule_is_not_due_any_more() -> None:
    move = Rule(act=Act.MOVE, grace_ns=10 * SECOND)
    task = Task((move,))
    assert task.at(0) == [Act.MOVE]
    move.is_on = False
    assert task.at(9) == []
    assert task.memory.moving is None
    assert task.at(10) == []
    move.is_on = True
    assert (task.at(20), task.at(29), task.at(30)) == ([Act.MOVE], [], [Act.KILL])


def test_a_move_without_a_grace_looks_for_another_place_for_ever() -> None:
    task = Task((Rule(act=Act.MOVE),))
    assert (task.at(0), task.at(1_000_000)) == ([Act.MOVE], [])


def test_a_suspended_task_for_which_another_place_is_looked_for_has_no_end_of_a_grace_to_wait_for() -> None:
    move, resume = Rule(act=Act.MOVE, grace_ns=5 * SECOND, then=Act.SUSPEND), Rule(act=Act.RESUME, is_on=False)
    task = Task((move, resume))
    assert (task.at(0), task.at(5)) == ([Act.MOVE], [Act.SUSPEND, Act.MOVE])
    assert [task.at(second) for second in (10, 15, 1_000)] == [[], [], []]
    assert task.memory.moving == 0
    # Going on meanwhile, it has the grace of its rule again.
    resume.is_on = True
    assert task.at(2_000) == [Act.RESUME, Act.MOVE]
    resume.is_on = False
    assert (task.at(2_004), task.at(2_005)) == ([], [Act.SUSPEND, Act.MOVE])


def test_changed_rules_restart_their_durations() -> None:
    first = Task((Rule(act=Act.KILL, for_ns=10 * SECOND),))
    assert first.at(0) == []
    second = Task((Rule(act=Act.KILL, for_ns=10 * SECOND), Rule(act=Act.RESUME)), first.memory)
    assert (second.at(9), second.at(18), second.at(19)) == ([], [], [Act.KILL])
