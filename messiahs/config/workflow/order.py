"""What the tasks of a file wait for: names become tasks, and the tasks get an order in which no one waits for later."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import Final

from messiahs.config.topology.problems import Place, Problems, nearest, shown_cycle
from messiahs.core.interface.dependencies import DEPENDENCY_LIMIT, When

_ID: Final = re.compile(r"[a-z0-9][a-z0-9.-]*\.[1-9][0-9]*(\.[1-9][0-9]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A name of a task of the file, or an id, and what has to have happened to it."""

    text: str
    when: When
    place: Place


@dataclass(slots=True)
class Names:
    """The tasks by their names (mutable): each by its own, and all of a matrix by the key in the file."""

    tasks: dict[str, int] = field(default_factory=dict)
    matrices: dict[str, list[int]] = field(default_factory=dict)

    def find(self, text: str) -> Sequence[int]:
        """Return the places of the tasks with a name; none if there is none."""
        return (self.tasks[text],) if text in self.tasks else self.matrices.get(text, ())

    def __iter__(self) -> Iterator[str]:
        return iter((*self.matrices, *self.tasks) if len(self.tasks) <= _NEAR_LIMIT else self.matrices)


_NEAR_LIMIT: Final = 1_000
"""Among more names, near ones are not looked for: that takes longer than to read the file."""


def is_id(text: str) -> bool:
    """Return whether a text can be the id of a task, an array or a member."""
    return _ID.fullmatch(text) is not None


def resolved(
    references: Iterable[Reference], names: Names, problems: Problems, /
) -> tuple[dict[tuple[int, When], Place], list[tuple[str, When]]]:
    """Return the tasks of the file that are waited for, and the ids of other tasks; problems are noted."""
    references = tuple(references)
    within: dict[tuple[int, When], Place] = {}
    others: list[tuple[str, When]] = []
    for each in references:
        found = names.find(each.text)
        within |= {(task, each.when): each.place for task in found}
        if not found and is_id(each.text):
            others.append((each.text, each.when))
        elif not found:
            text = f"`{each.text}` is no task of this file, and no id such as laptop.17{nearest(each.text, names)}"
            problems.add(each.place, text)
    if len(within) + len(others) > DEPENDENCY_LIMIT:
        text = f"a task waits for at most {DEPENDENCY_LIMIT} others, not {len(within) + len(others)}: an `array` is one"
        problems.add(references[0].place, text)
        return {}, []
    return within, others


def ordered(
    within: Sequence[Mapping[tuple[int, When], Place]], names: Sequence[str], problems: Problems, /
) -> list[int]:
    """Return the tasks so that none waits for a later one, else as in the file; a cycle is a problem."""
    sorter = TopologicalSorter({task: [on for on, _ in waits] for task, waits in enumerate(within)})
    try:
        sorter.prepare()
    except CycleError as error:
        # Of these, each is waited for by the next one.
        cycle: list[int] = error.args[1]
        path = shown_cycle([f"`{names[task]}`" for task in cycle[:0:-1]], " waits for ")
        place = next(place for (on, _), place in within[cycle[-1]].items() if on == cycle[-2])
        problems.add(place, f"these tasks wait for each other, so none can run: {path}")
        return list(range(len(within)))
    order: list[int] = []
    ready = list(sorter.get_ready())
    heapify(ready)
    while ready:
        order.append(heappop(ready))
        sorter.done(order[-1])
        for task in sorter.get_ready():
            heappush(ready, task)
    return order
