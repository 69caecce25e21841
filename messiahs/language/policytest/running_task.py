"""A task on the machine of a trial: the `running` rules act on it as time passes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from messiahs.core.interface.policies import Act, RunningQuery
from messiahs.core.model.attributes import Value
from messiahs.core.state.rule_timing import Memory, Standing, acted, decide, next_evaluation
from messiahs.language.explaining.coverage import Sighting, sightings_in
from messiahs.language.explaining.running import explain_running
from messiahs.language.policytest.situation import EPOCH, Situation, instant_of
from messiahs.language.runtime.rule_explanation import ExplainedBlock

_EVALUATIONS: Final = 2000
"""Maximum number of evaluations in one wait; at least one second apart."""
_ACTS_AT_ONCE: Final = 10


@dataclass(slots=True)
class Followed:
    """One running task (mutable).

    `suspended_before` is the duration of its past suspensions, `acts` are the acts since the last expectation of acts,
    and `seen` are the truth values of its rules whenever an act was due.
    """

    situation: Situation
    begun: datetime
    memory: Memory = field(default_factory=Memory)
    suspended_at: datetime | None = None
    suspended_before: timedelta = timedelta()
    acts: list[Act] = field(default_factory=list)
    seen: set[Sighting] = field(default_factory=set)

    def pass_time(self, until: datetime) -> None:
        """Advance the clock with the stated attributes; acts are done at the time when they are due."""
        situation = self.situation
        step = max(timedelta(seconds=1), (until - situation.moment) / _EVALUATIONS)
        self.evaluate()
        while situation.moment < until:
            due = next_evaluation(situation.policy.running, self.memory, instant_of(situation.moment))
            ahead = until if due is None or due > instant_of(until) else EPOCH + timedelta(microseconds=due // 1000)
            situation.moment = min(until, max(ahead, situation.moment), situation.moment + step)
            self.evaluate()

    def evaluate(self) -> None:
        """Do the acts that are due now."""
        now = instant_of(self.situation.moment)
        for _ in range(_ACTS_AT_ONCE):
            self.memory, due = decide(self.situation.policy.running, self.memory, self._query(), now)
            if due is None:
                return
            self.seen.update(sightings_in((self.explained(),)))
            self.memory = acted(self.memory, due, now)
            self.acts.append(due.act)
            if due.act is Act.SUSPEND:
                self.suspended_at = self.situation.moment
            elif self.suspended_at is not None and self.memory.standing is not Standing.SUSPENDED:
                self.suspended_before += self.situation.moment - self.suspended_at
                self.suspended_at = None

    def explained(self) -> ExplainedBlock:
        """Evaluate every rule about the task now."""
        rules = self.situation.policy.running
        return explain_running(rules, self._query(), verdict=f"the task is {self.memory.standing}")

    def _query(self) -> RunningQuery:
        """Return the measured attributes of the task, as its executor would report them, with the stated ones."""
        situation = self.situation
        now = situation.moment
        stood = timedelta() if self.suspended_at is None else now - self.suspended_at
        ran = now - self.begun - self.suspended_before - stood
        known: dict[str, Value] = {"ran": _seconds(ran), "suspended": _seconds(stood), "waited": 0, "attempt": 1}
        task = situation.task
        if "mem" in task:
            known["mem_reserved"] = task["mem"]
        return RunningQuery(task={**known, **task}, here=situation.known_here, now=situation.now)


def _seconds(duration: timedelta) -> int:
    return duration // timedelta(seconds=1)
