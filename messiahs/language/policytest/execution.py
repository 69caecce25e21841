"""Run the trials of a policy, step by step, and report what differs from their expectations.

A statement holds until it is stated again. `after` advances the clock and the measured attributes of a running task
(`$task.ran`, `$task.suspended`), unless the trial states them. The task starts with the first `after`, or with the
first expectation of acts.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from messiahs.language.explaining.coverage import Sighting, sightings_in
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import Expectation
from messiahs.language.policytest.situation import Situation
from messiahs.language.policytest.stated_values import Statement, Wait
from messiahs.language.policytest.trials import Step, Trial, TrialFile
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.rule_explanation import ExplainedBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An expectation that was not met, the actual result, and the rules that were evaluated."""

    step: Step
    came: str
    blocks: tuple[ExplainedBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a trial: every failed expectation, and the truth values of the policy's rules."""

    trial: Trial
    failures: tuple[Failure, ...]
    seen: frozenset[Sighting]


@dataclass(slots=True)
class _Results:
    """What a trial in progress has shown (mutable)."""

    failures: list[Failure] = field(default_factory=list)
    seen: set[Sighting] = field(default_factory=set)


def try_out(file: TrialFile, /) -> tuple[Outcome, ...]:
    """Run every trial of a file, each in its own situation, and return the results."""
    return tuple(_outcome(file.policy, trial) for trial in file.trials)


def _outcome(policy: CompiledPolicy, trial: Trial) -> Outcome:
    course, results = Course(Situation(policy=policy)), _Results()
    for step in trial.steps:
        what = step.what
        if isinstance(what, Wait):
            _wait(course, course.situation.later(what.duration_ns), results)
        elif isinstance(what, Statement):
            course.situation.take(what)
        else:
            _check(step, _judged(what, course), results)
    seen = results.seen if course.task is None else results.seen | course.task.seen
    return Outcome(trial=trial, failures=tuple(results.failures), seen=frozenset(seen))


def _wait(course: Course, until: datetime, results: _Results) -> None:
    task = course.followed()
    results.seen.update(sightings_in((task.explained(),)))
    task.pass_time(until)
    results.seen.update(sightings_in((task.explained(),)))


def _judged(expectation: Expectation, course: Course) -> Verdict:
    """Return the verdict, which is never met if a part of the policy failed: its substitute is not what is tested."""
    course.situation.failure = ""
    verdict = expectation.judge(course)
    failure = course.situation.failure
    return replace(verdict, is_met=False, came=f"{verdict.came}, but the part fails: {failure}") if failure else verdict


def _check(step: Step, verdict: Verdict, results: _Results) -> None:
    results.seen.update(sightings_in(verdict.blocks))
    if not verdict.is_met:
        results.failures.append(Failure(step=step, came=verdict.came, blocks=verdict.blocks))
