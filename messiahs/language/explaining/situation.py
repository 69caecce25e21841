"""The situation in which a policy is explained."""

from collections.abc import Iterable
from dataclasses import dataclass

from messiahs.core.interface.policies import AcceptQuery, RunningQuery
from messiahs.core.model.descriptions import SDV, Description
from messiahs.language.runtime.readings import TASK, request_facts
from messiahs.language.runtime.rule_explanation import ExplainedBlock, ExplainedRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A request to place a task, and what is known of the task if it is on this machine.

    With `asks`, the sender of the request is stated. `present` holds attributes of a task on this machine, such as its
    run time; it is empty if there is no such task.
    """

    query: AcceptQuery
    asks: bool
    present: Description

    @property
    def here(self) -> SDV:
        """The own machine; without attributes if nothing is known of it."""
        return self.query.here or SDV(())

    @property
    def running(self) -> RunningQuery | None:
        """The task on this machine, if there is one."""
        if not self.present:
            return None
        task = {**request_facts(self.query)[TASK], **self.present}
        return RunningQuery(task=task, here=self.here.description(), now=self.query.now)


def block_of(head: str, verdict: str, rules: Iterable[ExplainedRule], /) -> ExplainedBlock:
    """Return an explanation whose position is that of its first rule."""
    judged = tuple(rules)
    return ExplainedBlock(
        head=head, start=min((rule.start for rule in judged), default=0), verdict=verdict, rules=judged
    )
