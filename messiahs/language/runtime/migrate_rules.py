"""Requests for tasks, and offers to systems that request tasks (MESSIAHS 5.3.2, 6.2 task_request)."""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.interface.policies import HereQuery, RunningQuery
from messiahs.language.runtime.conditions import Condition, holds_here
from messiahs.language.runtime.readings import HERE, MEMORY, NOW, TASK, WAITING, calendar_facts, reads, running_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledAsk:
    """One `ask` of a `migrate` block; `wanting` is in the paper's language, with the same meaning everywhere."""

    every_ns: int
    condition: Condition
    wanting: str

    def is_wanted(self, query: HereQuery, /) -> bool:
        """Return whether to ask now."""
        facts = {HERE: query.here, NOW: calendar_facts(query.now)}
        return holds_here(self.condition, facts, has_machine=query.has_machine, subtree=query.subtree)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledMigration:
    """A `migrate` block; without an `offer` rule every waiting task is offered, except those that are kept."""

    asks: tuple[CompiledAsk, ...] = ()
    keep_at_least: int = 0
    offered: tuple[Condition, ...] = ()

    @property
    def offers_running(self) -> bool:
        """Return whether running tasks may move, which lose their progress: only if a rule offers them."""
        return bool(self.offered)

    @property
    def reads_memory(self) -> bool:
        """Return whether an `offer` rule reads the memory that a task uses."""
        return any(reads(condition, TASK, MEMORY) for condition in self.offered)

    @property
    def reads_waiting(self) -> bool:
        """Return whether an `offer` rule reads the number of waiting tasks."""
        return any(reads(condition, HERE, name) for condition in self.offered for name in WAITING)

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every `offer` and `ask`."""
        yield from ((condition.text, condition) for condition in (*self.offered, *(ask.condition for ask in self.asks)))

    def offers(self, query: RunningQuery, /) -> bool:
        """Return whether a task is offered to systems that ask for tasks."""
        facts = running_facts(query)
        return not self.offered or any(condition.holds(facts) for condition in self.offered)
