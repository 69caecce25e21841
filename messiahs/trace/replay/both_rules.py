"""The acts of two policies' rules on the attempts that ran while a module was recorded (MESSIAHS 2).

Each policy counts its own durations and graces. The facts about an attempt are those recorded: an attempt that only a
policy without effect would have suspended has continued to run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from messiahs.core.executor.running_facts import running_attempts, running_queries
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Act, CalendarTime, RunningQuery
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.instants import Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.rule_timing import Due, Memory, acted, decide
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.trace.replay.both_policies import Asked, PastDraws


@dataclass(slots=True)
class ProtectingBoth:
    """The memories of both policies for the attempts that run at one module (mutable)."""

    _memories: dict[AttemptId, tuple[Memory, Memory]] = field(default_factory=dict)

    def evaluate(
        self, state: ModuleState, old: Policy, new: Policy, /, *, now: Instant, time: CalendarTime
    ) -> Iterator[Asked]:
        """Evaluate the rules of both for every attempt that runs now."""
        if not old.running and not new.running:
            return
        before, self._memories = self._memories, {}
        running = running_attempts(state)
        queries: list[list[RunningQuery]] = []
        for policy in (old, new):
            seen = replace(state, policy=policy, calendar=lambda _: time, randomness=PastDraws())
            counts = any(rule.reads_waiting for rule in policy.running)
            here = own_facts(seen, now)
            queries.append(running_queries(seen, running, here=here, counts_waiting=counts, now=now))
        for (_, attempt), old_query, new_query in zip(running, *queries, strict=True):
            old_memory, new_memory = before.get(attempt, (Memory(), Memory()))
            old_memory, old_dues = _done(old, old_memory, old_query, now)
            new_memory, new_dues = _done(new, new_memory, new_query, now)
            self._memories[attempt] = (old_memory, new_memory)
            if [due.act for due in old_dues] == [due.act for due in new_dues]:
                yield Asked(f"protect {attempt}", "", "")
            else:
                yield Asked(f"protect {attempt}", _acts_text(old_dues), _acts_text(new_dues))


def _done(policy: Policy, memory: Memory, query: RunningQuery, now: Instant) -> tuple[Memory, list[Due]]:
    dues: list[Due] = []
    # Each act changes the standing of the attempt, so their number is bounded.
    for _ in Act:
        memory, due = decide(policy.running, memory, query, now)
        if due is None:
            break
        memory = acted(memory, due, now)
        dues.append(due)
    return memory, dues


def _acts_text(dues: list[Due]) -> str:
    return ", ".join(f"{due.act.value} by {due.rule.rule}" for due in dues) or "nothing"
