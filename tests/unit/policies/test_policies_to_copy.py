"""The policies that people copy have no problems, and do what their tests say, every rule of them seen both ways."""

from pathlib import Path

import pytest

from messiahs.config.policies import policy_text, read_policy
from messiahs.language.explaining.coverage import unseen_rules
from messiahs.language.policytest.execution import try_out
from messiahs.language.policytest.files import read_trials
from messiahs.language.policytest.formatting import format_trials
from messiahs.language.syntax.formatting import format_policy

POLICIES = Path(__file__).parents[3] / "policies"
FILES = sorted(POLICIES.glob("*.policy"))


def test_there_are_policies_to_copy_and_each_has_tests() -> None:
    assert len(FILES) >= 10
    assert [file.with_suffix(".policytest") for file in FILES] == sorted(POLICIES.glob("*.policytest"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_to_copy_has_not_even_a_warning(file: Path) -> None:
    assert read_policy(file).warnings == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_to_copy_and_its_tests_are_in_their_one_form(file: Path) -> None:
    policy, tests = policy_text(file), policy_text(file.with_suffix(".policytest"))
    assert format_policy(policy, file=file.name) == policy
    assert format_trials(tests, file=file.name) == tests


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_to_copy_does_what_its_tests_say_and_they_leave_no_rule_untried(file: Path) -> None:
    tests = file.with_suffix(".policytest")
    trials = read_trials(policy_text(tests), file=tests.name, policy_of=lambda name: read_policy(POLICIES / name))
    outcomes = try_out(trials)
    assert trials.policy_name == file.name
    assert [(failure.step.text, failure.came) for outcome in outcomes for failure in outcome.failures] == []
    assert unseen_rules(trials.policy, frozenset().union(*(outcome.seen for outcome in outcomes))) == ()
