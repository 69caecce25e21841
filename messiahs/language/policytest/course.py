"""A trial in progress: the situation that its statements describe, and the task that runs in it."""

from dataclasses import dataclass

from messiahs.language.policytest.running_task import Followed
from messiahs.language.policytest.situation import Situation


@dataclass(slots=True)
class Course:
    """A trial in progress (mutable)."""

    situation: Situation
    task: Followed | None = None

    def followed(self) -> Followed:
        """Return the task on the own machine; it starts with the first call."""
        if self.task is None:
            self.task = Followed(self.situation, self.situation.moment)
        return self.task
