"""Finding for each machine of a sum the class in which it was sent: a flow from the machines to the classes.

A machine flows into a class that holds it, and each class takes as many as it counts. What cannot flow was lost, was
counted too often, or is outside its class. Machines that fit one class alone are taken first: where there are hundreds
of neighbors these are nearly all, and computing a flow takes long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from messiahs.recount.facts import Machines, Vector

_SATURATED = 2**40 - 1
"""The largest count of a class: greater ones are lowered to it, so one that large may stand for any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A vector in a sum, with the system that sent it; for the own machine, the module itself."""

    source: str
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What does not fit: machines that are in no class, and places of classes without a machine."""

    lost: tuple[tuple[str, Machines, int], ...] = ()
    """Source, description and number of machines that were summed up, and are in no class that was sent."""
    extra: tuple[tuple[Machines, int], ...] = ()
    """Classes that were sent, and how many of their machines come from nowhere."""

    @property
    def lost_count(self) -> int:
        """The number of machines that are in no class."""
        return sum(count for _, _, count in self.lost)

    @property
    def extra_count(self) -> int:
        """The number of places without a machine."""
        return sum(count for _, count in self.extra)


def difference(parts: Iterable[Part], sent: Vector) -> Difference:
    """Return what does not fit between the parts of a sum and the vector that was sent."""
    supply = [(part.source, one, one.count * times) for part in parts for one, times in sorted(part.vector, key=repr)]
    demand = [(one, one.count * times) for one, times in sorted(sent, key=repr)]
    # A count that was lowered takes all machines of all parts.
    everything = sum(count for _, _, count in supply)
    free = [everything if one.count >= _SATURATED else count for one, count in demand]
    room, went = list(free), [0] * len(supply)
    undecided: dict[int, tuple[int, ...]] = {}
    for number, (_, one, count) in enumerate(supply):
        places = tuple(place for place, (outer, _) in enumerate(demand) if outer.holds(one))
        if len(places) == 1:
            # Nothing is gained by leaving a place to a machine that also fits elsewhere.
            went[number] = min(count, room[places[0]])
            room[places[0]] -= went[number]
        elif places:
            undecided[number] = places
    for (number, place), count in _largest_flow(undecided, [count for _, _, count in supply], room).items():
        went[number] += count
        room[place] -= count
    came = [count - left for count, left in zip(free, room, strict=True)]
    return Difference(
        lost=tuple(
            (source, one, count - gone) for (source, one, count), gone in zip(supply, went, strict=True) if count > gone
        ),
        extra=tuple(
            (one, count - got)
            for (one, count), got in zip(demand, came, strict=True)
            if count > got and one.count < _SATURATED
        ),
    )


def _largest_flow(
    places: Mapping[int, tuple[int, ...]], counts: Sequence[int], room: Sequence[int], /
) -> dict[tuple[int, int], int]:
    """Return how many machines of each source go into which of its places; as many as possible in all."""
    if not places:
        return {}
    # Loaded here, since it takes longer to load than most commands run.
    import networkx as nx  # noqa: PLC0415 # see above

    graph: nx.DiGraph[object] = nx.DiGraph()
    for number, of_source in places.items():
        graph.add_edge("begin", ("from", number), capacity=counts[number])
        for place in of_source:
            graph.add_edge(("from", number), ("to", place), capacity=counts[number])
            graph.add_edge(("to", place), "end", capacity=room[place])
    _, flow = nx.maximum_flow(graph, "begin", "end")
    return {(number, place): count for number in places for (_, place), count in flow["from", number].items() if count}
