"""What a module asks of others, and what it offers to those that ask (MESSIAHS 5.3.2, 6.2 task_request)."""

from dataclasses import dataclass

from messiahs.core.interface.policies import HereQuery, RunningQuery
from messiahs.language.runtime.accept_rules import calendar_facts, holds_here
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, MEMORY, NOW, TASK, WAITING, reads


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledAsk:
    """One `ask` of a `migrate` block; `wanting` is in the paper's language and the same wherever it is judged."""

    every_ns: int
    condition: Condition
    wanting: str

    def is_wanted(self, query: HereQuery, /) -> bool:
        """Say whether to ask now."""
        facts = {HERE: query.here, NOW: calendar_facts(query.now)}
        return holds_here(self.condition, facts, has_machine=query.has_machine, subtree=query.subtree)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledMigration:
    """A `migrate` block; without an `offer` rule everything that waits is offered but for the tasks that are kept."""

    asks: tuple[CompiledAsk, ...] = ()
    keep_at_least: int = 0
    offered: tuple[Condition, ...] = ()

    @property
    def offers_running(self) -> bool:
        """Say whether tasks that run may go too: they lose what they have done, so only if a rule lets them."""
        return bool(self.offered)

    @property
    def reads_memory(self) -> bool:
        """Say whether an `offer` rule asks for the memory that a task uses."""
        return any(reads(condition, TASK, MEMORY) for condition in self.offered)

    @property
    def reads_waiting(self) -> bool:
        """Say whether an `offer` rule asks for the tasks that wait."""
        return any(reads(condition, HERE, name) for condition in self.offered for name in WAITING)

    def offers(self, query: RunningQuery, /) -> bool:
        """Say whether a task may go to whoever asks for it."""
        facts = {TASK: query.task, HERE: query.here, NOW: calendar_facts(query.now)}
        return not self.offered or any(condition.holds(facts) for condition in self.offered)
