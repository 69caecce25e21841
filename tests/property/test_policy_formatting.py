"""Laws of formatting on random, badly formatted policies and tests: one form, one meaning, no comment lost."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messiahs.config.policies import read_policy
from messiahs.core.model.attributes import Value
from messiahs.errors import PolicyError
from messiahs.language.compiler.files import parse_policy
from messiahs.language.policytest.files import read_trials
from messiahs.language.policytest.formatting import are_trials, format_trials
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.syntax.formatting import format_policy
from tests.property.budget import examples
from tests.unit.language.test_policy_examples import DEPARTMENT, DESKTOP, GATEWAY, HOSTING

POLICIES = Path(__file__).parents[2] / "policies"
SHIPPED = [path.read_text(encoding="utf-8") for path in sorted(POLICIES.glob("*.policy"))]
TESTS = [path.read_text(encoding="utf-8") for path in sorted(POLICIES.glob("*.policytest"))]
CORPUS = [DEPARTMENT, DESKTOP, GATEWAY, HOSTING, *SHIPPED]
WORD = re.compile(
    r'"(?:\\.|[^"\\])*"|\$[\w.]+|[0-9]{4}-[0-9]+-[0-9]+|-?[0-9](?:[\w%:]|\.(?!\.))*|\w+|\.\.|<=|>=|<>|#[^\n]*|[^\s]'
)
MADE = """attribute $gpus int 00..16 optional; attribute $licence string;
let night = $now.clock >= 20:00 or $now.clock < 07:00 xor $now.weekday >= 6;
let exams = $now.date >= 2027-01-18 and $now.date <= 2027-02-05 or $now.month = 8;
let few = $gpus default 0 <= 04 and not (night or $licence default "" like "*a;b#c{d}*" xor has $gpus);
advertise every 01min or after change of 20.0% { send $gpus, $licence; set $willingness = 90 when night else 10 - 3; }
accept from children, "a.example", siblings {
    require few and ($mem <= 64.50GiB or $cpus = 1 xor $cpus = 2 xor $cpus > 03) else "no; # not \\"this\\"";
    when $user in ("ann", "bob", "carol", "dave", "erin", "heidi", "ivan", "judy") and night and $cpus < 3;
    limit 0400 tasks; limit 40 tasks per $origin;
}
accept from any { } accept from users { limit 3 tasks; }
rank candidates by first where night or few xor night, most ($load * 2 - -3) / 4, least $wait_time default 1h, random;
running tasks where few { suspend unless $here.load < 12.50% for 030s; kill when night or few xor night grace 9s; }
migrate { ask every 1min when $load < 25% wanting { $mem <= 16GB or $cpus = 1 xor $cpus = 2 }; keep at least 01 tasks; }
combine { $gpus: key; default: carry; } reveal to any nothing;
timeouts { input 030s then down; request 500ms; poll 05s; bar 0s; } limits { hops 008; asks 64; moves 00; }
"""
MADE_TESTS = """policy "desktop.policy"; at 2026-01-07 06:05; here { keyboard_idle = 020min; load = nothing; }
members 003; peer { name = "cs; # {no} comment"; relation = "parent"; }
machines 012 { arch = "x86_64"; free_slots = 4; avail_mem = 8.50GiB; utilization = 10%; load = 20%; os = "Linux"; }
candidate "a" { relation = "child"; machines 3 { load = 1%; } machines 02 { $load = 2%; } }
task "b" { mem = 1GiB; }
test "one" { expect accept; placed 1 { } after 030s { here { load = 60.0%; } task { mem = nothing; }
at 2026-12-03 23:59; }
expect rank "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccccc";
expect reveal as "behind-the-wall.example.org" { machines = 15; classes = 1; load = nothing; utilization = nothing;
}
expect refuse "no"; expect suspend, vacate; peer { balance = -05min; } }
test "two" { expect send { willingness = 90; } }
"""
GAPS = ["", "", " ", " ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", " # behind {};\n", "\n\n# above {};\n"]


def _meaning(value: object) -> object:
    """Return the decisions of a compiled policy, without its text and positions."""
    match value:
        case Condition():
            return (_meaning(value.readings), value.expression)
        case Amount():
            # Arithmetic is code; it is compared by its results.
            names = {reading.name: 3 + 7 * place for place, reading in enumerate(value.readings)}
            facts = {reading.scope: dict[str, Value](names) for reading in value.readings}
            return (_meaning(value.readings), value.value_in(facts))
        case tuple():
            return tuple(_meaning(each) for each in value)
        case _ if is_dataclass(value):
            hidden = {"rule", "rules", "warnings", "source", "start", "written", "lets", "orders", "head"}
            return {
                field.name: _meaning(getattr(value, field.name)) for field in fields(value) if field.name not in hidden
            }
        case _:
            return value


def _comments(text: str) -> list[str]:
    return [word.rstrip() for word in WORD.findall(text) if word.startswith("#")]


def _stated(text: str) -> object:
    """Return the tests in a text, without the positions and texts of their steps."""
    read = read_trials(text, file="x.policytest", policy_of=lambda name: read_policy(POLICIES / name))
    trials = [(trial.name, [step.what for step in trial.steps]) for trial in read.trials]
    assert any(steps for _, steps in trials)
    return (read.policy_name, trials)


def _ill_written(text: str, chance: Random) -> str:
    """Return the words of a text with random gaps and comments between them."""
    written = before = ""
    for word in WORD.findall(text):
        gap = "\n" if before.startswith("#") else chance.choice(GAPS)
        # Words must not join, nor a minus sign with the next word.
        written += (gap if gap or written.endswith("\n") else " ") + word
        before = word
    return f"{written}\n{chance.choice(GAPS)}"


@examples(60)
@given(st.randoms(use_true_random=True), st.sampled_from([MADE, *CORPUS]))
def test_a_policy_has_one_canonical_form_with_the_same_meaning_and_all_comments(chance: Random, text: str) -> None:
    written = _ill_written(text, chance)
    formatted = format_policy(written, file="x.policy")
    assert format_policy(formatted, file="x.policy") == formatted
    assert _comments(formatted) == _comments(written)
    compiled, again = parse_policy(written, file="x.policy"), parse_policy(formatted, file="x.policy")
    assert _meaning(compiled) == _meaning(again)
    assert "\n\n\n" not in formatted


@examples(60)
@given(st.randoms(use_true_random=True), st.sampled_from([MADE_TESTS, *TESTS]))
def test_tests_have_one_canonical_form_with_the_same_meaning_and_all_comments(chance: Random, text: str) -> None:
    written = _ill_written(text, chance)
    formatted = format_trials(written, file="x.policytest")
    assert format_trials(formatted, file="x.policytest") == formatted
    assert _comments(formatted) == _comments(written)
    assert _stated(formatted) == _stated(text)
    assert "\n\n\n" not in formatted
    assert are_trials(formatted)


def test_different_tests_have_different_meanings_and_no_policy_is_taken_for_tests() -> None:
    for before, after in (("8.50GiB", "8GiB"), ("expect accept", "expect refuse"), ("2026-01-07", "2026-01-08")):
        assert _stated(MADE_TESTS.replace(before, after)) != _stated(MADE_TESTS)
    assert not any(are_trials(text) for text in [MADE, *CORPUS])


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_the_corpus_keeps_its_meaning(number: int) -> None:
    text = CORPUS[number]
    formatted = format_policy(text, file="x.policy")
    assert _comments(formatted) == _comments(text)
    assert _meaning(parse_policy(formatted, file="x.policy")) == _meaning(parse_policy(text, file="x.policy"))
    assert all(len(line) <= 120 for line in formatted.splitlines() if "#" not in line)


def test_different_policies_have_different_meanings() -> None:
    for before, after in (
        ("64.50GiB", "64GiB"),
        ("/ 4", "/ 5"),
        ("few xor night grace", "few and night grace"),
        ("then down", "then query"),
        ("hops 008", "hops 9"),
    ):
        changed = MADE.replace(before, after)
        assert _meaning(parse_policy(changed, file="x")) != _meaning(parse_policy(MADE, file="x"))


@examples(200)
@given(
    st.text(st.characters(exclude_categories=()), max_size=60)
    | st.lists(st.sampled_from(WORD.findall(MADE))).map(" ".join)
)
def test_any_text_is_formatted_or_refused(text: str) -> None:
    try:
        formatted = format_policy(text, file="x.policy")
    except PolicyError:
        return
    assert format_policy(formatted, file="x.policy") == formatted


@examples(200)
@given(
    st.text(st.characters(exclude_categories=()), max_size=60)
    | st.lists(st.sampled_from(WORD.findall(MADE_TESTS))).map(" ".join)
)
def test_any_text_is_formatted_as_tests_or_refused(text: str) -> None:
    try:
        formatted = format_trials(text, file="x.policytest")
    except PolicyError:
        return
    assert format_trials(formatted, file="x.policytest") == formatted
