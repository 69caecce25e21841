"""Finding for each machine of a sum the class in which it was sent: a flow from the machines to the classes.

Machines with equal descriptions are one source. A machine flows into a class that holds it, and each class takes as
many as it counts. What cannot flow was lost, was counted too often, or is outside its class.
"""

from collections.abc import Iterable
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
    flows = _largest_flow(supply, demand)
    went = [sum(flow.values()) for flow in flows]
    came = [sum(flow.get(place, 0) for flow in flows) for place in range(len(demand))]
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


def _largest_flow(supply: list[tuple[str, Machines, int]], demand: list[tuple[Machines, int]]) -> list[dict[int, int]]:
    """Return how many machines of each source flow into which classes; as many as possible in all."""
    # Loaded here, since it takes longer to load than most commands run.
    import networkx as nx  # noqa: PLC0415 # see above

    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_nodes_from(("begin", "end"))
    for number, (_, one, count) in enumerate(supply):
        graph.add_edge("begin", ("from", number), capacity=count)
        for place, (outer, _) in enumerate(demand):
            if outer.holds(one):
                graph.add_edge(("from", number), ("to", place), capacity=count)
    for place, (one, count) in enumerate(demand):
        # Without a capacity, an edge takes any number.
        graph.add_edge(("to", place), "end", **({} if one.count >= _SATURATED else {"capacity": count}))
    _, flow = nx.maximum_flow(graph, "begin", "end")
    return [
        {place: count for (_, place), count in flow[("from", number)].items() if count} for number in range(len(supply))
    ]
