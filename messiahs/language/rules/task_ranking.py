"""In which order tasks get places: the keys of a `rank tasks` block, one after the other."""

from dataclasses import dataclass

from messiahs.core.ports import Randomness, TaskOrderQuery
from messiahs.language.rules.accepting import calendar_facts
from messiahs.language.rules.ranking import First, RankKey, Turn, turns_of
from messiahs.language.rules.readings import HERE, NOW, TASK, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRanking:
    """Orders tasks by its keys; what has no value comes last, and equal tasks stay as they came."""

    keys: tuple[RankKey, ...]

    def order(self, query: TaskOrderQuery, randomness: Randomness, /) -> tuple[int, ...]:
        """Give the positions of all tasks, that of the first to be served in front."""
        count = len(query.tasks)
        turns = {key: turns_of(key, count, randomness) for key in dict.fromkeys(self.keys) if isinstance(key, Turn)}
        common = {HERE: query.here, NOW: calendar_facts(query.now)}
        ranked = []
        for place, task in enumerate(query.tasks):
            facts = {**common, TASK: task}
            values = [(0, turns[key][place]) if isinstance(key, Turn) else _value(key, facts) for key in self.keys]
            ranked.append((values, place))
        return tuple(place for _, place in sorted(ranked))


def _value(key: RankKey, facts: Facts) -> tuple[int, int]:
    if isinstance(key, First):
        return (0, 0 if key.condition.holds(facts) else 1)
    assert not isinstance(key, Turn), "turns are drawn before"
    value = key.amount.value_in(facts)
    if value is None:
        return (1, 0)
    return (0, value if key.is_least else -value)
