"""Why no machine has enough counted things, such as GPUs, for a task, in words for its user."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from messiahs.core.interface.policies import Need
from messiahs.core.model.attributes import Kind
from messiahs.core.model.counted import free, shown_name
from messiahs.core.model.ids import SystemId
from messiahs.core.task_filter.matching import met
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Interval


class _Counts(NamedTuple):
    """Things of one kind on alike machines: the least and the greatest number on one, and of those that are free."""

    machines: int
    there: tuple[int, int]
    free: tuple[int, int]


def too_few_text(need: Need, views: Mapping[SystemId, IndexedVector]) -> str:
    """Return behind which systems all machines count fewer things than the task needs, with the most; else empty."""
    texts: list[str] = []
    for name, amount in need.uses:
        columns = ((system, view.columns(Kind.INTEGER, name)[0].values) for system, view in views.items())
        most = [f"{values[-1]} at {system}" for system, values in columns if values and values[-1] < amount]
        if most:
            texts.append(f"too few {shown_name(name)}: at most {', '.join(most)}")
    return "; ".join(texts)


def in_use_text(need: Need, views: Iterable[IndexedVector]) -> str:
    """Return which things the task waits for: those of which no machine that meets its requirement has enough free.

    Empty if some machine may have enough of all kinds; something else keeps the task from it then.
    """
    seen, texts = tuple(views), list[str]()
    for name, amount in need.uses:
        found = [each for each in _counts(need, seen, name) if each.there[1] >= amount]
        most = max((each.free[1] for each in found), default=amount)
        if most >= amount:
            continue
        total = _text(sum(each.machines * each.there[end] for each in found) for end in (0, 1))
        if not most:
            texts.append(f"all {shown_name(name)} ({total}) are in use")
        else:
            left = _text(sum(each.machines * each.free[end] for each in found) for end in (0, 1))
            texts.append(f"too few {shown_name(name)} are free: {left} of {total}, at most {most} on one machine")
    return "; ".join(texts)


def _counts(need: Need, views: Iterable[IndexedVector], name: str) -> Iterator[_Counts]:
    """Yield what the machines have that may meet the requirement, and that say how many things are free."""
    for view in views:
        _, could = met(need, view)
        for place, each in enumerate(view.vector.classes):
            values = dict(each.attributes)
            there, left = values.get(name), values.get(free(name))
            if could >> place & 1 and isinstance(there, Interval) and isinstance(left, Interval):
                yield _Counts(each.count, _ends(there), _ends(left))


def _ends(numbers: Interval) -> tuple[int, int]:
    return max(0, lowest_in(numbers.low)), max(0, highest_in(numbers.high))


def _text(ends: Iterable[int]) -> str:
    least, most = ends
    return str(most) if least == most else f"{least} to {most}"
