"""Which waiting tasks a module lets go to whoever asks for some (MESSIAHS 6.2 task_request: the local policy).

The task filter is judged over the TDVs of waiting tasks (MESSIAHS 5.4); then the owner's `offer` rules decide, and so
many tasks stay as `keep` says.
"""

from dataclasses import dataclass

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import RunningQuery
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.task_order import facts_of_shape, in_order

_AGAIN_NS = 1 * SECOND
_JUDGED_AT_MOST = 4_096
"""Shapes that one request may have judged: a stranger's predicate may be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """How many tasks of which shapes go; if none, why not."""

    shapes: tuple[tuple[Shape, int], ...]
    why_not: DenyCode

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return sum(count for _, count in self.shapes)


def offer(state: ModuleState, wanting: Predicate, *, count: int, now: Instant) -> Offered:
    """Choose at most `count` waiting tasks that match and may go, those first whose turn it is first.

    Those that were promised to somebody and still wait are not promised again, and others of their shape not at once:
    each promise is followed by a search, and whoever asks may not want to make us search without end.
    """
    waiting = [shape for shape in state.origin.shapes.values() if shape.count and is_free(shape, now)]
    matching = [shape for shape in waiting[:_JUDGED_AT_MOST] if wanting.holds(shape.key[0].description())]
    left = min(count, spare_tasks(state))
    chosen: list[tuple[Shape, int]] = []
    here = own_facts(state, now)
    for shape in in_order(state, tuple(matching), now):
        query = RunningQuery(task=facts_of_shape(state, shape, now), here=here, now=state.calendar(now))
        if left and state.policy.migrating.offers(query):
            chosen.append((shape, min(left, shape.count)))
            left -= chosen[-1][1]
    why_not = DenyCode.REFUSED_BY_POLICY if matching and not chosen else DenyCode.NO_TASK
    return Offered(shapes=tuple(chosen), why_not=why_not)


def is_free(shape: Shape, now: Instant) -> bool:
    """Say whether tasks of a shape may be promised: none are, and none were a moment ago."""
    return not shape.promised and (shape.promised_at is None or now - shape.promised_at >= _AGAIN_NS)


def spare_tasks(state: ModuleState) -> int:
    """Give how many waiting tasks may be promised beyond those that are kept and those that are promised already."""
    promised = sum(min(shape.promised, shape.count) for shape in state.origin.shapes.values())
    return max(0, state.origin.waiting - promised - state.policy.migrating.keep_at_least)
