"""The order in which tasks get places: the keys of a `rank tasks` block, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass

from messiahs.core.interface.parts import Failed, PartState
from messiahs.core.interface.policies import Randomness, TaskOrderQuery
from messiahs.language.runtime.candidate_ranking import First, KeyOrder, Most, RankKey, Turn, conditions_in, turns_of
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.part_keys import ByPart, Placed, part_in, placed_by
from messiahs.language.runtime.readings import HERE, MEMORY, NOW, TASK, Facts, calendar_facts, reads


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRanking:
    """Orders tasks by its keys; tasks without a value are last, and equal tasks keep their order of arrival."""

    keys: tuple[RankKey, ...]

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every `first where`."""
        return conditions_in("tasks", self.keys)

    @property
    def reads_memory(self) -> bool:
        """Return whether a key reads the memory that a task uses."""
        return any(_reads_memory(key) for key in self.keys)

    @property
    def keeps_arrival(self) -> bool:
        """Return False: keys may reorder any tasks."""
        return False

    @property
    def text(self) -> str:
        """The part among the keys; empty without one, since only a part has a state."""
        part = part_in(self.keys)
        return "" if part is None else part.text

    @property
    def initial(self) -> PartState:
        """The initial state of the part among the keys."""
        part = part_in(self.keys)
        return () if part is None else part.initial

    def decide(
        self, query: TaskOrderQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[int, ...] | Failed[tuple[int, ...]], PartState]:
        """Return the positions of all tasks, the first to be served first."""
        ranked, by_part = self.ranked(query, state, randomness)
        return by_part.answering(tuple(place for _, place in ranked))

    def ranked(
        self, query: TaskOrderQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[list[tuple[list[KeyOrder], int]], Placed[int]]:
        """Return the tasks in order, each with its key values and position, and the answer of the part in the keys."""
        count = len(query.tasks)
        part = part_in(self.keys)
        by_part: Placed[int] = Placed(places={}, state=state)
        if part is not None:
            by_part = placed_by(part, query, state, randomness)
        turns = {key: turns_of(key, count, randomness) for key in dict.fromkeys(self.keys) if isinstance(key, Turn)}
        common = {HERE: query.here, NOW: calendar_facts(query.now)}
        ranked: list[tuple[list[KeyOrder], int]] = []
        for place, task in enumerate(query.tasks):
            facts = {**common, TASK: task}
            values = [
                (0, turns[key][place])
                if isinstance(key, Turn)
                else (0, by_part.places[place])
                if isinstance(key, ByPart)
                else key_order(key, facts)
                for key in self.keys
            ]
            ranked.append((values, place))
        ranked.sort()
        return ranked, by_part


def key_order(key: First | Most, facts: Facts, /) -> KeyOrder:
    """Return the value of a key over some facts; for `first` 0 is true, 1 false."""
    if isinstance(key, First):
        return (0, 0 if key.condition.holds(facts) else 1)
    value = key.amount.value_in(facts)
    if value is None:
        return (1, 0)
    return (0, value if key.is_least else -value)


def _reads_memory(key: RankKey) -> bool:
    match key:
        case Turn():
            return False
        case ByPart(part):
            return bool(getattr(part, "reads_memory", False))
        case First(condition):
            return reads(condition, TASK, MEMORY)
        case Most(amount=amount):
            return reads(amount, TASK, MEMORY)
