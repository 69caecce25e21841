"""Choosing the waiting tasks that a module hands over on a task_request (MESSIAHS 6.2 task_request: local policy).

The task filter is evaluated over the TDVs of waiting tasks (MESSIAHS 5.4), then the owner's `offer` rules decide, and
as many tasks as `keep` requires stay.
"""

from dataclasses import dataclass

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import RunningQuery
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.origin.giving_way import in_turn
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import Shape
from messiahs.core.task_filter.local_facts import own_facts
from messiahs.core.task_filter.task_order import facts_of_shape

_AGAIN_NS = 1 * SECOND
_EVALUATION_LIMIT = 4_096
"""Shapes evaluated for one request: a predicate from another system may be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The shapes on offer, each with its number of tasks; if there are none, the reason."""

    shapes: tuple[tuple[Shape, int], ...]
    why_not: DenyCode

    @property
    def count(self) -> int:
        """The number of tasks on offer."""
        return sum(count for _, count in self.shapes)


def offer(state: ModuleState, wanting: Predicate, *, count: int, now: Instant) -> Offered:
    """Choose at most `count` waiting tasks that match and may leave, in the order in which they would be placed.

    Tasks that are promised and still waiting are not promised again, and others of their shape only after a pause: each
    promise starts a search, so a requester could otherwise make this module search without end.
    """
    waiting = [shape for shape in state.origin.shapes.values() if shape.count and is_free(shape, now)]
    matching = [shape for shape in waiting[:_EVALUATION_LIMIT] if wanting.holds(shape.key[0].description())]
    left = min(count, spare_tasks(state))
    chosen: list[tuple[Shape, int]] = []
    here = own_facts(state, now)
    for shape in in_turn(state, tuple(matching), now):
        query = RunningQuery(task=facts_of_shape(state, shape, now), here=here, now=state.calendar(now))
        if left and state.policy.transfer.offers(query):
            chosen.append((shape, min(left, shape.count)))
            left -= chosen[-1][1]
    why_not = DenyCode.REFUSED_BY_POLICY if matching and not chosen else DenyCode.NO_TASK
    return Offered(shapes=tuple(chosen), why_not=why_not)


def is_free(shape: Shape, now: Instant) -> bool:
    """Return whether tasks of a shape may be promised: none are promised, and none were a moment ago."""
    return not shape.promised and (shape.promised_at is None or now - shape.promised_at >= _AGAIN_NS)


def spare_tasks(state: ModuleState) -> int:
    """Return how many waiting tasks may be promised, beyond those kept back and those promised already."""
    promised = sum(min(shape.promised, shape.count) for shape in state.origin.shapes.values())
    return max(0, state.origin.waiting - promised - state.policy.transfer.keep_at_least)
