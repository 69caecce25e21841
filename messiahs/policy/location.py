"""Which systems to ask, for places and for tasks (MESSIAHS 6.2 sched_request: the most likely candidate)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.limits import ASKS
from messiahs.core.interface.parts import PartKind, PartState
from messiahs.core.interface.policies import Candidate, Randomness, RankQuery, SourceQuery
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import could_hold, fitting
from messiahs.policy.parts import DeclaredPart
from messiahs.policy.weighted_order import weighted_order

_PLURALS: Final = {Relation.CHILD: "children", Relation.SIBLING: "siblings", Relation.PARENT: "parents"}
_RELATIONS = (Relation.CHILD, Relation.SIBLING, Relation.PARENT)
_Group = tuple[bool, bool, int]
"""Whether tasks were lost, whether room is uncertain, and the distance in the hierarchy; the lowest comes first."""


@dataclass(frozen=True, slots=True)
class WeightedFreeSlots:
    """Orders candidates at random, weighted by their free slots: views are old, so the first candidate should vary.

    If machines state their willingness, a slot of one with 100 weighs 101 times as much as a slot of one with 0.
    Candidates that certainly have room precede those that may have; then children precede siblings, and siblings
    parents. Candidates through which tasks were lost recently, or that denied such tasks in spite of their room, are
    last, and those that could not hold the task are left out. Only as many as a search may ask are drawn; the others
    follow in their given order.
    """

    initial: PartState = ()

    def decide(
        self, query: RankQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[SystemId, ...], PartState]:
        """Order candidates."""
        groups: dict[_Group, list[tuple[SystemId, int]]] = {}
        is_stated = any(candidate.view.has_attribute("willingness") for candidate in query.candidates)
        for candidate in query.candidates:
            surely, could = fitting(query.need, candidate.view)
            if could:
                group = (candidate.has_lost, not surely, _RELATIONS.index(candidate.relation))
                weight = candidate.view.willing_slots(could) if is_stated else candidate.view.free_slots(could)
                groups.setdefault(group, []).append((candidate.system, weight))
        order: list[SystemId] = []
        for group in sorted(groups):
            systems, weights = zip(*groups[group], strict=True)
            order.extend([systems[place] for place in weighted_order(weights, randomness, drawn=ASKS - len(order))])
        return tuple(order), state

    def why_ranked(self, query: RankQuery, /) -> dict[SystemId, str]:
        """Return the weight with which each candidate is drawn, and among which others."""
        is_stated = any(candidate.view.has_attribute("willingness") for candidate in query.candidates)
        texts: dict[SystemId, str] = {}
        for candidate in query.candidates:
            surely, could = fitting(query.need, candidate.view)
            weight = candidate.view.willing_slots(could) if is_stated else candidate.view.free_slots(could)
            what = "free slots by willingness" if is_stated else "free slots"
            among = f"{_PLURALS[candidate.relation]} that {'surely' if surely else 'may'} have room"
            texts[candidate.system] = f"drawn among the {among}, with the weight {weight} ({what})"
        return texts


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Asks candidates in order of name, starting after the candidate with which it started last.

    It remembers that name, so the round continues when candidates come and go. Candidates through which tasks were lost
    recently are last, and those that could not hold the task are left out.
    """

    initial: PartState = ()

    def decide(
        self, query: RankQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[SystemId, ...], PartState]:
        """Order candidates."""
        del randomness
        last = str(state[0][0]) if state else ""
        able = sorted(
            (candidate for candidate in query.candidates if could_hold(query.need, candidate.view)),
            key=_turn_after(last),
        )
        order = tuple(candidate.system for candidate in able)
        return order, ((order[0],),) if order else state

    def why_ranked(self, query: RankQuery, /) -> dict[SystemId, str]:
        """Return that names take turns."""
        return {each.system: "in turn by name" for each in query.candidates}


def _turn_after(last: str) -> Callable[[Candidate], tuple[bool, bool, SystemId]]:
    return lambda candidate: (candidate.has_lost, candidate.system <= last, candidate.system)


@dataclass(frozen=True, slots=True)
class MostWaiting:
    """Asks neighbors for tasks, the most waiting tasks first, and equal ones in order of name."""

    initial: PartState = ()

    def decide(
        self, query: SourceQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[tuple[SystemId, ...], PartState]:
        """Order neighbors."""
        del randomness
        order = sorted(query.sources, key=lambda source: (-source.waiting, source.system))
        return tuple(source.system for source in order), state


WEIGHTED_FREE_SLOTS: Final = DeclaredPart(
    kind=PartKind.LOCATION,
    name="weighted_free_slots",
    meaning="asks at random, weighted by free slots and willingness: children first, then siblings, then parents",
    make=WeightedFreeSlots,
)
ROUND_ROBIN: Final = DeclaredPart(
    kind=PartKind.LOCATION,
    name="round_robin",
    meaning="asks in order of name, and begins each time behind the one with which it began last",
    make=RoundRobin,
)
MOST_WAITING: Final = DeclaredPart(
    kind=PartKind.SOURCES,
    name="most_waiting",
    meaning="asks those first for tasks behind whom most tasks wait",
    make=MostWaiting,
)
