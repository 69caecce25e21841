"""A task on the own machine, as a trial follows it: what the rules of `running` do to it as time passes."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from messiahs.core.attributes import Value
from messiahs.core.instants import SECOND, Instant
from messiahs.core.ports import Act, RunningQuery
from messiahs.core.protecting import Memory, Standing, acted, decide, next_look
from messiahs.language.accepting import calendar_facts
from messiahs.language.coverage import Sighting, sightings_in
from messiahs.language.explaining_accept import ExplainedBlock, explain_rule
from messiahs.language.readings import HERE, NOW, TASK, Facts
from messiahs.language.trial_situation import EPOCH, Situation, seconds_between
from messiahs.language.trial_verdicts import block_of

_LOOKS: Final = 2000
"""So often at most is a task looked at while time passes, once a second if that is seldomer."""
_ACTS_AT_ONCE: Final = 10


@dataclass(slots=True)
class Followed:
    """One task that runs here (mutable).

    `acts` are what was done to it since that was last asked for, and `seen` what its rules were whenever that was.
    """

    situation: Situation
    begun: datetime
    memory: Memory = field(default_factory=Memory)
    suspended_at: datetime | None = None
    acts: list[Act] = field(default_factory=list)
    seen: set[Sighting] = field(default_factory=set)

    def pass_time(self, until: datetime) -> None:
        """Let the clock move on, with what was stated; what is due on the way is done when it is due."""
        situation = self.situation
        step = max(timedelta(seconds=1), (until - situation.moment) / _LOOKS)
        self.look()
        while situation.moment < until:
            due = next_look(situation.policy.running, self.memory, _instant(situation.moment))
            ahead = until if due is None else EPOCH + timedelta(microseconds=due // 1000)
            situation.moment = min(until, max(ahead, situation.moment), situation.moment + step)
            self.look()

    def look(self) -> None:
        """Do what is due now."""
        now = _instant(self.situation.moment)
        for _ in range(_ACTS_AT_ONCE):
            self.memory, due = decide(self.situation.policy.running, self.memory, self._query(), now)
            if due is None:
                return
            self.seen.update(sightings_in((self.explained(),)))
            self.memory = acted(self.memory, due, now)
            self.acts.append(due.act)
            if due.act is Act.SUSPEND:
                self.suspended_at = self.situation.moment
            elif self.memory.standing is not Standing.SUSPENDED:
                self.suspended_at = None

    def explained(self) -> ExplainedBlock:
        """Judge every rule about such a task now."""
        facts = self.facts()
        query = self._query()
        rules = [
            replace(explain_rule(rule.condition, rule.rule, facts), note="due" if rule.is_due(query) else "not due")
            for rule in self.situation.policy.running
        ]
        heads = {rule.head.start: rule.head for rule in self.situation.policy.running if rule.head is not None}
        rules += [explain_rule(head, head.text, facts) for head in heads.values()]
        return block_of("running", f"the task is {self.memory.standing}", rules)

    def facts(self) -> Facts:
        """Give what the rules are judged by now."""
        query = self._query()
        return {TASK: query.task, HERE: query.here, NOW: calendar_facts(query.now)}

    def _query(self) -> RunningQuery:
        situation = self.situation
        suspended = 0 if self.suspended_at is None else seconds_between(self.suspended_at, situation.moment)
        known: dict[str, Value] = {"ran": seconds_between(self.begun, situation.moment), "suspended": suspended}
        return RunningQuery(
            task={**known, **situation.task},
            here=situation.known_here,
            now=situation.now,
        )


def _instant(moment: datetime) -> Instant:
    return Instant((moment - EPOCH) // timedelta(microseconds=1) * (SECOND // 1_000_000))
