"""Compiled rules about tasks that run on the own machine (MESSIAHS 2: owners keep control)."""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.interface.policies import Act, RunningQuery
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, MEMORY, TASK, WAITING, reads, running_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """One rule of a `running` block; `head` is the condition of the block.

    With `is_unless` it is due while `condition` is false *or undefined*: its owner chooses the effect of a lost sensor.
    """

    act: Act
    condition: Condition
    is_unless: bool = False
    head: Condition | None = None
    for_ns: int = 0
    grace_ns: int | None = None
    then: Act = Act.KILL
    rule: str
    text: str = ""

    @property
    def reads_memory(self) -> bool:
        """Return whether it reads the memory that the task uses."""
        return self._reads(TASK, MEMORY)

    @property
    def reads_waiting(self) -> bool:
        """Return whether it reads the number of waiting tasks."""
        return any(self._reads(HERE, name) for name in WAITING)

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the head of the block, and the condition."""
        if self.head is not None:
            yield self.head.text, self.head
        yield self.rule, self.condition

    def is_due(self, query: RunningQuery, /) -> bool:
        """Return whether its act is due; never for a task for which the head is false or undefined."""
        facts = running_facts(query)
        if self.head is not None and not self.head.holds(facts):
            return False
        return self.condition.holds(facts) is not self.is_unless

    def _reads(self, scope: str, name: str) -> bool:
        return any(reads(condition, scope, name) for _, condition in self.conditions())
