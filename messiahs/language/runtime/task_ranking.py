"""In which order tasks get places: the keys of a `rank tasks` block, one after the other."""

from dataclasses import dataclass

from messiahs.core.interface.policies import Randomness, TaskOrderQuery
from messiahs.language.runtime.accepting import calendar_facts
from messiahs.language.runtime.ranking import First, KeyOrder, Most, RankKey, Turn, turns_of
from messiahs.language.runtime.readings import HERE, MEMORY, NOW, TASK, Facts, reads


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRanking:
    """Orders tasks by its keys; what has no value comes last, and equal tasks stay as they came."""

    keys: tuple[RankKey, ...]

    @property
    def reads_memory(self) -> bool:
        """Say whether a key asks for the memory that a task uses."""
        ranking = (key for key in self.keys if not isinstance(key, Turn))
        return any(reads(key.condition if isinstance(key, First) else key.amount, TASK, MEMORY) for key in ranking)

    def order(self, query: TaskOrderQuery, randomness: Randomness, /) -> tuple[int, ...]:
        """Give the positions of all tasks, that of the first to be served in front."""
        return tuple(place for _, place in self.ranked(query, randomness))

    def ranked(self, query: TaskOrderQuery, randomness: Randomness, /) -> list[tuple[list[KeyOrder], int]]:
        """Give the tasks in that order: what each key came to, and the position."""
        count = len(query.tasks)
        turns = {key: turns_of(key, count, randomness) for key in dict.fromkeys(self.keys) if isinstance(key, Turn)}
        common = {HERE: query.here, NOW: calendar_facts(query.now)}
        ranked: list[tuple[list[KeyOrder], int]] = []
        for place, task in enumerate(query.tasks):
            facts = {**common, TASK: task}
            values = [(0, turns[key][place]) if isinstance(key, Turn) else key_order(key, facts) for key in self.keys]
            ranked.append((values, place))
        ranked.sort()
        return ranked


def key_order(key: First | Most, facts: Facts, /) -> KeyOrder:
    """Give what a key comes to over some facts; of `first` 0 is true, 1 false."""
    if isinstance(key, First):
        return (0, 0 if key.condition.holds(facts) else 1)
    value = key.amount.value_in(facts)
    if value is None:
        return (1, 0)
    return (0, value if key.is_least else -value)
