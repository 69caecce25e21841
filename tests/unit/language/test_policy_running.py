"""The block `running`: which rules a file has, and when each of them is due."""

from collections.abc import Mapping

import pytest

from messiahs.core.interface.policies import Act, CalendarTime, RunningQuery
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy
from tests.unit.language.test_policy_examples import DESKTOP

_NOON = CalendarTime(clock=720, date=20_649)
_MIDNIGHT = CalendarTime(clock=0, date=20_649)


def _rule(text: str, head: str = "running") -> CompiledRule:
    (rule,) = policy(f"{head} {{ {text} }}").running
    return rule


def _query(
    task: Mapping[str, Value] | None = None, here: Mapping[str, Value] | None = None, now: CalendarTime = _NOON
) -> RunningQuery:
    return RunningQuery(task=task or {}, here=here or {}, now=now)


def test_when_acts_if_its_predicate_is_true_and_unless_if_it_is_false_or_undefined() -> None:
    when = _rule("suspend when $here.keyboard_idle < 30s;")
    unless = _rule("suspend unless $here.keyboard_idle >= 30s;")
    expected = {29: (True, True), 30: (False, False), None: (False, True)}
    for idle, verdicts in expected.items():
        here: dict[str, Value] = {} if idle is None else {"keyboard_idle": idle}
        assert (when.is_due(_query(here=here)), unless.is_due(_query(here=here))) == verdicts


def test_an_unscoped_attribute_is_the_tasks() -> None:
    rule = _rule("kill when $mem_used > $mem_reserved;")
    assert rule.is_due(_query({"mem_used": 2, "mem_reserved": 1}))
    assert not rule.is_due(_query({"mem_used": 1, "mem_reserved": 1}, {"mem_used": 2, "mem_reserved": 1}))


def test_the_time_of_day_is_known() -> None:
    rule = _rule("move unless $now.clock < 7:00;")
    assert (rule.is_due(_query()), rule.is_due(_query(now=_MIDNIGHT))) == (True, False)


@pytest.mark.parametrize("rule", ["suspend when $here.load > 10%;", "suspend unless $here.load <= 10%;"])
def test_a_block_about_some_tasks_ignores_others_and_undefined_ones(rule: str) -> None:
    compiled = _rule(rule, 'running tasks where $task.user eq "ann"')
    here: dict[str, Value] = {"load": 5000}
    assert compiled.is_due(_query({"user": "ann"}, here))
    assert not compiled.is_due(_query({"user": "bob"}, here))
    assert not compiled.is_due(_query({}, here))


def test_a_rule_has_durations_a_following_act_and_a_text_for_others() -> None:
    rule = _rule('move unless $now.clock < 7:00 for 2min grace 10min then vacate else "the day begins";')
    assert (rule.act, rule.for_ns, rule.grace_ns, rule.then) == (Act.MOVE, 2 * MINUTE, 10 * MINUTE, Act.VACATE)
    assert rule.rule == "move unless $now.clock < 7:00 for 2min grace 10min then vacate"
    assert rule.text == "the day begins"
    plain = _rule("vacate when 1 = 1;")
    assert (plain.for_ns, plain.grace_ns, plain.then, plain.text) == (0, None, Act.KILL, "")


def test_memory_in_use_is_measured_only_if_a_rule_reads_it() -> None:
    assert _rule("kill when $task.mem_used > 1GiB;").reads_memory
    assert _rule("kill when 1 = 1;", "running tasks where $mem_used > 1GiB").reads_memory
    assert not _rule("kill when $task.mem_reserved > 1GiB;").reads_memory


def test_several_blocks_are_one_list_in_the_order_of_the_file() -> None:
    text = 'running tasks where $user eq "ann" { kill when 1 = 1; } running { suspend when 1 = 1; resume when 1 = 1; }'
    assert [rule.act for rule in policy(text).running] == [Act.KILL, Act.SUSPEND, Act.RESUME]


def test_without_a_block_nothing_ever_happens_to_a_task() -> None:
    assert policy("").running == ()


def test_the_desktop_protects_its_owner() -> None:
    rules = policy(DESKTOP).running
    assert [rule.act for rule in rules] == [Act.SUSPEND, Act.RESUME, Act.VACATE, Act.MOVE]
    at_desk = _query({"suspended": 600}, {"keyboard_idle": 3})
    away = _query({"suspended": 0}, {"keyboard_idle": 600}, _MIDNIGHT)
    assert [rule.is_due(at_desk) for rule in rules] == [True, False, True, True]
    assert [rule.is_due(away) for rule in rules] == [False, True, False, False]
    assert [rule.is_due(_query()) for rule in rules] == [True, False, False, True]
    assert (rules[1].for_ns, rules[2].grace_ns, rules[3].text) == (60 * SECOND, 5 * MINUTE, "the owner's day begins")


PROBLEMS = [
    ("running;", "1:8", Code.SYNTAX, "`running` needs a block"),
    ("running tasks { }", "1:15", Code.SYNTAX, "`where` is missing"),
    ("running { stop when 1 = 1; }", "1:11", Code.SYNTAX, "`kill`, `move`, `resume`, `suspend` or `vacate`"),
    ("running { kill if 1 = 1; }", "1:16", Code.SYNTAX, "`unless` or `when`"),
    ("running { kill when $x = 1; }", "1:21", Code.UNKNOWN_ATTRIBUTE, "$x is not known here"),
    ("running { kill when $peer.balance < 0s; }", "1:21", Code.SCOPE, "`running` does not know $peer."),
    ("running tasks where $x = 1 { }", "1:21", Code.UNKNOWN_ATTRIBUTE, "$x is not known here"),
    ("running { kill when 1 = 1 for 5; }", "1:31", Code.DIMENSION, "`5` is not a duration"),
    ("running { kill when 1 = 1 for -5s; }", "1:31", Code.RANGE, "not negative"),
    ("running { kill when 1 = 1 grace 5MB; }", "1:33", Code.DIMENSION, "`5MB` is not a duration"),
    ("running { move when 1 = 1 grace 0s; }", "1:33", Code.RANGE, "a move needs a grace longer than 0"),
    ("running { suspend when 1 = 1 grace 5s; }", "1:30", Code.MEANING, "`suspend` has no grace"),
    ("running { resume when 1 = 1 then kill; }", "1:29", Code.MEANING, "nothing follows `resume`"),
    ("running { kill when 1 = 1 grace 1s then kill; }", "1:36", Code.MEANING, "nothing follows `kill`"),
    ("running { move when 1 = 1 then kill; }", "1:27", Code.MEANING, "`then` needs a grace"),
    ("running { move when 1 = 1 grace 1s then resume; }", "1:41", Code.MEANING, "`resume` cannot follow `move`"),
    ("running { vacate when 1 = 1 grace 1s then move; }", "1:43", Code.MEANING, "`move` cannot follow `vacate`"),
]


@pytest.mark.parametrize(("text", "place", "code", "message"), PROBLEMS, ids=[text for text, *_ in PROBLEMS])
def test_a_mistake_is_reported_at_its_position(text: str, place: str, code: Code, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text, file="test.policy")
    (problem,) = (each for each in raised.value.problems if not each.is_warning)
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code)
    assert message in problem.message
