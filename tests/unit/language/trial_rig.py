"""For tests of `*.policytest` files: a policy and a text, and the results."""

from messiahs.language.compiler.files import parse_policy
from messiahs.language.policytest.execution import Outcome, try_out
from messiahs.language.policytest.files import read_trials
from messiahs.language.policytest.trials import TrialFile


def trials(text: str, policy: str = "") -> TrialFile:
    """Read tests of the policy that is called `a.policy`."""
    return read_trials(
        f'policy "a.policy";\n{text}', file="a.policytest", policy_of=lambda name: parse_policy(policy, file=name)
    )


def outcome(steps: str, policy: str) -> Outcome:
    """Return the result of one test."""
    (only,) = try_out(trials(f'test "t" {{ {steps} }}', policy))
    return only


def came(steps: str, policy: str) -> list[tuple[str, str]]:
    """Return the expectations that were not met, each with the actual result."""
    return [(failure.step.text, failure.came) for failure in outcome(steps, policy).failures]
