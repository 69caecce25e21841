"""The content of a `*.policytest` file: trials, whose steps state something, let time pass, or expect something.

Every `start` is an offset in the file, in characters from 0.
"""

from dataclasses import dataclass

from messiahs.language.policytest.expectation_kinds import Expectation
from messiahs.language.policytest.stated_values import Statement
from messiahs.language.runtime.compiled_policy import CompiledPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement of a trial; `text` is on one line."""

    start: int
    text: str
    what: Statement | Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A test of a policy, including the statements before it that apply to every test."""

    name: str
    start: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFile:
    """The tested policy, its name in the file, and the trials in order."""

    policy_name: str
    policy: CompiledPolicy
    trials: tuple[Trial, ...]
