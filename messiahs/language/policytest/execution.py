"""Run the trials of a policy, step by step, and report what differs from their expectations.

A statement holds until it is stated again. `after` advances the clock and the measured attributes of a running task
(`$task.ran`, `$task.suspended`), unless the trial states them. The task starts with the first `after`, or with the
first expectation of acts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from messiahs.core.interface.policies import Act
from messiahs.language.explaining.coverage import Sighting, sightings_in
from messiahs.language.policytest.accept_expectations import judge
from messiahs.language.policytest.running_expectations import Followed
from messiahs.language.policytest.situation import Situation
from messiahs.language.policytest.trials import (
    Below,
    ExpectActs,
    Members,
    NamedTask,
    Place,
    Rival,
    SetClock,
    State,
    Step,
    Trial,
    TrialFile,
    Wait,
)
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.runtime.accept_explanation import ExplainedBlock
from messiahs.language.runtime.compiled_policy import CompiledPolicy


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
class _Course:
    """A trial in progress (mutable)."""

    situation: Situation
    task: Followed | None = None
    failures: list[Failure] = field(default_factory=list)
    seen: set[Sighting] = field(default_factory=set)


def try_out(file: TrialFile, /) -> tuple[Outcome, ...]:
    """Run every trial of a file, each in its own situation, and return the results."""
    return tuple(_outcome(file.policy, trial) for trial in file.trials)


def _outcome(policy: CompiledPolicy, trial: Trial) -> Outcome:
    course = _Course(Situation(policy=policy))
    for step in trial.steps:
        match step.what:
            case Wait(duration_ns):
                _wait(course, course.situation.later(duration_ns))
            case SetClock() | State() | Place() | Below() | Rival() | NamedTask() | Members():
                course.situation.take(step.what)
            case ExpectActs(acts):
                _check(course, step, _judge_acts(acts, course))
            case _:
                _check(course, step, judge(step.what, course.situation))
    seen = course.seen if course.task is None else course.seen | course.task.seen
    return Outcome(trial=trial, failures=tuple(course.failures), seen=frozenset(seen))


def _wait(course: _Course, until: datetime) -> None:
    task = _followed(course)
    course.seen.update(sightings_in((task.explained(),)))
    task.pass_time(until)
    course.seen.update(sightings_in((task.explained(),)))


def _judge_acts(acts: tuple[Act, ...], course: _Course) -> Verdict:
    task = _followed(course)
    task.evaluate()
    done, task.acts = tuple(task.acts), []
    return Verdict(is_met=done == acts, came=_told(done), blocks=(task.explained(),))


def _followed(course: _Course) -> Followed:
    if course.task is None:
        course.task = Followed(course.situation, course.situation.moment)
    return course.task


def _check(course: _Course, step: Step, verdict: Verdict) -> None:
    course.seen.update(sightings_in(verdict.blocks))
    if not verdict.is_met:
        course.failures.append(Failure(step=step, came=verdict.came, blocks=verdict.blocks))


def _told(acts: Iterable[Act]) -> str:
    return f"what is done: {', '.join(acts) or 'nothing'}"
